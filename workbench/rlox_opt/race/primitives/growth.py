"""How the cost of an operation grows with its size: the sizes, and the curves of a record."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.race.primitives.cases import Case, Engine, Family, Growth

_PER_DECADE = 4
_WEIGHTS = ("share", "held", "peak", "faults")


def in_this_interpreter(engine: Engine) -> Engine:
    """The engine without an environment of its own."""
    return dataclasses.replace(engine, peer=dataclasses.replace(engine.peer, lock=None))


def cases_of(family: Family) -> list[Case]:
    """The family at sizes that are evenly spaced, on a logarithmic scale, from first to last."""
    growth = family.growth
    assert growth is not None
    return [Case(family.name, {growth.axis: n, **growth.fixed}) for n in sizes_of(growth)]


def sizes_of(growth: Growth) -> list[int]:
    """The sizes, four in each decade."""
    sizes: list[int] = []
    n = 0
    while not sizes or sizes[-1] < growth.last:
        sizes.append(round(growth.first * 10 ** (n / _PER_DECADE)))
        n += 1
    return sorted({min(size, growth.last) for size in sizes})


def with_knees(record: dict[str, Any], families: Mapping[str, Family]) -> dict[str, Any]:
    """The record with `curves`: by family and engine the sizes, seconds of a call, memory, and
    knees with their explanations."""
    from rlox_opt.stats import slopes

    caches = slopes.caches()
    curves = []
    for of in record["families"]:
        growth = families[of["name"]].growth
        assert growth is not None
        own = [case for case in record["cases"] if case["family"] == of["name"]]
        for engine in [row["name"] for row in record["engines"]]:
            points = [
                (case["size"][growth.axis], case["key"], row)
                for case in own
                for row in case["rows"]
                if row["engine"] == engine
            ]
            if points:
                weights = [_weights(record["readings"], key, engine) for _, key, _ in points]
                curve = _curve(growth, points, weights, caches)
                curves.append({"family": of["name"], "engine": engine, **curve})
    return {**record, "caches": caches, "curves": curves}


def _weights(readings: Sequence[Mapping[str, Any]], key: str, engine: str) -> dict[str, float]:
    """Medians over the restarts in which the engine did not fail: CPU share, bytes of a result and
    at the peak, page faults."""
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
