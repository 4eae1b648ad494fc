"""Restarts until every benchmark of a comparison has its verdict."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rlox.timing.family import Judgement, judge
from rlox.timing.packages import Failure, Outcome, Reading
from rlox.timing.paired import BAND, ERROR, LOOKS, next_look

# One restart of some benchmarks, from a seed.
Restart = Callable[[Sequence[str], int], Iterable[Outcome]]
# What a comparison tells meanwhile: restarts done, benchmarks undecided, seconds at most to come.
Tell = Callable[[int, int, float], None]


@dataclass
class Comparison:
    """Readings of benchmarks, one a restart, and the verdicts at the `looks` so far. A `patient`
    one goes on where all is decided, and judges anew at each look."""

    names: Sequence[str]
    band: float = BAND
    patient: bool = False
    looks: Sequence[int] = LOOKS
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)

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
    ) -> None:
        """Restart until nothing is undecided, after `most` restarts (as many as at the last look),
        or out of time.

        What was read before a KeyboardInterrupt stays; `look` judges it.
        """
        seeds = random.Random()
        start, done = time.monotonic(), 0
        most = self.looks[-1] if most is None else most
        while names := self.undecided():
            look_at = next_look(done, most, self.looks)
            if look_at is None:
                return
            for number in range(done, look_at):
                began = time.monotonic()
                if number and began - start > budget_s:
                    self.look()
                    return
                for name, outcome in restart(names, seeds.getrandbits(63)):
                    if isinstance(outcome, Failure):
                        self.failures[name] = outcome
                    else:
                        self.readings.setdefault(name, []).append(outcome)
                names = [name for name in names if name not in self.failures]
                if not names:
                    break
                tell(number + 1, len(names), (time.monotonic() - began) * (most - number - 1))
            self.look()
            done = look_at

    def look(self) -> None:
        """Judge by the restarts up to the last look."""
        kept = {} if self.patient else self.judgements
        settled = {name: j for name, j in kept.items() if _settled(j)}
        self.judgements = judge(self.until_look("log_ratio"), self.band, settled, self.level)

    @property
    def level(self) -> float:
        """The error at a look, so that it is `ERROR` at all of them together."""
        return ERROR / len(self.looks)

    def aa(self) -> dict[str, Judgement]:
        """The verdicts on base against itself, from the same restarts."""
        return judge(self.until_look("log_ratio_aa"), self.band, level=self.level)

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
