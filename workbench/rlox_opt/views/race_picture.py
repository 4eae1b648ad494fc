"""The standings as a picture: how many times as fast as the first peer, and how many times as soon
at the return, on one logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 900, 190, 150, 30, 62
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
# Every rule is of the picture alone, since it stands within the page as well.
STYLE = """
.race text { font: 13px system-ui, sans-serif; fill: #222 }
.race .dim { fill: #666; font-size: 12px } .race .axis { stroke: #ccc } .race .one { stroke: #666 }
.race .other { fill: #5a86a8 } .race .ours { fill: #d0622f }
.race .ci { stroke: #222; stroke-width: 1.5 }
.race .sooner { fill: #fff; stroke: #7a4fb3; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  .race { background: #16181c } .race text { fill: #e6e6e6 } .race .dim { fill: #a0a0a0 }
  .race .axis { stroke: #3a3f46 } .race .one { stroke: #999 } .race .ci { stroke: #eee }
  .race .sooner { fill: #16181c; stroke: #b79be8 }
}
"""


def picture(found: Mapping[str, Any]) -> str:
    """An SVG file, the fastest peer on top."""
    rows = sorted(found["table"], key=lambda row: -row["sps"])
    ratios = [row[key] for row in rows for key in ("sps_ratio", "reach_ratio") if row[key]]
    points = [1.0] + [x for r in ratios for x in (r["ratio"], *(r["ci95"] or ()))]
    low, high = math.log(min(points)) - 0.15, math.log(max(points)) + 0.15
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(ratio: float) -> float:
        return round(_LEFT + (math.log(ratio) - low) * scale, 1)

    bottom = _TOP + _ROW * len(rows)
    title = f"{found['race'].upper()} on {found['job']['env_id']}: times {found['held_to']}"
    parts = [
        f'<text x="12" y="20" font-weight="600">{escape(title)}</text>',
        '<text x="12" y="40" class="dim">bar: steps per second without compiling (95 % interval); '
        "ring: sooner at the return, compiling counted</text>",
    ]
    for tick in _TICKS:
        if low <= math.log(tick) <= high:
            css = "one" if tick == 1 else "axis"
            parts.append(
                f'<line class="{css}" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP - 8}" y2="{bottom}"/>'
                f'<text class="dim" text-anchor="middle" x="{x(tick)}" y="{bottom + 18}">'
                f"{tick:g}×</text>"
            )
    for number, row in enumerate(rows):
        parts += _row(row, _TOP + number * _ROW, x)
    height = bottom + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="race" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">'
        f"<style>{STYLE}</style>" + "\n".join(parts) + "</svg>\n"
    )


def _row(row: Mapping[str, Any], y: int, x: Any) -> list[str]:
    """A peer: its name, its bar from 1, whisker, ring, and its steps per second."""
    # The forms of this tree are rlox and rlox-…; the public package has its version in its name.
    name = row["peer"]
    kind = "ours" if name.startswith("rlox") and "1.2.0" not in name else "other"
    middle = y + 10
    parts = [f'<text x="12" y="{y + 15}">{escape(name)}</text>']
    if speed := row["sps_ratio"]:
        left, right = sorted((x(1.0), x(speed["ratio"])))
        parts.append(
            f'<rect class="{kind}" x="{left}" y="{y}" height="20" '
            f'width="{max(1.0, right - left):.1f}"/>'
        )
        if ends := speed["ci95"]:
            parts.append(
                f'<line class="ci" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{middle}" '
                f'y2="{middle}"/>'
            )
    if sooner := row["reach_ratio"]:
        parts.append(f'<circle class="sooner" cx="{x(sooner["ratio"])}" cy="{middle}" r="5"/>')
    parts.append(
        f'<text x="{_WIDTH - 12}" y="{y + 15}" text-anchor="end">{row["sps"]:,.0f} steps/s</text>'
    )
    return parts
