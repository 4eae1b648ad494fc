"""The sizes at which the cost of a call changes its slope, and the likely reasons.

ln(seconds) over ln(size) is fitted by straight pieces that meet. A slope of 0 is a cost that does
not depend on the size, a slope of 1 a cost proportional to it. Knees are added where they lower the
residuals most, as long as the Bayesian information criterion (Schwarz 1978) improves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_KNEES = 4
_LEAST_TURN = 0.15  # of a slope; smaller changes are not reported
_NOISE = 0.02  # of ln(seconds): smaller residuals are no evidence
_NEAR = 2.5  # a knee within this factor of a cache's size is explained by the cache
_PARALLEL = 1.2  # above this CPU time over wall time, a second thread is at work
_FIXED = 0.5  # below this slope, most of the cost is fixed
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Knee:
    """A size at which the slope goes from `before` to `after`."""

    at: float
    before: float
    after: float


def knees(sizes: Sequence[float], seconds: Sequence[float]) -> list[Knee]:
    """The knees, in order of size; sizes ascend and are over 0."""
    x, y = np.log(np.asarray(sizes, np.float64)), np.log(np.asarray(seconds, np.float64))
    best = _fit(x, y, ())
    while len(best.at) < _MOST_KNEES:
        tried = _least(x, y, best.at)
        if tried is None:
            break
        for place in range(len(tried.at)):
            # The other knees may fit better elsewhere once one is added.
            rest = tried.at[:place] + tried.at[place + 1 :]
            tried = min(tried, _least(x, y, rest) or tried, key=lambda one: one.score)
        if tried.score >= best.score:
            break
        best = tried
    slopes = np.cumsum(best.turns)
    return [
        Knee(float(sizes[i]), float(slopes[k]), float(slopes[k + 1])) for k, i in enumerate(best.at)
    ]


class _Fit(NamedTuple):
    """Straight pieces that meet at the points `at`: the criterion (`score`), and in `turns` the
    first slope and its change at each point."""

    score: float
    turns: NDArray[np.float64]
    at: tuple[int, ...]


def _least(x: NDArray[np.float64], y: NDArray[np.float64], at: tuple[int, ...]) -> _Fit | None:
    """The best fit with one knee more than `at`; None if no further knee is large enough."""
    # A slope needs two points at either end.
    free = [i for i in range(2, len(x) - 2) if all(abs(i - j) > 1 for j in at)]
    tried = [_fit(x, y, tuple(sorted((*at, i)))) for i in free]
    worth = [one for one in tried if np.abs(one.turns[1:]).min() >= _LEAST_TURN]
    return min(worth, key=lambda one: one.score, default=None)


def _fit(x: NDArray[np.float64], y: NDArray[np.float64], at: tuple[int, ...]) -> _Fit:
    columns = [np.ones_like(x), x - x[0], *(np.maximum(x - x[i], 0) for i in at)]
    design = np.stack(columns, axis=1)
    solution = np.linalg.lstsq(design, y)[0]
    n, residual = len(x), float(np.mean((design @ solution - y) ** 2))
    parameters = 2 + 2 * len(at)  # each knee has a place and a change of slope
    score = n * math.log(residual + _NOISE**2) + parameters * math.log(n)
    return _Fit(score, solution[1:], at)


def explain(
    knee: Knee,
    touched: float,
    caches: Mapping[str, int],
    shares: tuple[float, float],
) -> str:
    """What changes at a knee, in a few words.

    `touched` is the number of bytes that a call reads and writes at that size, `shares` is its CPU
    time over wall time below and above the knee.
    """
    below, above = shares
    if below < _PARALLEL <= above:
        return "a second thread joins"
    if knee.after > knee.before:
        near = [
            (abs(math.log(touched / size)), name, size)
            for name, size in caches.items()
            if size / _NEAR <= touched <= size * _NEAR
        ]
        if near:
            _, name, size = min(near)
            return f"outgrows {name} ({size / 1024:,.0f} KiB)"
        if knee.before < _FIXED:
            return "work outweighs the call"
        return "rises, without a cache of that size"
    return "falls: larger pieces at once" if knee.before >= _FIXED else "falls"


def caches(folder: Path = _CACHES) -> dict[str, int]:
    """This machine's data caches in bytes by name, the smallest first; empty where Linux does not
    say."""
    sizes = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind, level, size = (
                (index / name).read_text().strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            sizes["L1d" if level == "1" else f"L{level}"] = int(size.removesuffix("K")) * 1024
    return dict(sorted(sizes.items(), key=lambda item: item[1]))
