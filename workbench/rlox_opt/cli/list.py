"""`rlox-opt list`: every optimisation, what was predicted of it and what it came to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlox_opt.history import records
from rlox_opt.history.records import Record
from rlox_opt.plan.catalogue import all_cards, need_rich
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.machine import machine, slug
from rlox_opt.views import units

if TYPE_CHECKING:
    from rlox_opt.views.grid import Grid

_ON = {True: "on", False: "off", None: units.MISSING}
_EXAMPLES = """\
examples:
  rlox-opt list
  rlox-opt list | grep candidate
  rlox-opt list --json | jq '.[] | select(.realised.ratio > 2) | .id'

Predicted and realised are ratios: baseline time / optimised time, at the size that the card
predicts. Above 1 the optimised form is faster. The realised ratio comes from the record that the
card names. Where it names none, it comes from the newest complete record of this machine, or of
another machine if this one has none.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "list",
        help="list the optimisations: predicted, realised, on or off",
        description="List the optimisations: what each varies, whether this build has it on, what "
        "was predicted and what was realised.",
        epilog=_EXAMPLES + exits.told(),
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """List the cards; returns the exit code."""
    if not arguments.json:
        need_rich(arguments.parser)
    rows = catalogue(arguments.project, all_cards(arguments))
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)
    return 0


def catalogue(project: Project, cards: Sequence[Card]) -> list[dict[str, Any]]:
    """A row a card: `row_of` with its records."""
    return [row_of(project, card, records.records(card.id, project.comparisons)) for card in cards]


def row_of(project: Project, card: Card, measured: Sequence[Record]) -> dict[str, Any]:
    """`id title feature layer active status`, `predicted` [low, high] or None, and `realised`
    {`ratio`, `ci95`, `record`} or None."""
    checked = records.realised(card, measured, project.comparisons, slug(machine()))
    realised = None
    if checked:
        record, result = checked
        path = record.path.relative_to(project.root)
        realised = {"ratio": result.ratio, "ci95": list(result.ci95 or ()), "record": str(path)}
    return {
        "id": card.id,
        "title": card.title,
        "feature": card.feature,
        "layer": card.layer,
        "active": active(project, card),
        "status": card.status,
        "predicted": list(card.prediction.ratio) if card.prediction else None,
        "realised": realised,
    }


def active(project: Project, card: Card) -> bool | None:
    """Whether it is on: in the installed build (None where there is none), or in a program that is
    not told otherwise."""
    if not card.in_build:
        return card.status in ("accepted", "graduated")
    if not project.installed.there():
        return None
    return card.feature in project.installed.build_info().get("features", ())


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows to stdout."""
    from rlox_opt.views.grid import Told, console

    to = console()
    to.print(table(rows))
    on = ", ".join(row["id"] for row in rows if row["active"])
    to.print()
    to.print(Told(f"{len(rows)} optimisations; on in this build: {on or 'none'}", "dim"))


def table(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """The rows as they are printed."""
    from rlox_opt.views.grid import Grid

    headings = ("id", "title", "layer", "build", "status", "predicted", "realised")
    told = [
        (
            row["id"],
            row["title"],
            row["layer"],
            _ON[row["active"]],
            row["status"],
            units.band(row["predicted"]),
            units.estimate(of["ratio"], of["ci95"]) if (of := row["realised"]) else units.MISSING,
        )
        for row in rows
    ]
    return Grid(headings, told, left=5, named=2)
