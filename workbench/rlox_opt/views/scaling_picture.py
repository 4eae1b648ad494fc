"""Lines over sizes on two logarithmic axes, for the growth of costs. Our lines are drawn strong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from rlox_opt.views import units
from rlox_opt.views.axes import Axis, Tick, decades, spread
from rlox_opt.views.pages import render

_WIDTH, _HEIGHT = 900, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 190, 44, 52
_LABEL = 16  # between two names at the end of their lines
_COLOURS = ("#5a86a8", "#56ad74", "#8f7be0", "#b8860b", "#d5679a", "#37a3c4", "#8b9099", "#7a9a2e")
_OURS = ("#d0622f", "#a83a12")


@dataclass(frozen=True)
class Line:
    """An engine's (size, seconds) in order of size."""

    name: str
    points: Sequence[tuple[float, float]]
    ours: bool


@dataclass(frozen=True)
class Mark:
    """A size at which something changes, and what, in a few words."""

    at: float
    text: str


class _Named(NamedTuple):
    """A line's name beside its end: the height of the line's end, and the height of the name."""

    line: Line
    colour: str
    x: float
    y: float
    height: float


def picture(
    title: str,
    x_label: str,
    lines: Sequence[Line],
    marks: Sequence[Mark] = (),
    y_label: str = "time of a call",
    in_page: bool = False,
) -> Markup:
    """An SVG file; `in_page` it has no style of its own. Sizes and seconds must be over 0, and
    there must be a line."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    x, y = Axis.around(xs, _LEFT, right), Axis.around(ys, bottom, _TOP)
    colours, ours = iter(_COLOURS * len(lines)), iter(_OURS * len(lines))
    coloured = [(line, next(ours) if line.ours else next(colours)) for line in lines]
    return render(
        "pictures/scaling.svg",
        title=title,
        x_label=x_label,
        y_label=y_label,
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=right,
        top=_TOP,
        bottom=bottom,
        x=x,
        y=y,
        x_ticks=[Tick(x(tick), units.count(tick)) for tick in _ticks(xs)],
        y_ticks=[Tick(y(tick), units.fine_seconds(tick)) for tick in _ticks(ys)],
        marks=marks,
        lines=coloured,
        names=_names(coloured, x, y),
        in_page=in_page,
    ) + Markup("\n")


def _names(lines: Sequence[tuple[Line, str]], x: Axis, y: Axis) -> list[_Named]:
    """The lines' names, from the top down, without overlaps."""
    ends = [(line, colour, *line.points[-1]) for line, colour in lines]
    ends = sorted(ends, key=lambda end: y(end[3]))
    heights = spread([y(seconds) for *_, seconds in ends], _TOP, _HEIGHT - _BOTTOM, _LABEL)
    return [
        _Named(line, colour, x(size), y(seconds), round(height, 1))
        for (line, colour, size, seconds), height in zip(ends, heights, strict=True)
    ]


def _ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten within the values; if there are fewer than two, the values' own ends."""
    low, high = min(values), max(values)
    powers = decades(low, high)
    return powers if len(powers) > 1 else sorted({low, high})
