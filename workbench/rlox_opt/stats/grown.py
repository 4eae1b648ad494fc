"""Which parts of a time have grown between samples before and samples after, and how much of the
whole change each part makes; with an interval, since samples are few.

Shares of time are not enough, since a part that grows makes all other shares smaller. So the shares
after are multiplied by the ratio of the times. What a part then has more than before is its part of
the change. Its variance is that of two binomial shares (with Kish's effective sizes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import sqrt
from typing import Generic, TypeVar

from rlox_opt.stats import rate

Label = TypeVar("Label", bound=Hashable)


@dataclass
class Tally(Generic[Label]):
    """Weights of samples by label. A sample may have several labels or none; it counts once for the
    whole."""

    of: defaultdict[Label, float] = field(default_factory=lambda: defaultdict(float))
    total: float = 0.0
    squares: float = 0.0
    samples: int = 0

    def add(self, weight: float, *labels: Label) -> None:
        """Count a sample."""
        for label in labels:
            self.of[label] += weight
        self.total += weight
        self.squares += weight * weight
        self.samples += 1

    def share(self, label: Label) -> float:
        """The part of all weight that has this label."""
        return self.of.get(label, 0.0) / self.total if self.total else 0.0

    def variance(self, label: Label) -> float:
        """The variance of that share."""
        size = self.total * self.total / self.squares if self.squares else 0.0
        return rate.variance(self.share(label) * size, size)


@dataclass(frozen=True)
class Grown(Generic[Label]):
    """A part of a change. The parts of a change sum to 1; below 0 the part became less. The
    interval has 95 %."""

    label: Label
    part: float
    low: float
    high: float

    @property
    def surely(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0


def grown(before: Tally[Label], after: Tally[Label], ratio: float) -> list[Grown[Label]]:
    """The part of each label in the change of a `ratio` = time after / time before, the largest
    first. Raises ValueError if nothing changed, or if one side has no samples."""
    if ratio == 1 or ratio <= 0:
        raise ValueError(f"ratio: is {ratio}, expected a change of time")
    if not before.total or not after.total:
        side = "before" if not before.total else "after"
        raise ValueError(f"there are no samples of the time {side}")
    found = []
    for label in dict.fromkeys([*before.of, *after.of]):
        part = (ratio * after.share(label) - before.share(label)) / (ratio - 1)
        variance = ratio**2 * after.variance(label) + before.variance(label)
        half = rate.Z95 * sqrt(variance) / abs(ratio - 1)
        found.append(Grown(label, part, part - half, part + half))
    return sorted(found, key=lambda of: -of.part)


def shares(of: Tally[Label]) -> list[Grown[Label]]:
    """The part of each label in the whole, the largest first."""
    found = []
    for label in of.of:
        share, half = of.share(label), rate.Z95 * sqrt(of.variance(label))
        found.append(Grown(label, share, max(0.0, share - half), min(1.0, share + half)))
    return sorted(found, key=lambda each: -each.part)
