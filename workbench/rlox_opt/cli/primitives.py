"""`rlox-opt peers primitives`: every operation of the data plane beside what else there is."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from typing import Any

from rlox_opt.cli.types import pattern
from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.cases import Case, Engine, Family
from rlox_opt.race.primitives.tables import Tables, conclude
from rlox_opt.system import exits
from rlox_opt.system.numbers import whole

_EXAMPLES = """\
examples:
  rlox-opt peers primitives
  rlox-opt peers primitives --case 'gae/n=2048|sample' --only numpy-out,numba --runs 5
  rlox-opt peers primitives --list

Each engine has a process of its own, in an environment made from its lock in peers/locks/ (kept
under target/peers/); all are held to the same cores. Every result is held to plain NumPy first
(float64: rtol 1e-6, atol 1e-10). Then engines are called in turn, in slices of 0.5 ms at least, in
a new random order each round; --runs says how often all processes start anew, and with fewer than
five no verdict is given. What does not install or is wrong is left out, and said. Ctrl-C keeps what
is timed: the same command goes on.
"""


def add_to(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "primitives",
        help="single operations against other libraries",
        description="Time single operations (GAE, buffers, environments, advantages of groups, "
        "token KL, a whole rollout) of this library, of other libraries, NumPy, numba and torch, "
        "in turn: means, p99 of draws, ratios with 95 % intervals and a verdict; a "
        "record, a page and Markdown under peers/record/.",
        epilog=_EXAMPLES
        + exits.told(
            cannot_tell="also where nothing was timed", interrupted="what is timed is kept"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=whole(1), default=10, metavar="N", help="restarts (default: 10)")
    add("--only", metavar="LIST", help="comma-separated engines beside our own")
    add("--case", type=pattern, metavar="REGEX", help="cases whose name it is found in")
    add("--threads", type=whole(1), default=1, metavar="N", help="cores an engine (default: 1)")
    add("--list", action="store_true", help="print cases and engines, and stop")
    add("--no-record", action="store_true", help="write no record")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Time as asked; returns the exit code."""
    families, every = cases.load(arguments.project)
    engines = _engines(every, arguments)
    chosen = [
        (family, case)
        for family in families
        for case in family.cases
        if arguments.case is None or arguments.case.search(case.key)
    ]
    if not chosen:
        known = ", ".join(family.name for family in families)
        arguments.parser.error(f"--case: {arguments.case.pattern!r} is in no case of {known}")
    if arguments.list:
        return _list(chosen, engines, arguments.json)
    from rlox_opt.views import primitives as report

    threads = min(arguments.threads, len(os.sched_getaffinity(0)))
    tables = Tables(
        arguments.project, "primitives", families, [case for _, case in chosen], engines, threads
    )
    return conclude(tables, arguments, report, lambda found: found)


def _engines(every: Sequence[Engine], arguments: argparse.Namespace) -> list[Engine]:
    if arguments.only is None:
        return list(every)
    named = {engine.name: engine for engine in every}
    asked = {name.strip() for name in arguments.only.split(",")}
    for name in asked - set(named):
        arguments.parser.error(f"--only: is {name!r}, expected some of {', '.join(named)}")
    return [engine for engine in every if engine.ours or engine.name in asked]


def _list(chosen: Sequence[tuple[Family, Case]], engines: Sequence[Engine], as_json: bool) -> int:
    if as_json:
        found = {
            "cases": [case.key for _, case in chosen],
            "engines": {engine.name: engine.what for engine in engines},
        }
        print(json.dumps(found))
        return 0
    for family in dict.fromkeys(family.name for family, _ in chosen):
        own = [(of, case) for of, case in chosen if of.name == family]
        print(f"{family}: {own[0][0].what}")
        print("".join(f"    {case.key}\n" for _, case in own), end="")
    print("\nengines:")
    width = max(len(engine.name) for engine in engines)
    for engine in engines:
        print(f"    {engine.name:{width}}  {engine.what}")
    return 0
