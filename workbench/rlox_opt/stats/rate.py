"""How often something happens, from few trials."""

from __future__ import annotations

import math

OUTSIDE = 0.05  # the probability at most that the truth lies above the bound
Z95 = 1.959964  # standard deviations to either side that contain 95 % of a normal distribution


def variance(hits: float, trials: float) -> float:
    """The variance of the share that `hits` are of `trials`, which may be effective numbers. Half a
    hit is added on either side, since a few trials that agree do not prove certainty."""
    near = (hits + 0.5) / (trials + 1)
    return near * (1 - near) / (trials + 1)


def upper_bound(hits: int, trials: int) -> float:
    """The largest rate at which so few `hits` in `trials` still have the probability `OUTSIDE`.

    Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26 (1934); one-sided. Raises ValueError unless 0 <= hits <= trials > 0.
    """
    if not 0 <= hits <= trials or not trials:
        raise ValueError(f"hits, trials: are {hits}, {trials}, expected 0 <= hits <= trials > 0")
    if hits == trials:
        return 1.0
    low, high = hits / trials, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(hits, trials, middle) > OUTSIDE else (low, middle)
    return high


def _at_most(hits: int, trials: int, rate: float) -> float:
    """The probability of so many hits or fewer, for a rate between 0 and 1."""
    logs = (
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        + k * math.log(rate) + (trials - k) * math.log1p(-rate)
        for k in range(hits + 1)
    )  # fmt: skip
    return math.fsum(map(math.exp, logs))
