"""Student's t distribution, for the few quantiles that verdicts need."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache


def t_tail(t: float, df: int) -> float:
    """The probability that Student's t with `df` degrees of freedom lies beyond -t or t.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan2(t, math.sqrt(df))
    cosine = math.cos(angle)
    term = total = cosine if df % 2 else 1.0
    for k in range(2 + df % 2, df - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if df % 2 == 0:
        return 1.0 - math.sin(angle) * total
    within = angle if df == 1 else angle + math.sin(angle) * total
    return 1.0 - 2.0 / math.pi * within


def t_beyond(t: float, df: int) -> float:
    """The probability that Student's t exceeds `t`, on that side alone."""
    half = t_tail(abs(t), df) / 2
    return half if t > 0 else 1.0 - half


@cache
def t_quantile(tail: float, df: int) -> float:
    """The t beyond which, on both sides together, lies the probability `tail`."""
    low, high = 0.0, 1.0
    while t_tail(high, df) > tail:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, df) > tail else (low, middle)
    return high


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, int]:
    """The difference of the means of two samples of two or more values, its standard error, and its
    degrees of freedom rounded down. The variances may differ (Welch 1947)."""
    of_a, of_b = (deviation(values) ** 2 / len(values) for values in (a, b))
    difference = statistics.fmean(a) - statistics.fmean(b)
    parts = of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1)
    df = (of_a + of_b) ** 2 / parts if parts else len(a) + len(b) - 2
    return difference, math.sqrt(of_a + of_b), int(df + 1e-9)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of two or more values. It is used in place of the exact
    `statistics.stdev`, which would take most of the time of a calibration's simulated runs."""
    return math.dist(values, [statistics.fmean(values)] * len(values)) / math.sqrt(len(values) - 1)


def ratio_interval(
    log_ratios: Sequence[float], outside: float, df: int | None = None
) -> tuple[float, float]:
    """The interval of the ratio whose logarithm is the mean of two or more `log_ratios`. It misses
    with the probability `outside`. `df` are the degrees of freedom, by default one fewer than
    ratios.
    """
    low, high = mean_interval(log_ratios, outside, df)
    return math.exp(low), math.exp(high)


def mean_interval(
    values: Sequence[float], outside: float, df: int | None = None
) -> tuple[float, float]:
    """The interval of the mean of two or more `values`, as in `ratio_interval`."""
    mean = statistics.fmean(values)
    half = half_width(deviation(values), len(values), outside, df)
    return mean - half, mean + half


def half_width(sd: float, n: int, outside: float, df: int | None = None) -> float:
    """Half the width of the interval of a mean of `n` values with the standard deviation `sd`."""
    return t_quantile(outside, df or n - 1) * sd / math.sqrt(n)
