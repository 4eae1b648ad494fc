"""`rlox-opt peers primitives`: single operations beside what else there is."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.peers_kind import Report, add_kind, chosen, conclude
from rlox_opt.cli.types import pattern
from rlox_opt.system.numbers import whole

if TYPE_CHECKING:
    from rlox_opt.race.primitives.cases import Case, Engine, Family

_ABOUT = """\
examples:
  rlox-opt peers primitives
  rlox-opt peers primitives --case 'gae/n=2048|sample' --only numpy,numba --runs 5
  rlox-opt peers primitives --list

Each engine has a process of its own, in an environment made from its lock (kept in the project's
cache); all are held to the same cores. Every result is held to the project's checks first. Then
engines are called in turn, in slices of 0.5 ms at least, in a new random order each round; --runs
says how often all processes start anew, and with fewer than five no verdict is given. What does not
install or is wrong is left out, and said. Ctrl-C keeps what is timed: the same command goes on.
"""


def add_to(kinds: Any) -> None:
    """Add the kind to `peers`."""
    parser = add_kind(
        kinds,
        "primitives",
        run,
        help="single operations against other libraries",
        description="Time single operations of this library and of others in turn: means, p99, "
        "ratios with 95 % intervals and a verdict",
        about=_ABOUT,
    )
    add = parser.add_argument
    add("--only", metavar="LIST", help="comma-separated engines beside our own")
    add("--case", type=pattern, metavar="REGEX", help="cases whose name it is found in")
    add("--threads", type=whole(1), default=1, metavar="N", help="cores an engine (default: 1)")
    add("--list", action="store_true", help="print cases and engines, and stop")


def run(arguments: argparse.Namespace) -> int:
    """Time as asked; returns the exit code."""
    from rlox_opt.race.primitives import cases
    from rlox_opt.race.primitives.tables import Tables
    from rlox_opt.views import primitives as view

    families, engines = cases.load(arguments.project)
    if arguments.only is not None:
        named = {engine.name: engine for engine in engines}
        asked = chosen(arguments.only, named, arguments.parser)
        engines = [engine for engine in engines if engine.ours or engine.name in asked]
    wanted = [
        (family, case)
        for family in families
        for case in family.cases
        if arguments.case is None or arguments.case.search(case.key)
    ]
    if not wanted:
        known = ", ".join(family.name for family in families)
        arguments.parser.error(f"--case: {arguments.case.pattern!r} is in no case of {known}")
    if arguments.list:
        return _list(wanted, engines, arguments.json)
    tables = Tables(
        arguments.project,
        "primitives",
        families,
        [case for _, case in wanted],
        engines,
        min(arguments.threads, len(os.sched_getaffinity(0))),
    )
    return conclude(tables, arguments, Report.of(view))


def _list(wanted: Sequence[tuple[Family, Case]], engines: Sequence[Engine], as_json: bool) -> int:
    if as_json:
        listed = {
            "cases": [case.key for _, case in wanted],
            "engines": {engine.name: engine.what for engine in engines},
        }
        print(json.dumps(listed))
        return 0
    for family in dict.fromkeys(family.name for family, _ in wanted):
        own = [(of, case) for of, case in wanted if of.name == family]
        print(f"{family}: {own[0][0].what}")
        print("".join(f"    {case.key}\n" for _, case in own), end="")
    print("\nengines:")
    width = max(len(engine.name) for engine in engines)
    for engine in engines:
        print(f"    {engine.name:{width}}  {engine.what}")
    return 0
