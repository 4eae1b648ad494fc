"""Figures for readers: three digits, a unit, and no more precision than was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

MISSING = "–"


def seconds(value: float | None) -> str:
    """A duration in the unit that keeps it between 1 and 1,000: "1.48 s", "12.3 ms", "48.4 µs"."""
    if value is None:
        return MISSING
    if not value:
        return "0 s"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(value) * scale >= 0.9995 or unit == "µs":
            return f"{_digits(value * scale)} {unit}"
    raise AssertionError("unreachable: the last unit takes what is left")


def fine_seconds(value: float | None) -> str:
    """The same, with nanoseconds below a microsecond: "340 ns"."""
    if value is None or not 0 < value < 0.9995e-6:
        return seconds(value)
    return f"{_digits(value * 1e9)} ns"


def percent(share: float | None) -> str:
    """A share of 1 as "66.4 %"; small shares have two decimals."""
    if share is None:
        return MISSING
    value = share * 100
    return f"{value:.2f} %" if 0 < abs(value) < 0.995 else f"{value:.1f} %"


def whole_percent(share: float) -> str:
    """A share for which more digits would say nothing: "66 %"."""
    return f"{100 * share:.0f} %"


def interval(ends: Sequence[float] | None) -> str:
    """A 95 % interval of a share: "65.1–67.7 %"."""
    if not ends:
        return MISSING
    low, high = (end * 100 for end in ends)
    places = 2 if high < 0.995 else 1
    return f"{low:.{places}f}–{high:.{places}f} %"


def points(half: float | None) -> str:
    """How far an interval of a share reaches to either side: "±0.42 points"."""
    return MISSING if half is None else f"±{_digits(100 * half)} points"


def factor(value: float | None) -> str:
    """A ratio: "1.32×"; close to 1 it has the digits in which it differs."""
    return MISSING if value is None else f"{_ratio(value, value)}×"


def factors(ends: Sequence[float] | None) -> str:
    """An interval of ratios: "1.30–1.34×"."""
    return f"{_ratio(ends[0], ends[0])}–{_ratio(ends[1], ends[0])}×" if ends else MISSING


def band(ends: Sequence[float] | None) -> str:
    """An interval of ratios as it was written down: "4.5–6.7×", "0.97–1.05×"."""
    if not ends:
        return MISSING
    places = 1 if all(round(end, 1) == end for end in ends) else 2
    return f"{ends[0]:,.{places}f}–{ends[1]:,.{places}f}×"


def estimate(value: float, ends: Sequence[float] | None) -> str:
    """A measured ratio with its interval, if it has one: "5.31× (5.1–5.6)", "1.003× (0.998–1.008)";
    a small one has two significant digits: "0.0068× (0.005–0.009)"."""
    if not ends:
        return factor(value)
    most = 3 if 0.9 <= value < 1.1 else 2 if value < 100 else 0
    if 0 < value < 0.1:
        most = 1 - math.floor(math.log10(value))
    half = (ends[1] - ends[0]) / 2
    needed = -math.floor(math.log10(half)) if half > 0 else most
    places = most if most == 3 else max(min(needed, most), min(1, most))
    return f"{value:,.{most}f}× ({ends[0]:,.{places}f}–{ends[1]:,.{places}f})"


def _ratio(value: float, like: float) -> str:
    """The value with the decimals for a ratio of the size of `like`."""
    return f"{value:,.{3 if like < 1.1 else 2 if like < 100 else 0}f}"


def count(value: float | None) -> str:
    """A number of things: "50,000"; averages that are not whole have two decimals."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:,.2f}"


def size(value: float | None) -> str:
    """Bytes: "512 B", "12.3 kB", "56.0 MB" (powers of 1,000)."""
    if value is None:
        return MISSING
    for unit in ("B", "kB", "MB"):
        if abs(value) < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{_digits(value)} {unit}"
        value /= 1000
    return f"{_digits(value)} GB"


def _digits(value: float) -> str:
    """Three significant digits, with separated thousands."""
    size = abs(value)
    places = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:,.{places}f}"
