"""Axes of pictures: where values lie, which values are marked, and labels that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple


@dataclass(frozen=True)
class Axis:
    """A line from `start` to `end`, in pixels or per cent, for the values from `low` to `high`: on
    a logarithmic scale unless `linear`. Places are rounded to `digits`."""

    low: float
    high: float
    start: float
    end: float
    linear: bool = False
    digits: int = 1

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, share: float = 0, more: float = 0
    ) -> Axis:
        """A logarithmic axis with all values, which must be over 0. On both sides there is room for
        `share` of their span, plus `more`, a natural logarithm."""
        low, high = math.log(min(values)), math.log(max(values))
        room = share * (high - low) + more
        return cls(math.exp(low - room), math.exp(high + room), start, end)

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        low, high, at = self.low, self.high, value
        if not self.linear:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / max(high - low, 1e-9)
        return round(self.start + (self.end - self.start) * share, self.digits)


class Tick(NamedTuple):
    """A mark of an axis; `one` marks the place at which bars begin."""

    at: float
    label: str
    one: bool = False


def decades(low: float, high: float, digits: Sequence[float] = (1,)) -> list[float]:
    """The `digits`, each from 1 to 10, times powers of ten, as far as they lie within the ends."""
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 2)
    found = (digit * 10.0**power for power in powers for digit in digits)
    return [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def round_step(low: float, high: float, most: int, power: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten, from that `power` up, such that no more than
    `most` multiples lie within the ends."""
    steps = (digit * 10.0**exponent for exponent in count(power) for digit in (1, 2, 5))
    return next(step for step in steps if math.floor(high / step) - math.ceil(low / step) < most)


def apart(ticks: Iterable[float], axis: Callable[[float], float], distance: float) -> list[float]:
    """The ticks, in order, without those nearer than `distance` to a tick given before."""
    kept: list[float] = []
    for tick in ticks:
        if all(abs(axis(tick) - axis(other)) >= distance for other in kept):
            kept.append(tick)
    return sorted(kept)


def spread(wanted: Iterable[float], low: float, high: float, distance: float) -> list[float]:
    """Places in order, moved until each is `distance` from the next and all lie within the ends, if
    there is room."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + distance if places else low))
    for index in reversed(range(len(places))):
        places[index] = min(places[index], high)
        high = places[index] - distance
    return places
