"""Level changes of a series: where what a benchmark takes, beside its control, jumped and stayed.

Readings of commit after commit are noisy, have outliers, and may remember the readings before them
(autocorrelation), which makes plain tests see changes everywhere. So a series is taken as levels
plus AR(1) noise, and the noise is estimated anew for each partition into levels: a change has to
explain more than memory alone would.

1. Outliers are pulled towards the running median.
2. The best partition for a mild price a level is found by dynamic programming, and merged level by
   level: candidates from many changes down to none.
3. The one whose innovations, with a price for each change, are the smallest is taken.
4. Each of its changes must then pass the same test against the partition without it, counted as
   often as there are places for it. Benjamini and Hochberg's procedure (1995) holds a family of
   series together.

`python -m asv_bench.levels` scores this beside other detectors; its records are in
`asv_bench/record/`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlox.timing.student import t_quantile, t_tail

LEVEL = 0.001  # the error over a family of series without any change
FLOOR = 0.01  # log-ratio below which no change is told, whatever its p
SETTLED = 5  # readings that make a level; a change to fewer, at the end, is an alarm
_SHORTEST = 2 * SETTLED  # readings from which there is anything to tell
_WINDOW = 9  # readings of the running median
_CLIP = 2.5  # deviations that a reading may be away from it
_MOST_PHI = 0.95
_UNUSUAL = 3.5  # times the median turn of counts: of Gauss's noise one jump in 20,000 is larger

Name = TypeVar("Name", bound=Hashable)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A jump between two levels.

    `index` is of the first reading at the new level, `before` of the last one at the old: what
    happened after `before` and up to `index` may have done it. `ratio` is new / old level, with its
    99 % interval. `p` bounds the probability of such a jump anywhere in a series without one. An
    "alarm" has fewer than `SETTLED` readings at the new level, and may go away.
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
    """What changes are looked for in: over 0, in the order of commits, of one machine and against
    one control; each with the standard error of its logarithm (None: not known). `least` is the
    smallest log-ratio worth telling. `exact` readings have next to no noise: each is taken at its
    word, but for jumps to and fro that come all the time (an environment's steps hang on chance).
    """

    values: Sequence[float]
    errors: Sequence[float | None]
    least: float = FLOOR
    exact: bool = False


def family(series: Mapping[Name, Readings], level: float = LEVEL) -> dict[Name, list[Change]]:
    """The changes of many series. Where nothing changed in any of them, one is told with a
    probability of about `level`; else that is about the share of series told of without cause."""
    found = {name: changes(readings, level) for name, readings in series.items()}
    noisy = [of for name, of in found.items() if not series[name].exact]
    strongest = sorted(min((c.p for c in of), default=1.0) for of in noisy)
    limits = [level * rank / len(strongest) for rank in range(1, len(strongest) + 1)]
    limit = max((of for of, p in zip(limits, strongest, strict=True) if p <= of), default=0.0)
    return {
        name: changes(series[name], limit) if any(c.p > limit for c in of) else of
        for name, of in found.items()
    }


def changes(readings: Readings, level: float = LEVEL) -> list[Change]:
    """The changes of one series, each with a p of at most `level`, in order. One that is not worth
    telling is added to the next."""
    logs = np.log(np.asarray(readings.values, dtype=np.float64))
    if readings.exact:
        return list(_worth(_exact(logs), readings.least))
    if len(logs) < _SHORTEST or not level:
        return []
    errors = np.array([e or 0.0 for e in readings.errors])
    model = _Model(logs, errors, level)
    cuts = model.best()
    while cuts:
        tested = [model.test(cuts, number) for number in range(len(cuts))]
        weakest = max(tested, key=lambda change: change.p)
        if weakest.p <= level:
            return list(_worth(tested, readings.least))
        cuts.remove(weakest.index)
    return []


def _worth(found: Iterable[Change], least: float) -> Iterator[Change]:
    """Those at which the level has come far enough from where the last one left it."""
    factor = 1.0
    for change in found:
        low, high = (end * factor for end in change.ci99)
        factor *= change.ratio
        if abs(math.log(factor)) >= least and not low <= 1 <= high:
            yield replace(change, ratio=factor, ci99=(low, high))
            factor = 1.0


def _exact(logs: Floats) -> Iterator[Change]:
    turns = np.abs(np.diff(logs, n=2))  # where they creep one way, nothing
    usual = float(np.quantile(turns, 0.5, method="lower")) if len(turns) > 2 else 0.0
    for index in np.flatnonzero(np.abs(np.diff(logs)) > _UNUSUAL * usual).tolist():
        ratio = math.exp(logs[index + 1] - logs[index])
        yield Change(index + 1, index, ratio, (ratio, ratio), 0.0, "confirmed")


def _without_outliers(logs: Floats) -> tuple[Floats, float]:
    """The readings, none further from their running median than noise goes; and how often they are
    twice as far. The median follows a level of five readings, and at the end of two: of the last
    two that nearer to those before goes on."""
    half = _WINDOW // 2
    last = min(logs[-2:], key=lambda log: abs(float(log - np.median(logs[-_WINDOW:]))))
    ends = np.full(half, np.median(logs[:_WINDOW])), np.full(half, last)
    padded = np.concatenate([ends[0], logs, ends[1]])
    median = np.median(np.lib.stride_tricks.sliding_window_view(padded, _WINDOW), axis=1)
    away = logs - median
    # Not their median: that is next to nothing where noise is bimodal. 80 % of Gauss are within
    # 1.28 deviations.
    reach = _CLIP * float(np.quantile(np.abs(away), 0.8)) / 1.28
    often = (1 + np.count_nonzero(np.abs(away) > 2 * reach)) / (1 + len(logs))
    return median + np.clip(away, -reach, reach), float(often)


class _Model:
    """Levels plus AR(1) noise. A partition is the list of its cuts: the indices at which a level
    begins, but for the first."""

    def __init__(self, logs: Floats, errors: Floats, level: float) -> None:
        self.logs, self.outlying = _without_outliers(logs)
        self.n = len(logs)
        self.sums = np.concatenate([[0.0], np.cumsum(self.logs)])
        self.errors = errors
        t = t_quantile(level / self.n, self.n - 3)
        # What a change that just passes takes off the cost.
        self.price = self.n * math.log1p(t * t / (self.n - 3))

    def best(self) -> list[int]:
        """The partition with the smallest innovations, each change at its price."""
        cuts = self._partition()
        candidates = [cuts]
        while cuts:
            edges = np.array([0, *cuts, self.n])
            lengths = np.diff(edges)
            jumps = np.diff(np.diff(self.sums[edges]) / lengths)
            lost = jumps**2 / (1 / lengths[1:] + 1 / lengths[:-1])
            weakest = int(np.argmin(lost))
            cuts = cuts[:weakest] + cuts[weakest + 1 :]
            candidates.append(cuts)
        return [*min(candidates, key=self._cost)]

    def _cost(self, cuts: Sequence[int]) -> float:
        return self.n * math.log(self._innovations(cuts)[0]) + self.price * len(cuts)

    def _partition(self) -> list[int]:
        """Least squares with a mild price a level, over all partitions of which no level but the
        last is shorter than `SETTLED`."""
        neighbours = np.sort(np.diff(self.logs) ** 2)
        # Half the mean square of differences, but for the largest, where the jumps are.
        variance = float(neighbours[: math.ceil(0.95 * len(neighbours))].mean()) / 2
        price = 4 * math.log(self.n) * variance
        best = np.full(self.n + 1, math.inf)
        best[0] = 0.0
        last = np.zeros(self.n + 1, dtype=int)
        for end in range(SETTLED, self.n + 1):
            begins = end - SETTLED + 1 if end < self.n else end
            total = self.sums[end] - self.sums[:begins]
            cost = best[:begins] - total**2 / np.arange(end, end - begins, -1) + price
            last[end] = int(np.argmin(cost))
            best[end] = cost[last[end]]
        cuts = [int(last[self.n])]
        while cuts[-1]:
            cuts.append(int(last[cuts[-1]]))
        return cuts[-2::-1]

    def _innovations(self, cuts: Sequence[int]) -> tuple[float, float]:
        """The variance of what is new in each reading, and how much of the last one's deviation
        it keeps (phi)."""
        edges = np.array([0, *cuts, self.n])
        lengths = np.diff(edges)
        rest = self.logs - np.repeat(np.diff(self.sums[edges]) / lengths, lengths)
        square = float(rest @ rest)
        phi = float(rest[1:] @ rest[:-1]) / square if square else 0.0
        phi = min(max(phi, 0.0), _MOST_PHI)
        # No less than the readings' own errors; 1e-12, of those without any, keeps logarithms.
        own = float(np.median(self.errors)) ** 2
        return max(square * (1 - phi * phi) / (self.n - len(cuts) - 1), own, 1e-12), phi

    def test(self, cuts: Sequence[int], number: int) -> Change:
        """A change of a partition against the partition without it."""
        cut = cuts[number]
        df = self.n - len(cuts) - 2
        variance, phi = self._innovations(cuts)
        without, _ = self._innovations([*cuts[:number], *cuts[number + 1 :]])
        t = math.sqrt(max(0.0, (df + 1) * without - df * variance) / variance)
        edges = [0, *cuts, self.n]
        sides = [slice(edges[number], cut), slice(cut, edges[number + 2])]
        jump = float(self.logs[sides[1]].mean() - self.logs[sides[0]].mean())
        # Estimated beside levels, phi comes out too small (Kendall, Biometrika 41, 1954).
        phi = min(phi + (1 + 3 * phi) * (len(cuts) + 1) / self.n, _MOST_PHI)
        error = math.sqrt(sum(self._error(side, variance, phi) for side in sides))
        half = t_quantile(0.01, df) * error
        p = min(1.0, self.n * max(0.0, t_tail(t, df)))  # below 1e-15 it may round to less than 0
        alarm = self.n - cut < SETTLED
        return Change(
            cut,
            cut - 1,
            math.exp(jump),
            (math.exp(jump - half), math.exp(jump + half)),
            # So many outliers in a row are no rarer than that.
            max(p, self.outlying ** (self.n - cut)) if alarm else p,
            "alarm" if alarm else "confirmed",
        )

    def _error(self, side: slice, variance: float, phi: float) -> float:
        """The variance of a level: of a mean of AR(1) noise, or of its readings' own errors."""
        m = side.stop - side.start
        memory = (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**m) / (m * (1 - phi) ** 2)
        own = float((self.errors[side] ** 2).mean())
        return float(max(variance / (1 - phi * phi) * memory, own) / m)
