"""Training before and after a change, profiled once or several times: what takes more time and what
takes less, by layer, phase and function.

If steps of both sides can be compared, all figures are shares of a step's time before, so that a
part that did not change has no difference. Otherwise they are shares of training, in which a part
that grows makes the others smaller. With two runs a side or more, intervals are Student's over
runs: over differences within rounds if the sides took turns, otherwise Welch's. With one run they
cover sampling alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Literal

from rlox_opt.history.difference import Z99, Difference
from rlox_opt.history.store import Profile
from rlox_opt.stats.family import passing
from rlox_opt.stats.student import deviation, t_quantile, t_tail, welch

Verdict = Literal["more", "less", "same", "undecided"]
KINDS: dict[str, Callable[[Profile], Mapping[str, float]]] = {
    "layer": lambda profile: profile.layers,
    "phase": lambda profile: profile.phases,
    "function": lambda profile: profile.functions,
}
WHOLE = "a step of training"
_LEVEL = 0.01  # the error of an interval, and of false alarms among the parts of a kind
_THIN = 0.002  # of a step: parts that are smaller on both sides are left out


@dataclass(frozen=True)
class Run:
    """One profile, and the seconds of a training step in the same run."""

    profile: Profile
    step_s: float


@dataclass(frozen=True)
class Change:
    """A part of training. `before` and `after` are shares of a step's time before. `ci99` is the
    interval of their difference, None if it is not known."""

    kind: str  # "training", or of `KINDS`
    name: str
    before: float
    after: float
    ci99: tuple[float, float] | None
    verdict: Verdict

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class _Reading:
    """A change without a verdict yet; `p` is the probability of it if nothing changed."""

    name: str
    before: float
    after: float
    ci99: tuple[float, float] | None = None
    p: float | None = None


@dataclass(frozen=True)
class Compared:
    """Two sides. `rounds` says that the runs took turns, so that the n-th runs of both belong
    together. `steps` says that the times of a step can be compared. `band` is the change, as a
    share of a step's time before, within which a part's whole interval must lie for the part to
    count as the same."""

    before: tuple[Run, ...]
    after: tuple[Run, ...]
    titles: tuple[str, str]
    rounds: bool
    steps: bool
    band: float
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def changes(self) -> list[Change]:
        """The whole first; then the parts by kind, those that changed most first."""
        kinds = [self._judged("training", [self._whole()])] if self.steps else []
        for kind, parts in KINDS.items():
            readings = [r for r in self._parts(parts) if max(r.before, r.after) >= _THIN]
            kinds.append(self._judged(kind, readings))
        return [change for of_kind in kinds for change in of_kind]

    @property
    def repeated(self) -> bool:
        """Whether the intervals are over runs."""
        return min(len(self.before), len(self.after)) > 1

    def difference(self) -> Difference:
        """The mean profiles of both sides, for their differential flamegraph."""
        of = "a step before" if self.steps else "training"
        sides = mean([r.profile for r in self.before]), mean([r.profile for r in self.after])
        return Difference(*sides, tuple(map(fmean, self._scales)), of)  # type: ignore[arg-type]

    @cached_property
    def _scales(self) -> tuple[list[float], list[float]]:
        """The factors by which each run's shares are multiplied."""
        if not self.steps:
            return [1.0] * len(self.before), [1.0] * len(self.after)
        if self.rounds:  # a disturbance of a round affects both sides of it
            pairs = zip(self.before, self.after, strict=True)
            return [1.0] * len(self.before), [after.step_s / b.step_s for b, after in pairs]
        unit = fmean(run.step_s for run in self.before)
        return [r.step_s / unit for r in self.before], [r.step_s / unit for r in self.after]

    def _whole(self) -> _Reading:
        before, after = self._scales
        if not self.repeated:
            return _Reading(WHOLE, fmean(before), fmean(after))
        return self._over_runs(WHOLE, before, after)

    def _parts(self, of: Callable[[Profile], Mapping[str, float]]) -> Iterator[_Reading]:
        if not self.repeated:
            yield from self._sampled(of)
            return
        sides = [
            [(of(run.profile), scale) for run, scale in zip(runs, scales, strict=True)]
            for runs, scales in zip((self.before, self.after), self._scales, strict=True)
        ]
        names = dict.fromkeys(name for side in sides for shares, _ in side for name in shares)
        for name in names:
            before, after = (
                [shares.get(name, 0.0) * scale for shares, scale in side] for side in sides
            )
            yield self._over_runs(name, before, after)

    def _over_runs(self, name: str, before: Sequence[float], after: Sequence[float]) -> _Reading:
        change, error, df = _student(before, after, self.rounds)
        half = t_quantile(_LEVEL, df) * error
        p = t_tail(abs(change) / error, df) if error else float(change == 0)
        return _Reading(name, fmean(before), fmean(after), (change - half, change + half), p)

    def _sampled(self, of: Callable[[Profile], Mapping[str, float]]) -> Iterator[_Reading]:
        """The parts of single runs. The number of samples gives the intervals of layers and
        functions. Phases have none, since they come from the clock."""
        difference = self.difference()
        for part in difference.parts(of(difference.before), of(difference.after)):
            if of is KINDS["phase"] or not part.error:
                yield _Reading(part.name, part.before, part.after)
                continue
            ends = part.change - part.error, part.change + part.error
            p = math.erfc(abs(part.change) / part.error * Z99 / math.sqrt(2))
            yield _Reading(part.name, part.before, part.after, ends, p)

    def _judged(self, kind: str, readings: Sequence[_Reading]) -> list[Change]:
        limit = passing([reading.p for reading in readings], _LEVEL)
        changes = [
            Change(kind, r.name, r.before, r.after, r.ci99, self._verdict(r, limit))
            for r in readings
        ]
        return sorted(changes, key=lambda change: -abs(change.change))

    def _verdict(self, reading: _Reading, limit: float) -> Verdict:
        if reading.ci99 is None or reading.p is None:
            return "undecided"
        if -self.band < reading.ci99[0] and reading.ci99[1] < self.band:
            return "same"
        if reading.p <= limit:
            return "more" if reading.after > reading.before else "less"
        return "undecided"


def mean(profiles: Sequence[Profile]) -> Profile:
    """The mean of several profiles of the same training; with stacks only if all have them."""
    n = len(profiles)

    def shares(of: Callable[[Profile], Mapping[str, float]]) -> dict[str, float]:
        total: defaultdict[str, float] = defaultdict(float)
        for profile in profiles:
            for name, share in of(profile).items():
                total[name] += share / n
        return total

    return Profile(
        sum(profile.samples for profile in profiles),
        shares(KINDS["layer"]),
        shares(KINDS["phase"]),
        shares(KINDS["function"]),
        _folded([profile.folded for profile in profiles]),
    )


def _folded(texts: Sequence[str | None]) -> str | None:
    """The stacks of all profiles, with the same weight for each."""
    total: defaultdict[str, float] = defaultdict(float)
    for text in texts:
        if not text:
            return None
        stacks = [line.rpartition(" ")[::2] for line in text.splitlines() if " " in line]
        whole = sum(int(count) for _, count in stacks)
        for stack, count in stacks:
            total[stack] += int(count) / (whole * len(texts))
    return "".join(f"{stack} {share * 1e6:.1f}\n" for stack, share in total.items())


def _student(
    before: Sequence[float], after: Sequence[float], rounds: bool
) -> tuple[float, float, int]:
    """The mean change, its standard error, and the degrees of freedom."""
    if rounds:
        changes = [a - b for b, a in zip(before, after, strict=True)]
        return fmean(changes), deviation(changes) / math.sqrt(len(changes)), len(changes) - 1
    return welch(after, before)
