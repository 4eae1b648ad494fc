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
from rlox_opt.system.output import say

if TYPE_CHECKING:
    from rlox_opt.race.primitives.cases import Case, Engine, Family

_ABOUT = """\
examples:
  rlox-opt peers primitives
  rlox-opt peers primitives --case 'gae/n=2048|sample' --only numpy,numba
  rlox-opt peers primitives --list

Each engine runs in a process of its own, in an environment made from its lock file and kept in the
project's cache. All run on the same cores. First every result is compared with the project's
checks. Then the engines are called in turn, each for at least 0.5 ms, in a new random order each
round. --runs says how often all processes start anew; fewer than five give no verdict. An engine
that does not install, or whose results are wrong, is left out, and the reason is told. Ctrl-C keeps
what is timed; the same command goes on from there.
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
    add("--only", metavar="LIST", help="comma-separated engines, beside this library's own")
    add("--case", type=pattern, metavar="REGEX", help="only cases whose name it is found in")
    add(
        "--threads", type=whole(1), default=1, metavar="N", help="cores of each engine (default: 1)"
    )
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
        say(f"{family}: {own[0][0].what}")
        for _, case in own:
            say(f"    {case.key}")
    say("\nengines:")
    width = max(len(engine.name) for engine in engines)
    for engine in engines:
        say(f"    {engine.name:{width}}  {engine.what}")
    return 0
