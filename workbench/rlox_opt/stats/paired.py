"""Verdicts from paired measurements: one log-ratio a restart, with looks after 5, 10, 20, 40.

Within one process, memory layout and placement are fixed, so all its rounds are one observation.
The unit of replication is the restart, and the interval is Student's over restarts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rlox_opt.stats.student import ratio_interval

Zone = Literal["faster", "slower", "same"]
Verdict = Literal["faster", "slower", "same", "undecided"]

# The verdicts that report a change.
FLAGGED: tuple[Verdict, ...] = ("slower", "faster")

# The numbers of restarts after which a verdict may be given.
LOOKS = (5, 10, 20, 40)
LEAST = 3  # restarts for a verdict, if there is no time for the first look
# The threshold: changes up to it do not matter.
BAND = math.log(1.01)

_INTERVAL = 0.05  # the probability outside the printed interval
ERROR = 0.01  # the largest error of the verdicts at all looks together
LEVEL = ERROR / len(LOOKS)  # the probability outside the interval for a verdict at one look


@dataclass(frozen=True)
class Estimate:
    """A ratio over `restarts`, its 95 % interval (None below five restarts), and the verdict.

    The ratio is baseline time / other time: "faster" means that the other side is faster.
    """

    ratio: float
    ci95: tuple[float, float] | None
    verdict: Verdict
    restarts: int


def estimate(log_ratios: Sequence[float]) -> Estimate:
    """The estimate from one log-ratio a restart.

    Between two looks the quantiles of the look before are used, which are wider. Raises ValueError
    if there are no ratios.
    """
    if not log_ratios:
        raise ValueError("log_ratios: is empty, expected one a restart")
    n = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    look = max((look for look in LOOKS if look <= n), default=None)
    if look is None:
        return Estimate(math.exp(mean), None, "undecided", n)
    interval = ratio_interval(log_ratios, _INTERVAL, look - 1)
    low, high = ratio_interval(log_ratios, LEVEL, look - 1)
    return Estimate(math.exp(mean), interval, zone(1 / high, 1 / low, BAND), n)


def zone(low: float, high: float, band: float) -> Verdict:
    """The verdict from an interval of new time / old time. It depends on whether the whole interval
    lies above the threshold, whose log-ratio is `band`, below the threshold's inverse, or between
    the two; it is undecided if the interval contains one of them."""
    if math.log(low) > band:
        return "slower"
    if math.log(high) < -band:
        return "faster"
    return "same" if -band < math.log(low) and math.log(high) < band else "undecided"


def next_look(restarts: int, most: int, looks: Sequence[int] = LOOKS) -> int | None:
    """The number of restarts at the next look, at most `most`; None if there is no further look."""
    return next((look for look in looks if restarts < look <= most), None)
