"""A series as a small picture in a row: no axes, one line for each machine, marks at its
changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlox_opt.history.series import Point, Series

WIDTH, HEIGHT, _PAD = 132, 30, 3
_MOST = 66  # points that are drawn: of more, neighbours are averaged
_LEAST_SPAN = 0.04  # of the middle: smaller noise stays flat


class Spark(NamedTuple):
    """The picture: lines as "x,y x,y …", marks of (kind, x), the newest value's place, and its ends
    and changes in words."""

    lines: list[str]
    marks: list[tuple[str, str]]
    dot: tuple[str, str]
    told: str
    width: int = WIDTH
    height: int = HEIGHT


def _shown(series: Series) -> list[tuple[int, Point, float]]:
    """The values of a series to draw, each with its point and index: those that levels are found
    in, or otherwise the plain values."""
    levels = [(i, p, p.level) for i, p in enumerate(series.points) if p.level is not None]
    return levels or [(i, p, p.value) for i, p in enumerate(series.points)]


def sparkline(series: Series) -> Spark:
    """The picture of a series."""
    of = _shown(series)
    values = [value for *_, value in of]
    middle = (min(values) + max(values)) / 2
    span = max(max(values) - min(values), _LEAST_SPAN * middle) or 1.0

    def x(index: float) -> str:
        return f"{_PAD + index * (WIDTH - 2 * _PAD) / max(1, len(series.points) - 1):.1f}"

    def y(value: float) -> str:
        return f"{HEIGHT / 2 - (value - middle) * (HEIGHT - 2 * _PAD) / span:.1f}"

    lines = [
        " ".join(f"{x(i)},{y(value)}" for i, value in _thinned(of, machine))
        for machine in dict.fromkeys(point.machine for _, point, _ in of)
    ]
    marks = [
        ("worse" if series.slower(change) else "better", x(change.index))
        for change in series.changes
    ]
    last, _, value = of[-1]
    n = len(series.changes)
    told = f"{len(of)} commits, {n} level {'change' if n == 1 else 'changes'}"
    return Spark(lines, marks, (x(last), y(value)), told)


def _thinned(of: Sequence[tuple[int, Point, float]], machine: str) -> list[tuple[float, float]]:
    """A machine's points; neighbours are averaged if there are more than can be seen."""
    own = [(i, value) for i, point, value in of if point.machine == machine]
    size = -(-len(own) // _MOST)
    groups = [own[at : at + size] for at in range(0, len(own), size)]
    return [(group[-1][0], sum(v for _, v in group) / len(group)) for group in groups]
