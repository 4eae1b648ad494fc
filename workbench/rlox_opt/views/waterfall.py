"""The ladder as a picture: from none to all, each optimisation's gain with the others on as a bar
that starts where the one before ended, its gain alone as a ring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 900, 370, 90, 26, 54
_LABEL = 60  # of an axis, at least
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #222 }
.dim { fill: #666; font-size: 12px } .axis { stroke: #bbb } .one { stroke: #666 }
.up { fill: #2a8a57 } .down { fill: #c0483c } .total { fill: #5a6b86 } .rest { fill: #b9a26b }
.noise { fill: #9a9a9a; fill-opacity: 0.45 }
.ci { stroke: #222; stroke-width: 1.5 } .alone { fill: none; stroke: #7a4fb3; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c } text { fill: #e6e6e6 } .dim { fill: #a0a0a0 }
  .axis { stroke: #444 } .one { stroke: #999 } .ci { stroke: #eee } .alone { stroke: #b79be8 }
}
"""


def waterfall(ladder: Mapping[str, Any]) -> str:
    """An SVG file. Lengths are logarithms of ratios of time, so that they add up; labels are
    changes of speed in per cent."""
    # Label, from, to, class, interval, alone.
    bars: list[tuple[str, float, float, str, list[float], float | None]] = []
    at = 0.0
    for step in ladder["steps"]:
        change = math.log(step["with_the_others"]["ratio"])
        ends = [at + math.log(end) for end in step["with_the_others"]["ci95"] or ()]
        alone = at + math.log(step["alone"]["ratio"])
        kind = _kind(step["with_the_others"], "up" if change >= 0 else "down")
        bars.append((f"{step['id']}  {step['title']}", at, at + change, kind, ends, alone))
        at += change
    together = math.log(ladder["together"]["ratio"])
    ends = [math.log(end) for end in ladder["together"]["ci95"] or ()]
    bars.append(("what they share, or hinder", at, together, "rest", [], None))
    bars.append(("all together", 0.0, together, _kind(ladder["together"], "total"), ends, None))

    points = [0.0, *(x for bar in bars for x in (bar[1], bar[2], *bar[4], bar[5]) if x is not None)]
    low, high = min(points), max(points)
    low, high = low - 0.04 * (high - low) - 1e-3, high + 0.04 * (high - low) + 1e-3
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(value: float) -> str:
        return f"{_LEFT + (value - low) * scale:.1f}"

    bottom = _TOP + _ROW * len(bars)
    parts = [
        f'<text x="12" y="20" font-weight="600">Training {ladder["ladder"].upper()}: from no '
        "optimisation to all of them</text>",
        '<text x="12" y="38" class="dim">bar: change of speed with all others on (95 % interval); '
        "grey: below the noise; ring: alone</text>",
    ]
    for tick in _apart(_ticks(low, high), _LABEL / scale):
        css = "one" if tick == 0 else "axis"
        parts.append(
            f'<line class="{css}" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP - 8}" y2="{bottom}"/>'
            f'<text class="dim" text-anchor="middle" x="{x(tick)}" y="{bottom + 18}">'
            f"{_percent(tick)}</text>"
        )
    for number, (label, start, end, kind, ends, ring) in enumerate(bars):
        y = _TOP + number * _ROW
        middle, left, right = y + 9, min(start, end), max(start, end)
        shown = label if len(label) <= 49 else f"{label[:48]}…"
        parts.append(
            f'<text x="12" y="{y + 14}">{escape(shown)}<title>{escape(label)}</title></text>'
            f'<rect class="{kind}" x="{x(left)}" y="{y}" height="18" '
            f'width="{max(1.0, (right - left) * scale):.1f}"/>'
        )
        if ends:
            parts.append(
                f'<line class="ci" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{middle}" '
                f'y2="{middle}"/>'
            )
        if ring is not None:
            parts.append(f'<circle class="alone" cx="{x(ring)}" cy="{middle}" r="4"/>')
        parts.append(
            f'<text x="{_WIDTH - 12}" y="{y + 14}" text-anchor="end">{_percent(end - start)}</text>'
        )
    height = bottom + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img"><style>{_STYLE}</style>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def _kind(found: Mapping[str, Any], kind: str) -> str:
    return kind if found["verdict"] in ("faster", "slower") else "noise"


def _ticks(low: float, high: float) -> list[float]:
    """Round changes of speed within the axis, as logarithms."""
    for step in (digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)):
        first, last = math.ceil(math.expm1(low) / step), math.floor(math.expm1(high) / step)
        if last - first <= 8:
            return [math.log1p(n * step) for n in range(first, last + 1) if n * step > -1]
    return [0.0]


def _apart(ticks: list[float], distance: float) -> list[float]:
    """0, and those on either side of it that are no nearer to the one before."""
    kept = [0.0]
    for tick in sorted(ticks, key=abs):
        if min(abs(tick - other) for other in kept) >= distance:
            kept.append(tick)
    return kept


def _percent(change: float) -> str:
    """A logarithm as a signed change of speed: "+1.2 %"."""
    value = 100 * math.expm1(change)
    if value == 0:
        return "0 %"
    text = f"{value:+.1f} %" if abs(value) < 9.95 else f"{value:+.0f} %"
    return text.replace("-", "−")
