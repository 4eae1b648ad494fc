"""The operating curve as pictures: the probability of each verdict, by true slowdown and
scatter."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlox_opt.views import units
from rlox_opt.views.site.layout import Table

_Record = Mapping[str, Any]
_WIDTH, _HEIGHT = 250, 150
_LEFT, _RIGHT, _TOP, _FLOOR = 40, _WIDTH - 8, 8, _HEIGHT - 34  # the edges of the drawing
# In order from the axis upwards.
_VERDICTS = ("slower", "undecided", "same", "faster")


class _Picture(NamedTuple):
    """Shares stacked over the slowdown: `areas` are (verdict, "x,y x,y …"), `line` is the place of
    the threshold, `shares` are (height, label) beside the axis, `slowdowns` (x, label) below it.
    `told` names the scatter of restarts, `found` describes the picture in words."""

    told: str
    found: str
    areas: list[tuple[str, str]]
    line: str
    shares: list[tuple[str, str]]
    slowdowns: list[tuple[str, str]]
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    floor: int = _FLOOR


class Operating(NamedTuple):
    """The newest record: pictures by threshold, one for each scatter, and all shares as a table."""

    record: _Record
    verdicts: Sequence[str]
    pictures: Mapping[str, Sequence[_Picture]]
    shares: Table


def operating(records: Sequence[_Record]) -> Operating:
    """The contents of the page, from the newest record."""
    record = records[-1]
    rows = [
        (
            f"{point['threshold']:g} %", f"{point['scatter']:g} %", f"{point['slowdown']:g} %",
            *(units.percent(point["shares"].get(said, 0.0)) for said in _VERDICTS),
        )
        for point in record["points"]
    ]  # fmt: skip
    columns = ("Threshold", "Scatter of a restart", "Truly slower by", *_VERDICTS)
    thresholds = dict.fromkeys(point["threshold"] for point in record["points"])
    return Operating(
        record,
        _VERDICTS[:3],
        {f"{of:g}": _pictures(of, record["points"]) for of in thresholds},
        Table(dict.fromkeys(columns), rows, "Share of each verdict, simulated"),
    )


def _pictures(threshold: float, points: Sequence[_Record]) -> list[_Picture]:
    own = [point for point in points if point["threshold"] == threshold]
    groups = itertools.groupby(own, key=lambda point: point["scatter"])
    return [_picture(threshold, scatter, [*group]) for scatter, group in groups]


def _picture(threshold: float, scatter: float, points: Sequence[_Record]) -> _Picture:
    most = points[-1]["slowdown"] or 1.0

    def x(slowdown: float) -> str:
        return f"{_LEFT + slowdown / most * (_RIGHT - _LEFT):.1f}"

    def y(share: float, lower: float = 0.0) -> str:
        return f"{_FLOOR - share * (_FLOOR - _TOP) + lower:.1f}"

    areas = []
    below = [0.0] * len(points)
    for said in _VERDICTS:
        above = [b + p["shares"].get(said, 0.0) for b, p in zip(below, points, strict=True)]
        there = [(p["slowdown"], a) for p, a in zip(points, above, strict=True)]
        back = [(p["slowdown"], b) for p, b in zip(points, below, strict=True)]
        outline = " ".join(f"{x(at)},{y(share)}" for at, share in [*there, *reversed(back)])
        areas.append((said, outline))
        below = above
    half = next((p["slowdown"] for p in points if p["shares"].get("slower", 0.0) >= 0.5), None)
    told = f"Restarts that scatter by {scatter:g} %"
    found = f"no slowdown up to {most:g} %" if half is None else f"slowdowns from {half:g} % on"
    return _Picture(
        told,
        f"{told}, at a threshold of {threshold:g} %: {found} called slower in half of the runs or "
        "more",
        areas,
        x(threshold),
        [(y(share, 4), f"{share:.0%}") for share in (0.0, 0.5, 1.0)],
        [(x(at), f"{at:g}") for at in (0, most / 4, most / 2, 3 * most / 4, most)],
    )
