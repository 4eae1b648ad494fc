"""Level changes of series: where what a benchmark takes, beside its control, jumped and stayed.

Readings of commit after commit are noisy, have outliers, and may remember the readings before them
(autocorrelation, which makes plain tests see changes everywhere). So a series is modelled as levels
plus AR(1) noise; its coefficient comes from differences of neighbours, which a few jumps hardly
touch (as in Chakar et al., A robust approach for estimating change-points in the mean of an AR(1)
process, Bernoulli 23, 2017). An optimal partition proposes the changes; each must then pass a test
of the jump between its two levels by generalised least squares, counted as often as there were
places for it. Benjamini and Hochberg's procedure holds the false alarms of all series together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlox.timing.student import t_quantile, t_tail

LEVEL = 0.001  # the error of one series without any change
FLOOR = 0.01  # log-ratio below which no change is told, whatever its p
SETTLED = 5  # readings at a new level that make an alarm a confirmed change

Name = TypeVar("Name", bound=Hashable)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A jump between two levels.

    `index` is of the first reading at the new level, `before` of the last one at the old level: the
    commits after `before` and up to `index` may have done it (they are neighbours unless a commit
    was not measured, or on another machine). `ratio` is new / old level, with its 99 % interval.
    `p` is the probability of such a jump somewhere in a series without any.
    An "alarm" has fewer than five readings at the new level, and may go away.
    """

    index: int
    before: int
    ratio: float
    ci99: tuple[float, float]
    p: float
    state: Literal["alarm", "confirmed"]

    def at(self, indices: Sequence[int]) -> Change:
        """The same change in a longer series, of which `indices` are the readings looked at."""
        return replace(self, index=indices[self.index], before=indices[self.before])


@dataclass(frozen=True)
class Readings:
    """What changes are looked for in: over 0, in the order of commits, each with the standard error
    of its logarithm (None: not known) and with where it was measured. Levels of two places are not
    compared. `least` is the smallest log-ratio worth telling."""

    values: Sequence[float]
    errors: Sequence[float | None]
    where: Sequence[Hashable]
    least: float = FLOOR


def family(series: Mapping[Name, Readings], level: float = LEVEL) -> dict[Name, list[Change]]:
    """The changes of many series, of which at most a share of `level` are expected to be false."""
    found = {name: changes(readings, level) for name, readings in series.items()}
    strongest = sorted(min((c.p for c in of), default=1.0) for of in found.values())
    held = [p for rank, p in enumerate(strongest, 1) if p <= level * rank / len(strongest)]
    limit = max(held, default=0.0)
    return {name: changes(series[name], limit) if of else [] for name, of in found.items()}


def changes(readings: Readings, level: float = LEVEL) -> list[Change]:
    """The changes of one series, each with a p of at most `level`, in order."""
    logs = np.log(np.asarray(readings.values, dtype=np.float64))
    errors = np.array([math.nan if e is None else e for e in readings.errors])
    found = []
    for place in dict.fromkeys(readings.where):
        at = [i for i, where in enumerate(readings.where) if where == place]
        found += [c.at(at) for c in _of_one_place(logs[at], errors[at], readings.least, level)]
    return sorted(found, key=lambda change: change.index)


_SHORTEST = 6  # readings from which there is anything to tell
_WINDOW = 7  # of the running median
_CLIP = 3.0  # standard deviations from it


def _of_one_place(logs: Floats, errors: Floats, least: float, level: float) -> list[Change]:
    if len(logs) < _SHORTEST:
        return []
    clean = _without_outliers(logs)
    noise = _Noise.of(clean, errors)
    cuts = _partition(clean, noise, 2 * math.log(len(clean) / level))
    while cuts:
        tested = _tested(clean, cuts, noise, least)
        worst = max(tested, key=lambda c: (abs(math.log(c.ratio)) < least, c.p))
        if worst.p <= level and abs(math.log(worst.ratio)) >= least:
            return tested
        cuts.remove(worst.index)
    return []


def _without_outliers(logs: Floats) -> Floats:
    """Readings far from the running median pulled towards it. A median of seven reflected at the
    ends follows four readings in the middle, three at an end."""
    half = _WINDOW // 2
    padded = np.pad(logs, half, mode="reflect")
    median = np.median(np.lib.stride_tricks.sliding_window_view(padded, _WINDOW), axis=1)
    away = logs - median
    spread = float(np.quantile(np.abs(away), 0.8)) / 1.2816  # not the median: noise may be bimodal
    return median + np.clip(away, -_CLIP * spread, _CLIP * spread)


@dataclass(frozen=True)
class _Noise:
    """AR(1): `phi` its coefficient, `sigma` the deviation of its innovations, `df` of sigma."""

    phi: float
    sigma: float
    df: int

    @classmethod
    def of(cls, logs: Floats, errors: Floats) -> _Noise:
        one, two = (_mean_square(logs[lag:] - logs[:-lag]) for lag in (1, 2))
        phi = min(max(two / one - 1.0, 0.0), 0.95) if one else 0.0
        # Differences of neighbours have twice (1 - phi) the variance of readings.
        sigma = math.sqrt(one / 2 / (1 - phi) * (1 - phi * phi))
        known = errors[~np.isnan(errors)]
        least = float(np.median(known)) if len(known) else 0.0
        return cls(phi, max(sigma, least, 1e-6), len(logs) - 3)


def _mean_square(differences: Floats) -> float:
    """Without the largest twentieth, where the jumps are."""
    squares = np.sort(differences**2)
    return float(squares[: max(1, round(0.95 * len(squares)))].mean())


def _whitened(logs: Floats, phi: float) -> Floats:
    """Independent innovations of AR(1) noise, all of the variance of the last."""
    out = logs.copy()
    out[1:] -= phi * logs[:-1]
    out[0] *= math.sqrt(1 - phi * phi)
    return out


def _partition(logs: Floats, noise: _Noise, penalty: float) -> list[int]:
    """Where levels begin, but for the first: least squares of the innovations and a penalty a
    change, by dynamic programming over all partitions."""
    phi = noise.phi
    n = len(logs)
    start = 1 - phi * phi  # the weight of a level's first reading
    steps = np.concatenate([[0.0], logs[1:] - phi * logs[:-1]])
    sums, squares = np.cumsum(steps), np.cumsum(steps * steps)
    best = np.zeros(n + 1)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=int)
    for end in range(1, n + 1):
        begin = np.arange(end)
        s = start * logs[begin] + (1 - phi) * (sums[end - 1] - sums[begin])
        weight = start + (1 - phi) ** 2 * (end - 1 - begin)
        cost = start * logs[begin] ** 2 + squares[end - 1] - squares[begin] - s * s / weight
        total = best[begin] + cost / noise.sigma**2 + penalty
        last[end] = int(np.argmin(total))
        best[end] = total[last[end]]
    cuts = []
    while n > 0:
        n = int(last[n])
        cuts.append(n)
    return sorted(cuts)[1:]


def _tested(logs: Floats, cuts: Sequence[int], noise: _Noise, least: float) -> list[Change]:
    """Each cut between its two levels: the jump by generalised least squares, and its p."""
    edges = [0, *cuts, len(logs)]
    out = []
    for begin, cut, end in zip(edges, cuts, edges[2:], strict=False):
        design = np.column_stack([np.ones(end - begin), np.arange(begin, end) >= cut])
        white = np.column_stack([_whitened(column, noise.phi) for column in design.T])
        covariance = np.linalg.inv(white.T @ white)
        jump = float((covariance @ white.T @ _whitened(logs[begin:end], noise.phi))[1])
        error = noise.sigma * math.sqrt(covariance[1, 1])
        p = min(1.0, len(logs) * t_tail(abs(jump) / error, noise.df))
        half = t_quantile(0.01, noise.df) * error
        out.append(
            Change(
                cut,
                cut - 1,
                math.exp(jump),
                (math.exp(jump - half), math.exp(jump + half)),
                p,
                "confirmed" if end - cut >= SETTLED else "alarm",
            )
        )
    return out
