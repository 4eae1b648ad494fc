"""Figures of the site as text: ratios, changes, values with their units."""

from __future__ import annotations

from rlox_opt.history.series import Point
from rlox_opt.views import units


def against(point: Point) -> str:
    """A point's ratio to its control, with the 99 % interval."""
    return units.MISSING if point.ratio is None else units.estimate(point.ratio, point.ci99)


def amount(kind: str, value: float) -> str:
    """A value with its unit."""
    if kind in ("time", "criterion"):
        return units.seconds(value)
    if kind == "peak_memory":
        return units.size(value)
    return f"{units.count(value)}{' steps/s' if kind == 'steps' else ''}"


def change(ratio: float) -> str:
    """A ratio as a change: "+12.3 %"."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def points(difference: float) -> str:
    """A difference of shares: "+2.1 points"."""
    return f"{100 * difference:+.1f} points".replace("-", "−")
