"""Ratios on a logarithmic axis, as rows of plain HTML: a band, a point and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rlox_opt.views import units
from rlox_opt.views.site.layout import Html, html, join, tag

_TICKS = (
    0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.01, 1.02, 1.03, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20,
    50, 100,
)  # fmt: skip
_MARGIN = 1.06  # of the axis' length beyond the outermost figure
_APART = 0.09  # of the axis' length between two labels


@dataclass(frozen=True)
class Row:
    """A ratio with its interval, and a band, as one that was predicted; None is not known. `kind`
    is the point's CSS class."""

    title: object
    said: object
    band: tuple[float, float] | None = None
    ratio: float | None = None
    ci: tuple[float, float] | None = None
    kind: str = ""


def chart(rows: Sequence[Row], told: str, mark: float = 1.0) -> Html:
    """The rows on one axis, which holds 1× and the `mark`; `told` is the picture in words."""
    ends = [1.0, mark]
    for row in rows:
        ends += [*(row.band or ()), *(row.ci or ()), *([row.ratio] if row.ratio else [])]
    length = math.log(max(ends) / min(ends)) * _MARGIN
    start = math.log(min(ends)) - length * (_MARGIN - 1) / 2

    def at(ratio: float) -> float:
        return (math.log(ratio) - start) / length

    def left(ratio: float) -> str:
        return f"left:{100 * at(ratio):.2f}%"

    def span(ends: tuple[float, float]) -> str:
        return f"{left(ends[0])};width:{100 * (at(ends[1]) - at(ends[0])):.2f}%"

    kept = [1.0]
    for tick in sorted(_TICKS, key=lambda tick: abs(math.log(tick))):
        if 0 <= at(tick) <= 1 and all(abs(at(tick) - at(one)) >= _APART for one in kept):
            kept.append(float(tick))
    grid = "".join(f'<u style="{left(tick)}"></u>' for tick in kept)
    grid += f'<u class="one" style="{left(mark)}"></u>'

    def track(row: Row) -> str:
        band = f'<i style="{span(row.band)}"></i>' if row.band else ""
        whisker = f'<b style="{span(row.ci)}"></b>' if row.ci else ""
        dot = f'<s class="{row.kind}" style="{left(row.ratio)}"></s>' if row.ratio else ""
        return f'<span class="track">{grid}{band}{whisker}{dot}</span>'

    inner = [
        Html(
            f'<div class="bar"><span>{html(row.title)}</span>{track(row)}'
            f'<span class="said">{html(row.said)}</span></div>'
        )
        for row in rows
    ]
    labels = "".join(f'<span style="{left(tick)}">{tick:g}×</span>' for tick in kept)
    axis = Html(
        '<div class="bar axis" aria-hidden="true"><span></span>'
        f'<span class="track">{labels}</span></div>'
    )
    return tag("div", join([*inner, axis], "\n"), class_="chart", role="group", aria_label=told)


def estimate(ratio: float, ci: Sequence[float] | None) -> str:
    """A ratio with its interval, where it has one."""
    return units.estimate(ratio, ci) if ci else units.factor(ratio)
