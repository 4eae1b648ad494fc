"""`rlox-opt cmp`: the baseline against the optimised form, verified, then timed in one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

from rlox_opt.harness.restarts import ContestError, TwinsDifferError
from rlox_opt.history import records
from rlox_opt.plan import end_to_end
from rlox_opt.plan.catalogue import all_cards
from rlox_opt.plan.comparing import cells_of, compare
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.stats import paired
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, INTERRUPTED
from rlox_opt.system.output import say

_EXAMPLES = """\
examples:
  rlox-opt cmp p5                                all sizes of its card
  rlox-opt cmp p7 p9 --sizes n_steps=500         other sizes
  rlox-opt cmp all --json > all.json
  rlox-opt cmp r1 r5                             optimisations in Python, which need no build
  rlox-opt cmp p5 --end-to-end sac-prioritized   its effect on a training run

ratio = baseline time / optimised time: above 1 the optimised form is faster. Each restart is a new
process, which calls both forms in turn; the interval is over restarts. After 5, 10, 20 and 40
restarts the interval may be narrow enough for a verdict: faster, slower or same (within 1 %). If it
never is, the verdict is undecided.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "cmp",
        help="time the baseline and the optimised form of an optimisation in turn",
        description="Verify that both forms of an optimisation return the same, then time them in "
        "turn: ratio with its interval, instructions and allocations of a call. The figures are "
        "written to a record beside the card.",
        epilog=_EXAMPLES
        + exits.told(
            good="measured, whatever the ratios",
            difference="the twins differ",
            cannot_tell="nothing was measured",
            interrupted="the record is written, marked incomplete; --end-to-end prints what it has",
        ),
    )
    parser.add_argument("ids", nargs="+", metavar="ID", help="optimisations, such as p1 r1; or all")
    parser.add_argument(
        "--sizes", nargs="+", metavar="NAME=N[,NAME=N]", help="instead of the card's sizes"
    )
    parser.add_argument(
        "--restarts", type=int, default=20, choices=paired.LOOKS, help="at most (default: 20)"
    )
    parser.add_argument(
        "--end-to-end",
        metavar="JOB",
        type=end_to_end.job_named(project),
        help="time training runs instead of single calls: "
        f"{', '.join(sorted(end_to_end.jobs(project))) or 'nothing is named'}",
    )
    parser.add_argument("--no-counts", action="store_true", help="no instructions, no allocations")
    parser.add_argument("--no-record", action="store_true", help="write no record")
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare as asked; returns the exit code."""
    error: Callable[[str], Any] = arguments.parser.error
    chosen = choose(arguments)
    if arguments.end_to_end:
        return end_to_end.run(chosen, arguments)
    from rlox_opt.plan.extensions import BuildError
    from rlox_opt.system.progress import reporter

    if bare := [card.id for card in chosen if not card.sizes and not card.seam.profiles]:
        told = f"{', '.join(bare)}: no sizes to measure yet; write them into the card"
        if len(bare) == len(chosen):
            error(told)
        say(f"rlox-opt cmp: {told}", stderr=True)
        chosen = [card for card in chosen if card.id not in bare]
    cells = {card.id: cells_of(card, arguments.sizes, error) for card in chosen}
    if not arguments.no_record:
        records.check(arguments.project.comparisons)
    measured: list[dict[str, Any]] = []
    code = 0
    with reporter() as progress:
        progress.plan([(card.id, 60.0) for card in chosen])
        for card in chosen:
            try:
                record = compare(card, cells[card.id], arguments, progress)
            except (ContestError, BuildError) as problem:
                say(f"rlox-opt cmp: {card.id}: {problem}", stderr=True)
                code = DIFFERENCE if isinstance(problem, TwinsDifferError) else code or CANNOT_TELL
                continue
            for what, why in record.get("also", {}).items():
                if what.endswith(" skipped"):
                    say(f"rlox-opt cmp: {card.id}: {what}: {why}", stderr=True)
            if record["results"]:
                measured.append(record)
            if failed := record.get("failed"):
                say(f"rlox-opt cmp: {card.id}: {failed}", stderr=True)
                code = code or CANNOT_TELL
            elif not record["complete"]:
                code = INTERRUPTED
                break
    if not measured:
        code = code or CANNOT_TELL
    if arguments.json and measured:
        print(json.dumps([public(r) for r in measured] if len(chosen) > 1 else public(measured[0])))
    elif measured:
        from rlox_opt.views.comparison import show

        show(measured)
    return code


def choose(arguments: argparse.Namespace) -> list[Card]:
    """The cards called `ids`."""
    planned, ids = all_cards(arguments), arguments.ids
    if [id_.lower() for id_ in ids] == ["all"]:
        return planned
    known = {card.id: card for card in planned}
    for id_ in ids:
        if id_.upper() not in known:
            arguments.parser.error(
                f"ID: is {id_!r}, expected all or some of {', '.join(known).lower()}"
            )
    return [known[id_.upper()] for id_ in ids]


def public(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as `--json` prints it: counts that were not made are null, twin by twin."""
    none = {"baseline": None, "optimized": None}
    results = [
        row | {name: row.get(name) or none for name in ("instructions", "allocations")}
        for row in record["results"]
    ]
    record = {**record, "results": results}
    return {key: record[key] for key in ("id", "results", "also", "record") if key in record}
