"""Lines over sizes on two logarithmic axes: who grows how. Ours are drawn strong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from rlox_opt.views import units

_WIDTH, _HEIGHT = 900, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 190, 44, 52
_LABEL = 16  # between two names at the end of their lines
_COLOURS = ("#5a86a8", "#56ad74", "#8f7be0", "#b8860b", "#d5679a", "#37a3c4", "#8b9099", "#7a9a2e")
_OURS = ("#d0622f", "#a83a12")
# Every rule is of the picture alone, since it stands within the page as well.
STYLE = """
.scaling text { font: 13px system-ui, sans-serif; fill: #222 }
.scaling .dim { fill: #666; font-size: 12px } .scaling .axis { stroke: #ddd }
.scaling .mark { stroke: #888; stroke-dasharray: 3 4 }
.scaling polyline { fill: none; stroke-width: 1.6 } .scaling .ours { stroke-width: 3 }
@media (prefers-color-scheme: dark) {
  .scaling { background: #16181c } .scaling text { fill: #e6e6e6 }
  .scaling .dim { fill: #a0a0a0 } .scaling .axis { stroke: #33373d }
}
"""


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


def picture(
    title: str,
    x_label: str,
    lines: Sequence[Line],
    marks: Sequence[Mark] = (),
    y_label: str = "time of a call",
) -> str:
    """An SVG file. Sizes and seconds must be over 0, and there must be a line."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x, y = _axis(xs, _LEFT, _WIDTH - _RIGHT), _axis(ys, _HEIGHT - _BOTTOM, _TOP)
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [
        f'<text x="12" y="20" font-weight="600">{escape(title)}</text>',
        f'<text class="dim" x="{right}" y="{bottom + 40}" text-anchor="end">{escape(x_label)}'
        "</text>",
        f'<text class="dim" x="{right}" y="20" text-anchor="end">{escape(y_label)}</text>',
    ]
    for tick in _ticks(xs):
        parts.append(
            f'<line class="axis" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP}" y2="{bottom}"/>'
            f'<text class="dim" text-anchor="middle" x="{x(tick)}" y="{bottom + 18}">'
            f"{units.count(tick)}</text>"
        )
    for tick in _ticks(ys):
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{y(tick)}" y2="{y(tick)}"/>'
            f'<text class="dim" text-anchor="end" x="{_LEFT - 8}" y="{y(tick) + 4}">'
            f"{units.fine_seconds(tick)}</text>"
        )
    for number, mark in enumerate(marks):
        height = _TOP + 12 + 15 * (number % 4)  # neighbours' words stand below each other
        parts.append(
            f'<line class="mark" x1="{x(mark.at)}" x2="{x(mark.at)}" y1="{_TOP}" y2="{bottom}"/>'
            f'<text class="dim" x="{x(mark.at) + 4}" y="{height}">{escape(mark.text)}</text>'
        )
    parts += _drawn(lines, x, y, right)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scaling" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<style>{STYLE}</style>" + "\n".join(parts) + "</svg>\n"
    )


def _drawn(
    lines: Sequence[Line], x: Callable[[float], float], y: Callable[[float], float], right: int
) -> list[str]:
    """The lines with their points, and their names beside the ends, apart from each other."""
    parts, colours, ours = [], iter(_COLOURS * len(lines)), iter(_OURS * len(lines))
    ends = []
    for line in lines:
        colour = next(ours) if line.ours else next(colours)
        kind = ' class="ours"' if line.ours else ""
        at = " ".join(f"{x(size)},{y(value)}" for size, value in line.points)
        parts.append(f'<polyline{kind} points="{at}" stroke="{colour}"/>')
        parts += [
            f'<circle cx="{x(size)}" cy="{y(value)}" r="{3.5 if line.ours else 2.5}" '
            f'fill="{colour}"><title>{escape(line.name)}, {units.count(size)}: '
            f"{units.fine_seconds(value)}</title></circle>"
            for size, value in line.points
        ]
        size, value = line.points[-1]
        ends.append((y(value), x(size), line, colour))
    lowest = float(_TOP)
    for wanted, from_x, line, colour in sorted(ends, key=lambda end: end[0]):
        height = max(wanted, lowest)
        lowest = height + _LABEL
        weight = ' font-weight="600"' if line.ours else ""
        parts.append(
            f'<line x1="{from_x}" y1="{wanted}" x2="{right + 14}" y2="{height:.1f}" '
            f'stroke="{colour}" stroke-width=".6"/><circle cx="{right + 18}" cy="{height:.1f}" '
            f'r="4" fill="{colour}"/><text x="{right + 27}" y="{height + 4:.1f}"{weight}>'
            f"{escape(line.name)}</text>"
        )
    return parts


def _axis(values: Sequence[float], start: int, end: int) -> Callable[[float], float]:
    """Where a value lies between `start` and `end`, by its logarithm."""
    low, high = math.log(min(values)), math.log(max(values))
    span = max(high - low, 1e-9)
    return lambda value: round(start + (end - start) * (math.log(value) - low) / span, 1)


def _ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten within the values; with fewer than two, the values' own ends."""
    low, high = min(values), max(values)
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    powers = [10.0**n for n in range(first, last + 1)]
    return powers if len(powers) > 1 else sorted({low, high})
