"""Scores of a detector on synthetic histories: how often it reports a change where there is one and
where there is none, and how long after it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from asv_bench.injected.journal import Step
from asv_bench.levels.detectors import Detector, Jumps
from asv_bench.levels.synthetic import COMMITS, SHAPES, Shape, drawn, places, shapes

NEAR = 2  # commits from the true change
CHUNKS = {"whole": 50, "live": 5}  # histories in one step of the work
KEY = ("what", "noise", "shape", "detector", "version", "first", "chunk")  # of a step
_FIRST_LOOK = 10  # commits
_LAST_LOOK = 20  # commits after a change
_LIVE = [shape for shape in SHAPES if shape.name in ("+3 % in the middle", "+5 % in the middle")]

Row = dict[str, Any]


def steps(
    detectors: Sequence[Detector], noises: Sequence[str], counts: dict[str, int], first: int
) -> Iterator[Step]:
    """The steps of scoring. `counts` of histories are by kind: "flat" and "change" for whole ones,
    "live" for those that are searched after every commit. `first` is the number, and so the seed,
    of the first history."""
    for noise in noises:
        for shape in shapes(noise):
            for what in ("whole", "live"):
                if what == "live" and shape.jumps and shape not in _LIVE:
                    continue
                of = what if what == "live" else "change" if shape.jumps else "flat"
                for detector in detectors:
                    for chunk in range(counts[of] // CHUNKS[what]):
                        yield _step(detector, noise, shape, what, first, chunk)


def _step(detector: Detector, noise: str, shape: Shape, what: str, first: int, chunk: int) -> Step:
    of = (what, noise, shape.name, detector.name, detector.version, first, chunk)
    key = dict(zip(KEY, of, strict=True))

    def does() -> Row:
        look = whole if what == "whole" else live
        numbers = range(first + chunk * CHUNKS[what], first + (chunk + 1) * CHUNKS[what])
        told = [look(detector, noise, shape, number) for number in numbers]
        return {"histories": len(told), **summed(told)}

    title = f"{detector.name}: {noise}, {shape.name}, {what} {chunk + 1}"
    return Step(detector.name, title, key, does)


def _history(noise: str, shape: Shape, number: int) -> Any:
    # All shapes get the same noise, so that only the change differs between them.
    return drawn(noise, shape, [crc32(noise.encode()), number])


def whole(detector: Detector, noise: str, shape: Shape, number: int) -> Row:
    """Score a whole history: were all its changes located, and was another one reported?"""
    jumps = detector.changes(_history(noise, shape, number), places(noise))
    return {
        "located": bool(shape.jumps) and all(located(jumps, *jump) for jump in shape.jumps.items()),
        "false": any(all(abs(at - true) > NEAR for true in shape.jumps) for at, _ in jumps),
    }


def live(detector: Detector, noise: str, shape: Shape, number: int) -> Row:
    """Score a history that is searched after every commit. Without a change: was one ever reported?
    With a change: after how many commits was it located (infinity: not within twenty)?"""
    logs, where = _history(noise, shape, number), places(noise)
    if not shape.jumps:
        looks = range(_FIRST_LOOK, COMMITS + 1)
        return {"false": any(detector.changes(logs[:n], where[:n]) for n in looks)}
    ((at, jump),) = shape.jumps.items()
    for n in range(1, _LAST_LOOK + 1):
        if located(detector.changes(logs[: at + n], where[: at + n]), at, jump):
            return {"commits": n}
    return {"commits": math.inf}


def located(jumps: Jumps, at: int, jump: float) -> bool:
    """Whether a change was found: near its commit, and in its direction."""
    return any(abs(index - at) <= NEAR and log * jump > 0 for index, log in jumps)


def summed(told: Sequence[Row]) -> Row:
    """The number of rows in which each value is true; for commits, the list."""
    truths = [name for name in ("located", "false") if name in told[0]]
    out: Row = {name: sum(row[name] for row in told) for name in truths}
    if "commits" in told[0]:
        out["commits"] = [None if row["commits"] == math.inf else row["commits"] for row in told]
    return out


def cells(rows: Sequence[Row]) -> list[Row]:
    """The rows of each cell, with its chunks put together."""
    by_key: dict[tuple[str, ...], Row] = {}
    for row in rows:
        of = {name: row.get(name, 0) for name in KEY[:-1]}
        cell = by_key.setdefault(tuple(of.values()), of)
        for name in ("histories", "located", "false", "commits"):
            if name in row:
                cell[name] = cell[name] + row[name] if name in cell else row[name]
    return list(by_key.values())


def table(of: Sequence[Row]) -> Iterator[str]:
    """A table with a line for each noise and shape, and a column for each detector."""
    detectors = list(dict.fromkeys(cell["detector"] for cell in of))
    wide = max(map(len, detectors), default=0)
    yield from (f"({number}) {name:{wide}}" for number, name in enumerate(detectors, 1))
    for what, title in _TITLES.items():
        lines: dict[str, dict[str, str]] = {}
        for cell in of:
            if (said := _said(cell, what)) is not None:
                line = lines.setdefault(f"{cell['noise']}, {cell['shape']}", {})
                line[cell["detector"]] = said
        if lines:
            heads = "".join(f"{f'({number})':>10}" for number in range(1, len(detectors) + 1))
            yield f"\n{title}\n{'':44}{heads}"
        for name, line in lines.items():
            yield f"{name:44}" + "".join(f"{line.get(d, '–'):>10}" for d in detectors)


_TITLES = {
    "flat": "share of histories without a change in which one is told",
    "located": f"share of histories whose changes are all located within {NEAR} commits",
    "false": "share of those in which another change is told, too",
    "flat live": "share of histories without a change in which one is told at some time, looked at "
    "after every commit",
    "delay": "commits from the change on until it is located: median / nine of ten",
}


def _said(cell: Row, what: str) -> str | None:
    flat, is_live = cell["shape"].startswith(SHAPES[0].name), cell["what"] == "live"
    if what == "delay" and "commits" in cell:
        ranked = sorted(math.inf if n is None else n for n in cell["commits"])
        at = [ranked[math.ceil(share * len(ranked)) - 1] for share in (0.5, 0.9)]
        return " / ".join("–" if n == math.inf else str(n) for n in at)
    fits = {
        "flat": flat and not is_live, "located": not flat and not is_live,
        "false": not flat and not is_live, "flat live": flat and is_live, "delay": False,
    }  # fmt: skip
    count = cell.get("located" if what == "located" else "false")
    return f"{count / cell['histories']:.3f}" if fits[what] and count is not None else None
