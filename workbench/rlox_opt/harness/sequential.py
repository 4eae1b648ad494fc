"""Restarts until every benchmark of a comparison has its verdict, or the time is used up."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlox_opt.harness.packages import Failure, Outcome, Reading
from rlox_opt.stats.family import Judgement, judge, would_settle
from rlox_opt.stats.paired import BAND, ERROR, LEAST, LOOKS, next_look

# One restart of some benchmarks, from a seed.
Restart = Callable[[Sequence[str], int], Iterable[Outcome]]
# What a comparison tells meanwhile: restarts done, benchmarks undecided, seconds at most to come.
Tell = Callable[[int, int, float], None]
# Of a restart of one benchmark, until one has been timed.
GUESS_S = 1.5
_LARGE = math.log(1.5)  # a change that people should hear of before others
_SURE = 0.9  # of the time that is left, which restarts may be planned to take


class More(NamedTuple):
    """What more time would bring: how many benchmarks are foreseen to get their verdict in so many
    seconds, and how many scatter too much to get one by the last look."""

    settled: int
    seconds: float
    noisy: int


@dataclass
class Comparison:
    """Readings of benchmarks, one a restart, and the verdicts at the `looks` so far. `band` is the
    threshold as a log-ratio, but of benchmarks that have their `own`. A `patient` one goes on where
    all is decided, and judges anew at each look."""

    names: Sequence[str]
    band: float = BAND
    patient: bool = False
    looks: Sequence[int] = LOOKS
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # that restarts took
    own: Mapping[str, float] = field(default_factory=dict)

    def threshold(self, name: str) -> float:
        """Of a benchmark, as a log-ratio."""
        return self.own.get(name, self.band)

    def slower(self) -> list[str]:
        """The benchmarks that are."""
        return [name for name, of in self.judgements.items() if of.verdict == "slower"]

    def undecided(self) -> list[str]:
        """The benchmarks that more restarts may decide."""
        open_ = [name for name in self.names if name not in self.failures]
        return [
            name
            for name in open_
            if self.patient or name not in self.judgements or not _settled(self.judgements[name])
        ]

    def run(
        self,
        restart: Restart,
        most: int | None = None,
        budget_s: float = float("inf"),
        tell: Tell = lambda restarts, undecided, seconds: None,
        reserve_s: float = 0.0,
    ) -> None:
        """Restart until nothing is undecided, after `most` restarts (as many as at the last look),
        or out of time.

        Where the time does not suffice for all until their next look, those come first of which it
        is foreseen that they are decided there, then those that seem to have changed by much, then
        those that take least. A patient comparison
        leaves none out, and stops between two looks. What was read before a KeyboardInterrupt
        stays; `look` judges it. Where something is slower, `reserve_s` of the budget are not used.
        """
        seeds = random.Random()
        until = time.monotonic() + budget_s - reserve_s
        most = self.looks[-1] if most is None else most
        done = dict.fromkeys(self.names, 0)
        while True:
            batch = self._batch(done, most, until)
            if not batch and reserve_s and not self.slower():
                until, reserve_s = until + reserve_s, 0.0
                batch = self._batch(done, most, until)
            if not batch:
                return
            while batch:
                began = time.monotonic()
                for name, outcome in restart(list(batch), seeds.getrandbits(63)):
                    ended = time.monotonic()
                    self.seconds.setdefault(name, []).append(ended - began)
                    began = ended
                    done[name] += 1
                    if isinstance(outcome, Failure):
                        self.failures[name] = outcome
                    else:
                        self.readings.setdefault(name, []).append(outcome)
                to_come = sum(self._seconds(n) * (most - done[n]) for n in self.undecided())
                left = max(0.0, until - time.monotonic())
                tell(max(done.values()), len(self.undecided()), min(left, to_come))
                batch = {
                    name: restarts - 1
                    for name, restarts in batch.items()
                    if restarts > 1 and name not in self.failures
                }
                batch = self._in_time(batch, left)
            self.look()

    def _batch(self, done: Mapping[str, int], most: int, until: float) -> dict[str, int]:
        """Which benchmarks to restart, and how often until their next look."""
        batch = {
            name: look - done[name]
            for name in self.undecided()
            if (look := next_look(done[name], most, self.looks)) is not None
        }
        left = _SURE * (until - time.monotonic())
        if chosen := self._in_time(batch, left):
            return chosen
        if not any(done.values()):
            return dict([*batch.items()][:1])
        return self._before_first_look(done, batch, left)

    def _before_first_look(
        self, done: Mapping[str, int], batch: Iterable[str], left: float
    ) -> dict[str, int]:
        """Where none can be brought to its next look any more: those that can still be had enough
        restarts of for a verdict, which a large change does not take five for. So late a benchmark
        has no fourth look to come, and all its looks together err no more often."""
        if self.patient:
            return {}
        for restarts in range(self.looks[0] - 1, LEAST - 1, -1):
            few = {name: restarts - done[name] for name in batch if done[name] < restarts}
            if chosen := self._in_time(few, left):
                return chosen
        return {}

    def _in_time(self, batch: Mapping[str, int], left: float) -> dict[str, int]:
        """As many of a batch as `left` seconds suffice for."""
        if self.patient:
            return dict(batch) if left > 0 or not self.readings else {}
        chosen = {}
        for name in sorted(batch, key=lambda name: self._urgency(name, batch[name])):
            seconds = batch[name] * self._seconds(name)
            if seconds <= left:
                chosen[name] = batch[name]
                left -= seconds
        return chosen

    def _urgency(self, name: str, restarts: int) -> tuple[bool, bool, float]:
        of = [reading.log_ratio for reading in self.readings.get(name, ())]
        foreseen = would_settle(of, len(of) + restarts, self.threshold(name), self.level)
        large = bool(of) and abs(statistics.fmean(of)) > _LARGE
        return not foreseen, not large, restarts * self._seconds(name)

    def _seconds(self, name: str) -> float:
        """Of a restart: the benchmark's own mean, or that of all, or a guess."""
        known = self.seconds.get(name) or [s for of in self.seconds.values() for s in of]
        return statistics.fmean(known) if known else GUESS_S

    def more(self) -> More:
        """What more time would bring to what is undecided, or was not measured."""
        lacking = {name: self.lacking(name) for name in self.undecided()}
        known = {name: restarts for name, restarts in lacking.items() if restarts is not None}
        seconds = sum(self._seconds(name) * restarts for name, restarts in known.items())
        return More(len(known), seconds, len(lacking) - len(known))

    def lacking(self, name: str) -> int | None:
        """How many restarts more would settle a benchmark, as is foreseen; None where it scatters
        too much for a verdict by the last look."""
        of = self.until_look().get(name, [])
        if len(of) < self.looks[0]:
            return self.looks[0] - len(of)
        band = self.threshold(name)
        later = (look for look in self.looks if look > len(of))
        look = next((n for n in later if would_settle(of, n, band, self.level)), None)
        return None if look is None else look - len(of)

    def look(self) -> None:
        """Judge by the restarts up to the last look. What has no more of them than when it was
        judged last keeps its judgement: nothing is looked at more often than is allowed for."""
        ratios = self.until_look("log_ratio")
        kept = {
            name: judgement
            for name, judgement in self.judgements.items()
            if not self.patient and (_settled(judgement) or judgement.restarts == len(ratios[name]))
        }
        self.judgements = judge(ratios, self.band, kept, self.level, self.own)

    @property
    def level(self) -> float:
        """The error at a look, so that it is `ERROR` at all of them together."""
        return ERROR / len(self.looks)

    def aa(self) -> dict[str, Judgement]:
        """The verdicts on base against itself, from the same restarts."""
        return judge(self.until_look("log_ratio_aa"), self.band, level=self.level, own=self.own)

    def medians(self, name: str) -> tuple[float, float]:
        """Of base and head: a note, for only ratios are sound."""
        of = self.readings[name]
        return (
            statistics.median(reading.base for reading in of),
            statistics.median(reading.head for reading in of),
        )

    def until_look(self, what: str = "log_ratio") -> dict[str, list[float]]:
        """The log-ratios of each benchmark at the latest look: between two looks no verdict may
        fall, for it would err more often."""
        return {
            name: [getattr(reading, what) for reading in of[: self._last_look(len(of))]]
            for name, of in self.readings.items()
            if name not in self.failures
        }

    def _last_look(self, restarts: int) -> int:
        return max((look for look in self.looks if look <= restarts), default=restarts)


def _settled(judgement: Judgement) -> bool:
    return judgement.verdict != "undecided"


def tally(judgements: Iterable[Judgement]) -> Mapping[str, int]:
    """How many of each verdict."""
    counts = dict.fromkeys(("slower", "faster", "same", "undecided"), 0)
    for judgement in judgements:
        counts[judgement.verdict] += 1
    return counts
