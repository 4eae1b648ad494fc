"""The ladder as a picture, from no optimisation to all. The gain of each, with the others on, is a
bar that starts where the one before ended; its gain alone is a ring."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlox_opt.views.axes import Axis, Tick, apart, round_step
from rlox_opt.views.pages import render

_WIDTH, _LEFT, _RIGHT = 900, 370, 90
_LABEL = 60  # the least room for a label of the axis
_TICKS = 9  # at most
_PERMILLE = -3  # the power of ten of the smallest step between two ticks


class _Bar(NamedTuple):
    """A bar from one ratio to another, with the ends of its interval, and its end alone (ring)."""

    label: str
    start: float
    end: float
    kind: str
    ends: Sequence[float] = ()
    alone: float | None = None


def waterfall(ladder: Mapping[str, Any]) -> str:
    """An SVG file. Lengths are logarithms of time ratios, so that they add up; labels are changes
    of speed in per cent."""
    bars = _bars(ladder)
    points = [x for b in bars for x in (b.start, b.end, *b.ends, b.alone) if x is not None]
    x = Axis.around(points, _LEFT, _WIDTH - _RIGHT, share=0.04, more=1e-3)
    drawn = render(
        "pictures/waterfall.svg",
        title=f"Training {ladder['ladder'].upper()}: from no optimisation to all of them",
        width=_WIDTH,
        bars=bars,
        x=x,
        ticks=_ticks(x),
        change=_change,
        in_page=False,
    )
    return f"{drawn}\n"


def _bars(ladder: Mapping[str, Any]) -> list[_Bar]:
    bars = []
    at = 1.0
    for step in ladder["steps"]:
        gain, alone = step["with_the_others"], step["alone"]
        end = at * gain["ratio"]
        kind = _kind(gain, "up" if gain["ratio"] >= 1 else "down")
        ends = [at * end for end in gain["ci95"] or ()]
        label = f"{step['id']}  {step['title']}"
        bars.append(_Bar(label, at, end, kind, ends, at * alone["ratio"]))
        at = end
    whole = ladder["together"]
    return [
        *bars,
        _Bar("what they share, or hinder", at, whole["ratio"], "rest"),
        _Bar("all together", 1.0, whole["ratio"], _kind(whole, "total"), whole["ci95"] or ()),
    ]


def _kind(found: Mapping[str, Any], kind: str) -> str:
    return kind if found["verdict"] in ("faster", "slower") else "noise"


def _ticks(x: Axis) -> list[Tick]:
    """No change, and round changes of speed on both sides of it."""
    low, high = x.low - 1, x.high - 1
    step = round_step(low, high, _TICKS, _PERMILLE)
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    ratios = [1 + number * step for number in numbers if number * step > -1]
    nearest = sorted(ratios, key=lambda ratio: abs(math.log(ratio)))
    return [Tick(x(one), _change(one), one == 1) for one in apart(nearest, x, _LABEL)]


def _change(ratio: float) -> str:
    """A ratio of speeds as a change: "+1.2 %"."""
    value = 100 * (ratio - 1)
    if round(value, 1) == 0:
        return "0 %"
    text = f"{value:+.1f} %" if abs(value) < 9.95 else f"{value:+.0f} %"
    return text.replace("-", "−")
