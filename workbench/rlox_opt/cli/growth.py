"""`rlox-opt peers growth`: how the cost of each operation grows with its size."""

from __future__ import annotations

import argparse
import os
from typing import Any

from rlox_opt.cli.peers_kind import Report, add_kind, chosen, conclude
from rlox_opt.system.numbers import whole

_ABOUT = """\
examples:
  rlox-opt peers growth
  rlox-opt peers growth --only THIS,THAT --runs 3

Each operation is timed at the sizes that the project names, by this library and by the controls in
turn, in this interpreter. The report marks the sizes at which the slope of ln(time) over ln(size)
changes, with a likely reason: the data outgrow a cache (whose size Linux tells), or a second thread
joins (CPU time exceeds wall time). Memory is what the result of a call holds, what Python and NumPy
allocate during a call, and its page faults.
Ctrl-C keeps what is timed; the same command goes on from there.
"""


def add_to(kinds: Any) -> None:
    """Add the kind to `peers`."""
    parser = add_kind(
        kinds,
        "growth",
        run,
        help="how the cost of single operations grows with their size",
        description="Time single operations of this library over decades of their size, controls "
        "beside: time per element, where the slope changes, memory of a call",
        about=_ABOUT,
        runs=5,
    )
    parser.add_argument("--only", metavar="LIST", help="comma-separated operations")
    parser.add_argument(
        "--threads", type=whole(1), metavar="N", help="cores of each engine (default: all)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Time as asked; returns the exit code."""
    from rlox_opt.race.primitives import cases
    from rlox_opt.race.primitives.growth import cases_of, in_this_interpreter, with_knees
    from rlox_opt.race.primitives.tables import Tables
    from rlox_opt.views import growth as view

    every, engines = cases.load(arguments.project)
    families = {family.name: family for family in every if family.growth}
    names = list(families)
    if arguments.only is not None:
        names = chosen(arguments.only, families, arguments.parser)
    cores = len(os.sched_getaffinity(0))
    tables = Tables(
        arguments.project,
        "growth",
        list(families.values()),
        [case for name in names for case in cases_of(families[name])],
        [in_this_interpreter(one) for one in engines if one.ours or one.control],
        min(arguments.threads or cores, cores),
        weigh=True,
    )
    return conclude(tables, arguments, Report.of(view), lambda record: with_knees(record, families))
