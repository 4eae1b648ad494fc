"""Restarts until every benchmark of a comparison has its verdict, or the time is used up."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlox_opt.harness.packages import Failure, Outcome, Reading
from rlox_opt.stats.family import Judgement, judge, would_settle
from rlox_opt.stats.paired import BAND, ERROR, LEAST, LOOKS, next_look

# One restart of some benchmarks: called with their names and a seed.
Restart = Callable[[Sequence[str], int], Iterable[Outcome]]
# What is called after each restart, with the restarts done, the benchmarks undecided, and the
# seconds that are still to come at the most.
Tell = Callable[[int, int, float], None]
# Seconds of a benchmark's restart, as long as none has been timed.
GUESS_S = 1.5
_LARGE = math.log(1.5)  # benchmarks that changed by more come first when time is short
_SURE = 0.9  # the part of the remaining time that restarts may be planned for


class More(NamedTuple):
    """What more time would bring. `settled` benchmarks would get their verdict in `seconds`, as far
    as can be foreseen; `noisy` ones scatter too much to get one by the last look that they may
    have."""

    settled: int
    seconds: float
    noisy: int


@dataclass
class Comparison:
    """The readings of benchmarks, one for each restart, and the verdicts at the `looks` so far.

    `band` is the threshold as a log-ratio; `own` holds the thresholds of benchmarks that have one
    of their own. A `patient` comparison does not stop at a verdict, and judges anew at each look.
    """

    names: Sequence[str]
    band: float = BAND
    patient: bool = False
    looks: Sequence[int] = LOOKS
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # that restarts took
    own: Mapping[str, float] = field(default_factory=dict)
    most: int = LOOKS[-1]  # restarts that a benchmark may have
    _taken: Counter[str] = field(default_factory=Counter)  # looks that may have erred

    def threshold(self, name: str) -> float:
        """A benchmark's threshold, as a log-ratio."""
        return self.own.get(name, self.band)

    def slower(self) -> list[str]:
        """The benchmarks whose verdict is "slower"."""
        return [name for name, of in self.judgements.items() if of.verdict == "slower"]

    def undecided(self) -> list[str]:
        """The benchmarks that more restarts may decide."""
        open_ = [name for name in self.names if name not in self.failures]
        return [
            name
            for name in open_
            if self.patient or name not in self.judgements or not _settled(self.judgements[name])
        ]

    def unmeasured(self) -> list[str]:
        """The benchmarks that have no verdict and did not fail: the time was too short for them."""
        return [n for n in self.names if n not in self.judgements and n not in self.failures]

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

        The time may be too short to bring all to their next look. Then benchmarks that are expected
        to be decided there come first, next those that seem to have changed by much, and next those
        that take least. The first restart ends early where going on would leave no time to bring
        even one to its look. A patient comparison leaves none out, and stops between two looks; it
        restarts all of its benchmarks once, whatever that takes.
        What was read before a KeyboardInterrupt stays; `look` judges it. If a benchmark is slower,
        `reserve_s` of the budget are not used.
        """
        seeds = random.Random()
        until = time.monotonic() + budget_s - reserve_s
        self.most = most = self.looks[-1] if most is None else most
        done = dict.fromkeys(self.names, 0)
        while True:
            batch = self._batch(done, most, until)
            if not batch and reserve_s and not self.slower():
                until, reserve_s = until + reserve_s, 0.0
                batch = self._batch(done, most, until)
            if not batch:
                return
            while batch:
                first = not self.patient and not self.seconds
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
                    if first and not self._leaves_one(batch, _SURE * (until - ended)):
                        batch = {}  # what comes next is chosen by what is known now
                        break
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
        """Which benchmarks to restart, and how often until the next look of each."""
        batch = {
            name: look - done[name]
            for name in self.undecided()
            if (look := next_look(done[name], most, self.looks)) is not None
            and (self.patient or self._taken[name] < len(self.looks))
        }
        left = _SURE * (until - time.monotonic())
        if chosen := self._in_time(batch, left):
            return chosen
        if not self.seconds:
            return dict([*batch.items()][:1])
        return self._before_first_look(done, batch, left)

    def _before_first_look(
        self, done: Mapping[str, int], batch: Iterable[str], left: float
    ) -> dict[str, int]:
        """The benchmarks for which enough restarts for a verdict are left, where the time does not
        bring any to its next look.

        Fewer restarts than at the first look can show a large change. If there is time for more
        looks after all, a benchmark gets this one instead of its last, so that it errs no more
        often.
        """
        if self.patient:
            return {}
        for restarts in range(self.looks[0] - 1, LEAST - 1, -1):
            few = {name: restarts - done[name] for name in batch if done[name] < restarts}
            if chosen := self._in_time(few, left):
                return chosen
        return {}

    def _in_time(self, batch: Mapping[str, int], left: float) -> dict[str, int]:
        """The benchmarks of a batch for which `left` seconds suffice."""
        if self.patient:
            needed = sum(map(self._seconds, batch))  # of one more restart
            return dict(batch) if needed <= left or not self.seconds else {}
        chosen = {}
        for name in sorted(batch, key=lambda name: self._urgency(name, batch[name])):
            seconds = batch[name] * self._seconds(name)
            if seconds <= left:
                chosen[name] = batch[name]
                left -= seconds
        return chosen

    def _leaves_one(self, batch: Mapping[str, int], left: float) -> bool:
        """Whether one that was restarted once can still reach its look after another's restart."""
        to_come = [(batch[name] - 1) * self._seconds(name) for name in self.readings]
        another = statistics.fmean(s for of in self.seconds.values() for s in of)
        return not to_come or min(to_come) + another <= left

    def _urgency(self, name: str, restarts: int) -> tuple[bool, bool, float]:
        of = [reading.log_ratio for reading in self.readings.get(name, ())]
        foreseen = would_settle(of, len(of) + restarts, self.threshold(name), self.level)
        large = bool(of) and abs(statistics.fmean(of)) > _LARGE
        return not foreseen, not large, restarts * self._seconds(name)

    def _seconds(self, name: str) -> float:
        """Mean seconds of the benchmark's restarts, otherwise those of all, otherwise a guess."""
        known = self.seconds.get(name) or [s for of in self.seconds.values() for s in of]
        return statistics.fmean(known) if known else GUESS_S

    def more(self) -> More:
        """What more time would bring to benchmarks that are undecided or were not measured."""
        lacking = {name: self.lacking(name) for name in self.undecided()}
        known = {name: restarts for name, restarts in lacking.items() if restarts is not None}
        seconds = sum(self._seconds(name) * restarts for name, restarts in known.items())
        return More(len(known), seconds, len(lacking) - len(known))

    def lacking(self, name: str) -> int | None:
        """How many more restarts are expected to give a benchmark its verdict; None where it
        scatters too much to get one by the last look that it may have."""
        of, band = self.until_look().get(name, []), self.threshold(name)
        later = [look for look in self.looks if len(of) < look <= self.most]
        if len(of) < self.looks[0] and later:
            return later[0] - len(of)
        look = next((n for n in later if would_settle(of, n, band, self.level)), None)
        return None if look is None else look - len(of)

    def look(self) -> None:
        """Judge by the restarts up to the last look. A benchmark without new restarts since it was
        judged keeps its judgement, so that there are no more looks than the error allows for."""
        ratios = self.until_look("log_ratio")
        kept = {
            name: judgement
            for name, judgement in self.judgements.items()
            if not self.patient and name in ratios  # it may have failed since
            if _settled(judgement) or judgement.restarts == len(ratios[name])
        }
        self._taken.update(n for n, of in ratios.items() if n not in kept and len(of) >= LEAST)
        self.judgements = judge(ratios, self.band, kept, self.level, self.own)

    @property
    def level(self) -> float:
        """The error allowed at one look, so that all looks together err no more than `ERROR`."""
        return ERROR / len(self.looks)

    def aa(self) -> dict[str, Judgement]:
        """The verdicts on base against itself, from the same restarts."""
        return judge(self.until_look("log_ratio_aa"), self.band, level=self.level, own=self.own)

    def medians(self, name: str) -> tuple[float, float]:
        """Median seconds of base and of head. They are a note: only ratios are sound."""
        of = self.readings[name]
        return (
            statistics.median(reading.base for reading in of),
            statistics.median(reading.head for reading in of),
        )

    def until_look(self, what: str = "log_ratio") -> dict[str, list[float]]:
        """The log-ratios of each benchmark up to its latest look. Verdicts between two looks would
        make errors more frequent."""
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
