"""Restarts until every benchmark of a comparison has its verdict."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rlox.timing.family import Judgement, judge
from rlox.timing.packages import Failure, Outcome, Reading
from rlox.timing.paired import BAND, LOOKS, next_look

# One restart of some benchmarks, from a seed.
Restart = Callable[[Sequence[str], int], Iterable[Outcome]]
# What a comparison tells meanwhile: restarts done, benchmarks undecided, seconds at most to come.
Tell = Callable[[int, int, float], None]


@dataclass
class Comparison:
    """Readings of benchmarks, one a restart, and the verdicts at the looks so far. A `patient` one
    goes on where all is decided, and judges anew at each look."""

    names: Sequence[str]
    band: float = BAND
    patient: bool = False
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
        most: int = LOOKS[-1],
        budget_s: float = float("inf"),
        tell: Tell = lambda restarts, undecided, seconds: None,
    ) -> None:
        """Restart until nothing is undecided, after `most` restarts, or out of time.

        What was read before a KeyboardInterrupt stays; `look` judges it.
        """
        seeds = random.Random()
        start, done = time.monotonic(), 0
        while (names := self.undecided()) and (look_at := next_look(done, most)) is not None:
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
        self.judgements = judge(self._until_look("log_ratio"), self.band, settled)

    def aa(self) -> dict[str, Judgement]:
        """The verdicts on base against itself, from the same restarts."""
        return judge(self._until_look("log_ratio_aa"), self.band)

    def medians(self, name: str) -> tuple[float, float]:
        """Of base and head: a note, for only ratios are sound."""
        of = self.readings[name]
        return (
            statistics.median(reading.base for reading in of),
            statistics.median(reading.head for reading in of),
        )

    def _until_look(self, what: str) -> dict[str, list[float]]:
        # A verdict may fall at a look only; between two it would err more often.
        return {
            name: [getattr(reading, what) for reading in of[: _last_look(len(of))]]
            for name, of in self.readings.items()
            if name not in self.failures
        }


def _settled(judgement: Judgement) -> bool:
    return judgement.verdict != "undecided"


def _last_look(restarts: int) -> int:
    return max((look for look in LOOKS if look <= restarts), default=restarts)


def tally(judgements: Iterable[Judgement]) -> Mapping[str, int]:
    """How many of each verdict."""
    counts = dict.fromkeys(("slower", "faster", "same", "undecided"), 0)
    for judgement in judgements:
        counts[judgement.verdict] += 1
    return counts
