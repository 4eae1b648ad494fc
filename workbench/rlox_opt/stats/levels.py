"""Level changes of a series: commits at which the ratio of a benchmark to its control jumps, and
stays at the new level.

The readings of a series are noisy and have outliers. They may also be autocorrelated: a reading
resembles the one before. Tests that assume independent readings then find changes everywhere. So a
series is modelled as levels plus AR(1) noise, whose autocorrelation phi is estimated anew for each
partition into levels: a change has to explain more than autocorrelation alone would.

1. Outliers are pulled towards the running median.
2. Dynamic programming finds the best partition for a small price per level. Merging its levels one
   by one gives the candidates, from many changes down to none.
3. The candidate with the smallest sum of squared innovations, plus a price per change, is taken.
4. Each of its changes must then pass the same test against the partition without it. The p of that
   test is multiplied by the number of places at which the change could have been. Benjamini and
   Hochberg's procedure (1995) controls the error over a family of series.

In a short series, a step of twice its scatter may as well come from autocorrelation. Two facts from
outside the series tell these apart. Series that are measured in the same way have a similar phi, so
that a phi which is unusual among them costs something (`usual_memory`). And where a count without
noise, such as that of instructions, shows that the code changed, half of the error is spent on
those few places.

`python -m asv_bench.levels` scores this beside other detectors; its records are in
`asv_bench/record/`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rlox_opt.stats.student import t_quantile, t_tail

LEVEL = 0.001  # the error over a family of series without any change
FLOOR = 0.01  # log-ratio; smaller changes are not reported, however small their p
SETTLED = 5  # readings that make a level; a change to fewer, at the end, is an alarm
SHORTEST = 2 * SETTLED  # readings, without which a series is not searched, unless it is exact
_WINDOW = 9  # readings of the running median
_CLIP = 2.5  # deviations that a reading may be away from it
_MOST_PHI = 0.95
_PHIS = np.linspace(0.0, _MOST_PHI, 96)
_ENOUGH = 8  # series of at least twenty readings show which phi is usual
_NARROWEST = 0.05  # the least standard deviation of phi over such series
_UNUSUAL = 3.5  # times the median second difference; of normal noise one jump in 20,000 is larger
_REPEATS = 0.75  # the share of commits that leave a count as it was, if it is one that repeats
_NOTHING = 0.1  # jumps that are smaller than this, times the median second difference, are none

Name = TypeVar("Name", bound=Hashable)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A jump between two levels.

    `index` is that of the first reading at the new level, `before` that of the last reading at the
    old one: the cause lies after `before` and up to `index`. `ratio` is new / old level, with its
    99 % interval. `p` bounds the probability of such a jump anywhere in a series without changes.
    An "alarm" has fewer than `SETTLED` readings at the new level, and may turn out to be chance.
    Exact readings repeat: a change of theirs is "confirmed" at once.
    """

    index: int
    before: int
    ratio: float
    ci99: tuple[float, float]
    p: float
    state: Literal["alarm", "confirmed"]

    def at(self, indices: Sequence[int]) -> Change:
        """The same change in a longer series, in which the readings have these `indices`."""
        return replace(self, index=indices[self.index], before=indices[self.before])


@dataclass(frozen=True)
class Readings:
    """A series to search for changes: values over 0, in the order of commits, of one machine and
    relative to one control, each with the standard error of its logarithm (None: not known).
    `least` is the smallest log-ratio to report. `exact` readings have next to no noise. Each of
    their jumps counts, unless jumps as large come all the time (an environment's number of steps
    depends on chance). Series with the same `like` were measured in the same way on the same
    machine. At the `suspected` indices the code is known to have changed: by counts, never by these
    readings.
    """

    values: Sequence[float]
    errors: Sequence[float | None]
    least: float = FLOOR
    exact: bool = False
    like: Hashable = None
    suspected: Sequence[int] = ()


def family(series: Mapping[Name, Readings], level: float = LEVEL) -> dict[Name, list[Change]]:
    """The changes of many series. If nothing changed in any of them, the probability that a change
    is reported is about `level`; otherwise that is about the share of reported series without a
    change."""
    alike: dict[Hashable, list[Readings]] = {}
    for readings in series.values():
        if not readings.exact and readings.like is not None:
            alike.setdefault(readings.like, []).append(readings)
    phis = {like: usual_memory(of) for like, of in alike.items()}

    found = {name: changes(of, level, phis.get(of.like)) for name, of in series.items()}
    # Series that are too short take no part.
    tested = [n for n, of in series.items() if not of.exact and len(of.values) >= SHORTEST]
    strongest = sorted(min((c.p for c in found[name]), default=1.0) for name in tested)
    limits = [level * rank / len(strongest) for rank in range(1, len(strongest) + 1)]
    limit = max((of for of, p in zip(limits, strongest, strict=True) if p <= of), default=0.0)
    # A series is not searched anew with this limit: what it leaves out would be noise to the rest.
    return {name: [c for c in of if c.p <= limit] for name, of in found.items()}


def usual_memory(of: Sequence[Readings]) -> Floats | None:
    """The price of each of `_PHIS` for a series that was measured like these: -2 log of its
    density.

    The density is normal. Its width is the spread of their phis beyond that of sampling. With n
    series, the next one is like none of them with the probability 1 / (n + 1) (Laplace's rule), and
    then any phi is possible. None if there are too few series."""
    long = [readings for readings in of if len(readings.values) >= 2 * SHORTEST]
    models = [_model(readings, LEVEL)[0] for readings in long]
    if len(models) < _ENOUGH:
        return None
    kept = np.array([model.kept(model.best())[1] for model in models])
    middle = float(kept.mean())
    chance = (1 - middle**2) * float(np.mean([1 / model.n for model in models]))
    spread = math.sqrt(max(float(kept.var()) - chance, _NARROWEST**2))
    usual = np.exp(-(((_PHIS - middle) / spread) ** 2) / 2)
    odd = 1 / (len(models) + 1)
    density = (1 - odd) * usual / usual.sum() + odd / len(_PHIS)
    return np.asarray(-2 * np.log(density / density.max()))


def changes(readings: Readings, level: float = LEVEL, phis: Floats | None = None) -> list[Change]:
    """The changes of one series in order, each with a p of at most `level`. A change that is too
    small or too uncertain to report is added to the next one. `phis` is what `usual_memory`
    returns; with None all phis have the same price."""
    if readings.exact:
        return list(_worth(_exact(_logs(readings)), readings.least))
    if len(readings.values) < SHORTEST or not level:
        return []
    model, begin = _model(readings, level, phis)
    cuts = model.best()
    while cuts:
        tested = [model.test(cuts, number) for number in range(len(cuts))]
        weakest = max(tested, key=lambda change: change.p)
        if weakest.p <= level:
            told = _worth(tested, readings.least)
            return [change.at(range(begin, len(readings.values))) for change in told]
        cuts.remove(weakest.index)
    return []


def _logs(readings: Readings) -> Floats:
    return np.log(np.asarray(readings.values, dtype=np.float64))


def _worth(found: Iterable[Change], least: float) -> Iterator[Change]:
    """The changes at which the level is far enough from its value at the change reported last."""
    factor = 1.0
    for change in found:
        low, high = (end * factor for end in change.ci99)
        factor *= change.ratio
        if abs(math.log(factor)) >= least and not low <= 1 <= high:
            yield replace(change, ratio=factor, ci99=(low, high))
            factor = 1.0


def _exact(logs: Floats) -> Iterator[Change]:
    jumps = np.abs(np.diff(logs))
    for index in np.flatnonzero(jumps > _UNUSUAL * _usual(logs, jumps)).tolist():
        ratio = math.exp(logs[index + 1] - logs[index])
        yield Change(index + 1, index, ratio, (ratio, ratio), 0.0, "confirmed")


def _usual(logs: Floats, jumps: Floats) -> float:
    """The second difference that is usual in exact readings; next to nothing where most readings
    repeat. There the median may be that of the steps, each of which makes two."""
    turns = np.abs(np.diff(logs, n=2))  # 0 where readings drift evenly
    if len(turns) < 3:
        return 0.0
    usual = float(np.quantile(turns, 0.5, method="lower"))
    return min(usual, float(np.quantile(jumps, _REPEATS, method="lower")) / _NOTHING)


def _without_outliers(logs: Floats) -> tuple[Floats, float]:
    """The readings, limited to the distance from their running median that noise explains; and how
    often they are twice as far. The median follows a level of five readings, and at either end a
    level of two: of the two outermost readings, the one nearer to the others is continued."""
    half = _WINDOW // 2
    first, last = (
        min(outer, key=lambda log: abs(float(log - np.median(side))))
        for outer, side in ((logs[:2], logs[:_WINDOW]), (logs[-2:], logs[-_WINDOW:]))
    )
    padded = np.concatenate([np.full(half, first), logs, np.full(half, last)])
    median = np.median(np.lib.stride_tricks.sliding_window_view(padded, _WINDOW), axis=1)
    away = logs - median
    # Not the median of the distances, which is next to nothing if noise is bimodal. 80 % of a
    # normal distribution lie within 1.28 deviations.
    reach = _CLIP * float(np.quantile(np.abs(away), 0.8)) / 1.28
    often = (1 + np.count_nonzero(np.abs(away) > 2 * reach)) / (1 + len(logs))
    return median + np.clip(away, -reach, reach), float(often)


def _model(readings: Readings, level: float, phis: Floats | None = None) -> tuple[_Model, int]:
    """The model of the readings from the first level on, and the index where that level begins. The
    few readings before it make no level, and would count as large noise."""
    whole = _Model(readings, level, phis)
    begin = next(iter(whole.partition), 0)
    if begin >= SETTLED or whole.n - begin < SHORTEST:
        return whole, 0
    rest = replace(
        readings,
        values=readings.values[begin:],
        errors=readings.errors[begin:],
        suspected=[index - begin for index in readings.suspected],
    )
    return _Model(rest, level, phis), begin


@cache
def _price(level: float, places: int, n: int) -> float:
    """How much a change that just passes lowers the cost."""
    t = t_quantile(level / places, n - 3)
    return n * math.log1p(t * t / (n - 3))


class _Model:
    """Levels plus AR(1) noise. A partition is a list of cuts: the indices at which a level begins,
    without the first."""

    def __init__(self, readings: Readings, level: float, phis: Floats | None = None) -> None:
        self.logs, self.outlying = _without_outliers(_logs(readings))
        self.n = len(self.logs)
        self.sums = np.concatenate([[0.0], np.cumsum(self.logs)])
        self.own = np.array([error or 0.0 for error in readings.errors])
        self.phis = np.zeros_like(_PHIS) if phis is None else phis
        self.suspected = sorted({*readings.suspected} & {*range(1, self.n)})
        self.level = level

    def places(self, cut: int) -> int:
        """The number of places that a change's p is multiplied by. Half of the error is for the
        suspected places, half for all."""
        if not self.suspected:
            return self.n
        return 2 * (len(self.suspected) if cut in self.suspected else self.n)

    def best(self) -> list[int]:
        """The partition with the least cost: its innovations, plus a price for each change."""
        cuts = self.partition
        candidates = [cuts]
        while cuts:
            edges = np.array([0, *cuts, self.n])
            lengths = np.diff(edges)
            jumps = np.diff(np.diff(self.sums[edges]) / lengths)
            lost = jumps**2 / (1 / lengths[1:] + 1 / lengths[:-1])
            weakest = int(np.argmin(lost))
            cuts = cuts[:weakest] + cuts[weakest + 1 :]
            candidates.append(cuts)
        best = min(candidates, key=self._cost)
        while True:
            better = min(self._with_suspected(best), key=self._cost, default=best)
            if self._cost(better) >= self._cost(best):
                return [*best]
            best = better

    def _with_suspected(self, cuts: Sequence[int]) -> Iterator[list[int]]:
        """The partitions with one more suspected place, added to the cuts or replacing one."""
        for place in self.suspected:
            if place not in cuts:
                for gone in (None, *cuts):
                    found = sorted({*cuts, place} - {gone})
                    if all(b - a >= SETTLED for a, b in itertools.pairwise([0, *found])):
                        yield found

    def _cost(self, cuts: Sequence[int]) -> float:
        prices = sum(_price(self.level, self.places(cut), self.n) for cut in cuts)
        return self.n * math.log(self._innovations(cuts)[0]) + prices

    @cached_property
    def partition(self) -> list[int]:
        """The partition by least squares with a small price for each level. No level is shorter
        than `SETTLED`, except the first and the last."""
        neighbours = np.sort(np.diff(self.logs) ** 2)
        # Half the mean square of differences, without the largest, which belong to jumps.
        variance = float(neighbours[: math.ceil(0.95 * len(neighbours))].mean()) / 2
        price = 4 * math.log(self.n) * variance
        best = np.full(self.n + 1, math.inf)
        best[0] = 0.0
        last = np.zeros(self.n + 1, dtype=int)
        for end in range(1, self.n + 1):
            begins = max(1, end - SETTLED + 1) if end < self.n else end
            total = self.sums[end] - self.sums[:begins]
            cost = best[:begins] - total**2 / np.arange(end, end - begins, -1) + price
            last[end] = int(np.argmin(cost))
            best[end] = cost[last[end]]
        cuts = [int(last[self.n])]
        while cuts[-1]:
            cuts.append(int(last[cuts[-1]]))
        return cuts[-2::-1]

    def kept(self, cuts: Sequence[int]) -> tuple[float, float]:
        """The sum of squared deviations from the levels, and the autocorrelation of these
        deviations at a distance of one reading."""
        edges = np.array([0, *cuts, self.n])
        lengths = np.diff(edges)
        rest = self.logs - np.repeat(np.diff(self.sums[edges]) / lengths, lengths)
        square = float(rest @ rest)
        return square, float(rest[1:] @ rest[:-1]) / square if square else 0.0

    def _innovations(self, cuts: Sequence[int]) -> tuple[float, float, float]:
        """The variance of the innovations, with and without the price of phi; and the phi: the part
        of the last reading's deviation that a reading keeps."""
        square, kept = self.kept(cuts)
        new = 1 - 2 * kept * _PHIS + _PHIS**2
        at = int(np.argmin(self.n * np.log(new) + self.phis))
        # Not below the readings' own errors; 1e-12 keeps logarithms finite where there are none.
        own = float(np.median(self.own)) ** 2
        variance = max(square * float(new[at]) / (self.n - len(cuts) - 1), own, 1e-12)
        return variance * math.exp(self.phis[at] / self.n), variance, float(_PHIS[at])

    def test(self, cuts: Sequence[int], number: int) -> Change:
        """Test a change of a partition against the partition without it."""
        cut = cuts[number]
        df = self.n - len(cuts) - 2
        priced, variance, phi = self._innovations(cuts)
        without, _, _ = self._innovations([*cuts[:number], *cuts[number + 1 :]])
        t = math.sqrt(max(0.0, (df + 1) * without - df * priced) / priced)
        edges = [0, *cuts, self.n]
        sides = [slice(edges[number], cut), slice(cut, edges[number + 2])]
        jump = float(self.logs[sides[1]].mean() - self.logs[sides[0]].mean())
        # In a model with levels, phi is estimated too small (Kendall, Biometrika 41, 1954).
        phi = min(phi + (1 + 3 * phi) * (len(cuts) + 1) / self.n, _MOST_PHI)
        error = math.sqrt(sum(self._error(side, variance, phi) for side in sides))
        half = t_quantile(0.01, df) * error
        # Below 1e-15 rounding may make the tail negative.
        p = min(1.0, self.places(cut) * max(0.0, t_tail(t, df)))
        alarm = self.n - cut < SETTLED
        # An alarm may be a few outliers in a row. Its p is not below their probability, computed
        # from how often this series has outliers.
        if alarm:
            p = max(p, self.outlying ** (self.n - cut))
        return Change(
            cut,
            cut - 1,
            math.exp(jump),
            (math.exp(jump - half), math.exp(jump + half)),
            p,
            "alarm" if alarm else "confirmed",
        )

    def _error(self, side: slice, variance: float, phi: float) -> float:
        """The variance of a level: of a mean of AR(1) noise, or of its readings' own errors if that
        is larger."""
        m = side.stop - side.start
        memory = (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**m) / (m * (1 - phi) ** 2)
        own = float((self.own[side] ** 2).mean())
        return float(max(variance / (1 - phi * phi) * memory, own) / m)
