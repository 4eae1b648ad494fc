"""Ratios as text: a point with its interval on a logarithmic axis on which 1× is marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rlox_opt.views.axes import decades

_MARGIN = 1.08  # room beyond the outermost figure, as a factor
_SMALLEST = 1.15  # the axis reaches at least this factor to both sides of 1×
_GAP = 2  # characters between two labels
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)


class RatioPoint(NamedTuple):
    """A ratio, its interval, and the predicted band."""

    ratio: float
    ci95: tuple[float, float]
    band: tuple[float, float] | None = None


class TextAxis:
    """A logarithmic axis of `width` characters that contains all of `points` and 1×."""

    def __init__(self, points: Sequence[RatioPoint], width: int) -> None:
        ends = [end for point in points for end in (*point.ci95, point.ratio, *(point.band or ()))]
        self.low = min(1 / _SMALLEST, *ends) / _MARGIN
        self.high = max(_SMALLEST, *ends) * _MARGIN
        self.width = width

    def column(self, ratio: float) -> int:
        """The column of a ratio, from 0."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return min(self.width - 1, max(0, round(share * (self.width - 1))))

    def row(self, point: RatioPoint) -> str:
        """A point as a line: `░` the band, `├●┤` the interval around the ratio, `│` 1×."""
        line = [" "] * self.width
        if point.band:
            self._fill(line, point.band, "░")
        one = self.column(1.0)
        line[one] = "│"
        low, high = self._fill(line, point.ci95, "─")
        if low < one < high:
            line[one] = "┼"
        line[low], line[high] = "├", "┤"
        line[self.column(point.ratio)] = "●"
        return "".join(line)

    def scale(self) -> tuple[str, str]:
        """The axis and, below it, its labels."""
        ticks = next(ticks for ticks in self._candidates() if self._fits(ticks))
        line, labels = ["─"] * self.width, [" "] * self.width
        for tick in ticks:
            line[self.column(tick)] = "┴" if tick != 1 else "┼"
            start = self._start(tick)
            labels[start : start + len(_label(tick))] = _label(tick)
        return "".join(line), "".join(labels).rstrip()

    def _fill(self, line: list[str], ends: tuple[float, float], with_: str) -> tuple[int, int]:
        low, high = (self.column(end) for end in ends)
        line[low : high + 1] = with_ * (high + 1 - low)
        return low, high

    def _candidates(self) -> Iterator[list[float]]:
        """Sets of ticks, the finest first; the last one is 1× alone."""
        for step in _STEPS:
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            if last - first < self.width:
                yield [round(n * step, 2) for n in range(first, last + 1)]
        for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            yield decades(self.low, self.high, digits)
        yield [1.0]

    def _fits(self, ticks: Sequence[float]) -> bool:
        starts = [(self._start(tick), len(_label(tick))) for tick in ticks]
        return all(a + length + _GAP <= b for (a, length), (b, _) in pairwise(starts))

    def _start(self, tick: float) -> int:
        """Where the label of a tick begins: around it, within the axis."""
        length = len(_label(tick))
        return min(self.width - length, max(0, self.column(tick) - (length - 1) // 2))


def _label(tick: float) -> str:
    return f"{tick:g}×"
