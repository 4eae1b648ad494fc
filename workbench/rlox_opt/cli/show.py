"""`rlox-opt show p5`: one optimisation, what was said of it and what was measured."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from rlox_opt.cli.list import row_of
from rlox_opt.history import records
from rlox_opt.history.records import Record
from rlox_opt.plan.catalogue import card_named, need_rich
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.machine import machine, slug

_SOURCES = (".rs", ".py", ".toml")

_EXAMPLES = """\
examples:
  rlox-opt show p5
  rlox-opt show p5 --json | jq .prediction

The figures come from the record that the card names. Where it names none, they come from the newest
complete record of this machine, or of another machine if this one has none. --json holds all
records, newest first.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "show",
        help="show one optimisation: its card, its code, its records",
        description="Show an optimisation: its claim, its prediction and what was found, the files "
        "in which its two forms differ, and what was measured at each size.",
        epilog=_EXAMPLES + exits.told(),
    )
    parser.add_argument("id", metavar="ID", help="the id of its card, such as p5 or r2")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the card; returns the exit code."""
    if not arguments.json:
        need_rich(arguments.parser)
    card = card_named(arguments, arguments.id)
    detail = detail_of(arguments.project, card)
    if arguments.json:
        print(json.dumps(detail, indent=1))
    else:
        from rlox_opt.views.card import show

        show(detail)
    return 0


def detail_of(project: Project, card: Card) -> dict[str, Any]:
    """All there is about a card: what it says, `active` and `realised` as in `rlox-opt list`, its
    `seam` {`kind`, `address`, `files` [{`path`, `lines`}]}, `records` (newest first) and `shown`,
    the path of the one whose figures stand for it."""
    measured = records.records(card.id, project.comparisons)
    row = row_of(project, card, measured)
    del row["predicted"]  # the prediction has it
    newest = records.newest(measured, prefer=slug(machine()))
    shown = str(newest.path.relative_to(project.root)) if newest else None
    return row | {
        "needs": list(card.needs),
        "also_measured": list(card.also_measured),
        "claim": card.claim,
        "note": card.note,
        "finding": card.finding,
        "prediction": structs.asdict(card.prediction) if card.prediction else None,
        "seam": to_builtins(card.seam) | {"files": files(card.seam.address, project.root)},
        "shown": row["realised"]["record"] if row["realised"] else shown,
        "records": [_told(record, project.root) for record in reversed(measured)],
    }


def files(address: str, root: Path) -> list[dict[str, Any]]:
    """The sources at an address, a file or a folder of twins, each with its lines."""
    at = root / address
    # A module `ops.rs` may have a folder `ops` beside it.
    beside = at.with_suffix("") if at.suffix == ".rs" else at
    paths = {at} | (set(beside.rglob("*")) if beside.is_dir() else set())
    return [
        {
            "path": str(path.relative_to(root)),
            "lines": len(path.read_text(encoding="utf-8").splitlines()),
        }
        for path in sorted(paths)
        if path.is_file() and path.suffix in _SOURCES
    ]


def _told(record: Record, root: Path) -> dict[str, Any]:
    """A record as its file has it, and where that is."""
    return asdict(record) | {
        "path": str(record.path.relative_to(root)),
        "date": record.date.isoformat(timespec="seconds"),
        "machine_slug": record.slug,
    }
