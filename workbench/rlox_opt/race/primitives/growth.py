"""`rlox-opt peers growth`: how the cost of each operation grows with its size."""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.cases import Case, Engine, Family, Growth
from rlox_opt.race.primitives.tables import Tables, conclude
from rlox_opt.system import exits
from rlox_opt.system.numbers import whole

_PER_DECADE = 4
_WEIGHTS = ("share", "held", "peak", "faults")
_EXAMPLES = """\
examples:
  rlox-opt peers growth
  rlox-opt peers growth --only gae,sample --runs 3

Each operation is timed over four decades of its size, ours and NumPy's in turn, in this
interpreter. Marked is where the slope of ln(time) over ln(size) changes; beside it stands what
happens there: a cache of this machine (as Linux tells it) is outgrown, or a second thread joins
(CPU time over wall time). Memory is what a call's result holds, what Python and NumPy allocate
within a call, and its page faults.
Ctrl-C keeps what is timed: the same command goes on.
"""


def add_to(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "growth",
        help="how the cost of single operations grows with their size",
        description="Time single operations of this library over four decades of their size, "
        "NumPy beside: time per element, where the slope changes, memory of a call; a record, a "
        "page and Markdown under peers/record/.",
        epilog=_EXAMPLES
        + exits.told(
            cannot_tell="also where nothing was timed", interrupted="what is timed is kept"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=whole(1), default=5, metavar="N", help="restarts (default: 5)")
    add("--only", metavar="LIST", help="comma-separated operations")
    add("--threads", type=whole(1), metavar="N", help="cores of each engine (default: all)")
    add("--no-record", action="store_true", help="write no record")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Time as asked; returns the exit code."""
    from rlox_opt.views import growth as report

    every, engines = cases.load(arguments.project)
    families = {family.name: family for family in every if family.growth}
    names = list(families)
    if arguments.only is not None:
        names = [name.strip() for name in arguments.only.split(",")]
        for name in names:
            if name not in families:
                known = ", ".join(families)
                arguments.parser.error(f"--only: is {name!r}, expected some of {known}")
    cores = len(os.sched_getaffinity(0))
    threads = min(arguments.threads or cores, cores)
    chosen = [case for name in names for case in cases_of(families[name])]
    takes = [in_this_interpreter(one) for one in engines if one.ours or one.control]
    tables = Tables(
        arguments.project, "growth", list(families.values()), chosen, takes, threads, weigh=True
    )
    return conclude(tables, arguments, report, lambda found: with_knees(found, families))


def in_this_interpreter(engine: Engine) -> Engine:
    """The engine without an environment of its own."""
    return dataclasses.replace(engine, peer=dataclasses.replace(engine.peer, lock=None))


def cases_of(family: Family) -> list[Case]:
    """The family at sizes that grow evenly from the first to the last."""
    growth = family.growth
    assert growth is not None
    return [Case(family.name, {growth.axis: n, **growth.fixed}) for n in sizes_of(growth)]


def sizes_of(growth: Growth) -> list[int]:
    """Four a decade."""
    sizes: list[int] = []
    n = 0
    while not sizes or sizes[-1] < growth.last:
        sizes.append(round(growth.first * 10 ** (n / _PER_DECADE)))
        n += 1
    return sorted({min(size, growth.last) for size in sizes})


def with_knees(found: dict[str, Any], families: Mapping[str, Family]) -> dict[str, Any]:
    """The record with `curves`: by family and engine its sizes, seconds a call, memory and knees,
    each with what changes there."""
    from rlox_opt.stats import slopes

    caches = slopes.caches()
    curves = []
    for of in found["families"]:
        growth = families[of["name"]].growth
        assert growth is not None
        own = [case for case in found["cases"] if case["family"] == of["name"]]
        for engine in [row["name"] for row in found["engines"]]:
            points = [
                (case["size"][growth.axis], case["key"], row)
                for case in own
                for row in case["rows"]
                if row["engine"] == engine
            ]
            if points:
                weights = [_weights(found["readings"], key, engine) for _, key, _ in points]
                curve = _curve(growth, points, weights, caches)
                curves.append({"family": of["name"], "engine": engine, **curve})
    return {**found, "caches": caches, "curves": curves}


def _weights(readings: Sequence[Mapping[str, Any]], key: str, engine: str) -> dict[str, float]:
    """Medians over restarts of the engine's CPU share, bytes held and at the peak, page faults; of
    those restarts in which it did not fail."""
    times = [
        row["times"][engine] for row in readings if row["case"] == key and engine in row["times"]
    ]
    return {
        name: statistics.median(row[name] for row in times if name in row)
        for name in _WEIGHTS
        if any(name in row for row in times)
    }


def _curve(
    growth: Growth,
    points: Sequence[tuple[int, str, Mapping[str, Any]]],
    weights: Sequence[Mapping[str, float]],
    caches: Mapping[str, int],
) -> dict[str, Any]:
    from rlox_opt.stats import slopes

    sizes = [size for size, *_ in points]
    seconds = [row["s"] for *_, row in points]
    marks = []
    for knee in slopes.knees(sizes, seconds) if len(sizes) > 4 else []:
        at = sizes.index(int(knee.at))
        shares = [one.get("share", 1.0) for one in weights]
        beside = (shares[at - 1], shares[min(at + 1, len(shares) - 1)])
        why = slopes.explain(knee, growth.touched * knee.at, caches, beside)
        marks.append({**dataclasses.asdict(knee), "why": why})
    return {
        "axis": growth.axis,
        "sizes": sizes,
        "s": seconds,
        "ci95": [row["ci95"] for *_, row in points],
        **{name: [one.get(name) for one in weights] for name in _WEIGHTS},
        "knees": marks,
    }
