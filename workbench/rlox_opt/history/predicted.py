"""How far predictions were off, how wide the next one should be, and whether such widths hold.

An error is ln(realised / predicted), the middle of the interval taken for what was predicted,
over what the prediction claims: |ln(predicted)| and 0.05 on top, since who claims little errs by
little. The width is that of conformal prediction weighted so (Lei et al. 2018, Distribution-free
predictive inference for regression, section 5.2): with n errors known, the ceil(0.8 (n + 1))-th
smallest of their sizes, which holds the next one 80 times in a hundred if that is an error like
the others.
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
_LEAST = 4  # errors: of fewer, none is large enough for that coverage


@dataclass(frozen=True)
class Checked:
    """A prediction that was measured, at `date`: the logarithms of what it claimed, the middle of
    its interval, and of what was realised; `inside` says whether the interval held that."""

    id: str
    layer: str
    date: datetime
    claimed: float
    realised: float
    inside: bool

    @property
    def error(self) -> float:
        """By how many claims it was off."""
        return (self.realised - self.claimed) / _unit(self.claimed)


@dataclass(frozen=True)
class Width:
    """An interval from `low` to `high`, as wide as `errors` known errors say, which are those of
    `layer`, or of all layers where that is None."""

    low: float
    high: float
    errors: int
    layer: str | None

    def holds(self, of: Checked) -> bool:
        """Whether it holds what was realised."""
        return self.low <= math.exp(of.realised) <= self.high


class Held(NamedTuple):
    """How many intervals held what was realised."""

    inside: int
    of: int

    @property
    def share(self) -> float:
        """Of 1; of none, there is none."""
        return self.inside / self.of if self.of else math.nan


@dataclass(frozen=True)
class Sofar:
    """After the measurement of `last`: how many of all predictions so far lay inside the interval
    on the card, the one that all others so far propose, and the one that earlier ones proposed,
    of those with enough others."""

    last: Checked
    told: Held
    left_out: Held
    earlier: Held


def checked(ledger: Iterable[Line]) -> list[Checked]:
    """The predictions of a ledger that were measured, in the order of their measurements."""
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
    layer, or where they are too few, of all; None where these are too few."""
    every = list(known)
    own = [of for of in every if of.layer == layer]
    of, name = (own, layer) if len(own) >= _LEAST else (every, None)
    if len(of) < _LEAST:
        return None
    sizes = sorted(abs(one.error) for one in of)
    reach = sizes[math.ceil(COVERAGE * (len(of) + 1)) - 1] * _unit(math.log(ratio))
    return Width(ratio * math.exp(-reach), ratio * math.exp(reach), len(of), name)


def over_time(known: Sequence[Checked]) -> list[Sofar]:
    """How often intervals held, after each measurement."""
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
