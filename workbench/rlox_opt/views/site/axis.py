"""Ratios on a logarithmic axis: the places of a band, a point and its interval, in per cent of the
axis's length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rlox_opt.views.axes import Axis, apart

_TICKS = (
    0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.01, 1.02, 1.03, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20,
    50, 100,
)  # fmt: skip
_MARGIN = 0.03  # of the figures' span, on both sides
_APART = 9.0  # per cent between two labels
_Span = tuple[str, str]  # begin and width


class Row(NamedTuple):
    """A ratio `of` something with its interval and a band, for example a predicted one; None if not
    known. `kind` is the point's CSS class."""

    of: Any
    said: str
    band: tuple[float, float] | None = None
    ratio: float | None = None
    ci: tuple[float, float] | None = None
    kind: str = ""


class _PlacedRow(NamedTuple):
    """A row in per cent of the axis."""

    of: Any
    said: str
    band: _Span | None
    at: str | None
    ci: _Span | None
    kind: str


class Placed(NamedTuple):
    """Rows on one axis; `ticks` are (place, ratio), `mark` is the place of a vertical line."""

    rows: list[_PlacedRow]
    ticks: list[tuple[str, str]]
    mark: str


def axis(rows: Sequence[Row], mark: float = 1.0) -> Placed:
    """The rows on one axis that contains 1× and the `mark`."""
    ends = [1.0, mark]
    for row in rows:
        ends += [*(row.band or ()), *(row.ci or ()), *([row.ratio] if row.ratio else [])]
    at = replace(Axis.around(ends, 0, 100, _MARGIN), digits=6)

    def left(ratio: float) -> str:
        return f"{at(ratio):.2f}"

    def span(ends: tuple[float, float] | None) -> _Span | None:
        return (left(ends[0]), f"{at(ends[1]) - at(ends[0]):.2f}") if ends else None

    within = [tick for tick in _TICKS if at.low <= tick <= at.high]
    kept = apart(sorted(within, key=lambda tick: abs(math.log(tick))), at, _APART)
    placed = [
        _PlacedRow(
            row.of,
            row.said,
            span(row.band),
            left(row.ratio) if row.ratio else None,
            span(row.ci),
            row.kind,
        )
        for row in rows
    ]
    return Placed(placed, [(left(tick), f"{tick:g}") for tick in kept], left(mark))
