"""How wrong predictions were, how wide the interval of the next one should be, and how often such
intervals contained the result.

An error is ln(realised / predicted) divided by the size of the claim. The predicted value is the
middle of the interval. The size is |ln(predicted)| + 0.05; the 0.05 is there since a small claim
has a small error. The width is that of weighted conformal prediction (Lei et al. 2018,
Distribution-free predictive inference for regression, section 5.2): with n known errors, the
ceil(0.8 (n + 1))-th smallest of their sizes. It contains the next error 80 times in a hundred if
that is an error like the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rlox_opt.history.ledger import Line

COVERAGE = 0.8
_BESIDE_THE_CLAIM = 0.05
_LEAST = 4  # errors; with fewer, not even the largest gives that coverage


@dataclass(frozen=True)
class Checked:
    """A prediction that was checked by a measurement at `date`: the logarithms of the claimed
    ratio, of the interval's middle, and of the realised ratio. `inside` says whether the interval
    contains the last."""

    id: str
    layer: str
    date: datetime
    claimed: float
    realised: float
    inside: bool

    @property
    def error(self) -> float:
        """Its error: the deviation divided by the size of the claim."""
        return (self.realised - self.claimed) / _unit(self.claimed)


@dataclass(frozen=True)
class Width:
    """An interval from `low` to `high`. Its width comes from `errors` known errors: those of
    `layer`, or of all layers if that is None."""

    low: float
    high: float
    errors: int
    layer: str | None

    def holds(self, of: Checked) -> bool:
        """Whether the interval contains the realised ratio."""
        return self.low <= math.exp(of.realised) <= self.high


class Held(NamedTuple):
    """How many intervals contained the realised ratio."""

    inside: int
    of: int

    @property
    def share(self) -> float:
        """The share; nan if there are no intervals."""
        return self.inside / self.of if self.of else math.nan


@dataclass(frozen=True)
class Sofar:
    """The state after the measurement of `last`: how many intervals of all predictions so far
    contained the result. Three kinds are counted: those on the cards, those that all other
    predictions so far propose, and those that the earlier ones proposed (the last two only where
    there are enough others)."""

    last: Checked
    told: Held
    left_out: Held
    earlier: Held


def checked(ledger: Iterable[Line]) -> list[Checked]:
    """The predictions of a ledger that were measured, in the order of the measurements."""
    measured = []
    for line in ledger:
        if line.card.prediction and line.realised:
            record, result = line.realised
            low, high = line.card.prediction.ratio
            claimed, inside = math.log(low * high) / 2, line.outcome == "inside"
            realised = math.log(result.ratio)
            card = line.card
            measured.append(Checked(card.id, card.layer, record.date, claimed, realised, inside))
    return sorted(measured, key=lambda of: (of.date, of.id))


def width(ratio: float, layer: str, known: Iterable[Checked]) -> Width | None:
    """The interval around a predicted `ratio` in a layer, from the errors of `known`: those of that
    layer, or of all layers if they are too few; None if these are too few as well."""
    every = list(known)
    own = [of for of in every if of.layer == layer]
    of, name = (own, layer) if len(own) >= _LEAST else (every, None)
    if len(of) < _LEAST:
        return None
    sizes = sorted(abs(one.error) for one in of)
    reach = sizes[math.ceil(COVERAGE * (len(of) + 1)) - 1] * _unit(math.log(ratio))
    return Width(ratio * math.exp(-reach), ratio * math.exp(reach), len(of), name)


def over_time(known: Sequence[Checked]) -> list[Sofar]:
    """How often intervals contained the result, after each measurement."""
    stages = []
    earlier: list[bool] = []
    for n, last in enumerate(known, 1):
        sofar = known[:n]
        earlier += _held(last, sofar[:-1])
        left_out = [held for of in sofar for held in _held(of, [o for o in sofar if o is not of])]
        told = [of.inside for of in sofar]
        stages.append(Sofar(last, *(Held(sum(of), len(of)) for of in (told, left_out, earlier))))
    return stages


def _held(of: Checked, others: Iterable[Checked]) -> list[bool]:
    proposed = width(math.exp(of.claimed), of.layer, others)
    return [proposed.holds(of)] if proposed else []


def _unit(claimed: float) -> float:
    return abs(claimed) + _BESIDE_THE_CLAIM
