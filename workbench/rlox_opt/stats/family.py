"""Verdicts on many benchmarks at once, with looks after 5, 10, 20, 40 restarts. If there is no time
for the first look, there is one look after fewer restarts, three at the least.

Each benchmark gives one log-ratio a restart, ln(head time / base time). The threshold is the least
change that matters. A benchmark is slower if the whole interval lies above the threshold, faster if
it lies below the threshold's negative, the same if it lies between them, and otherwise undecided.
The interval is Student's over restarts, so wide that four looks together miss the truth at most
once in a hundred times. A difference must also pass Benjamini and Hochberg's procedure over all
benchmarks that are judged together (Controlling the False Discovery Rate, 1995), at each look with
a quarter of the error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rlox_opt.stats.paired import BAND, FLAGGED, LEAST, LEVEL, LOOKS, Verdict, Zone, zone
from rlox_opt.stats.student import deviation, half_width, ratio_interval, t_beyond


@dataclass(frozen=True)
class Judgement:
    """A verdict with its figures. A ratio over 1 is slower. `ci99` and `p` are None below three
    restarts; if all restarts agree, `p` is 0 or 1. `leans` says where the ratio itself lies, and so
    to which verdict an undecided benchmark leans."""

    ratio: float
    ci99: tuple[float, float] | None
    verdict: Verdict
    restarts: int
    p: float | None
    leans: Zone


def judge(
    log_ratios: Mapping[str, Sequence[float]],
    band: float = BAND,
    settled: Mapping[str, Judgement] | None = None,
    level: float = LEVEL,
    own: Mapping[str, float] | None = None,
) -> dict[str, Judgement]:
    """The verdict of each benchmark at this look. Verdicts in `settled` do not change.

    `band` is the threshold as a log-ratio; `own` holds thresholds of single benchmarks. `level` is
    the error at this look. Raises ValueError for a benchmark without any ratio.
    """
    settled = settled or {}
    bands = dict.fromkeys(log_ratios, band) | {**(own or {})}
    fresh = {
        name: _estimate(of, bands[name], level)
        for name, of in log_ratios.items()
        if name not in settled
    }
    judgements = {name: settled.get(name) or fresh[name] for name in log_ratios}
    limit = passing([judgement.p for judgement in judgements.values()], level)
    return judgements | {name: _decide(of, bands[name], limit) for name, of in fresh.items()}


def passing(ps: Iterable[float | None], level: float) -> float:
    """The p up to which a difference counts. Among those that count, the expected part without a
    real difference is at most `level` (Benjamini and Hochberg). -1 if none counts; None is not
    counted."""
    ranked = sorted(p for p in ps if p is not None)
    # The largest p that is within its share of the error; all smaller ones count too.
    limits = [p for rank, p in enumerate(ranked, 1) if p <= level * rank / len(ranked)]
    return max(limits, default=-1.0)


def would_settle(
    log_ratios: Sequence[float], restarts: int, band: float = BAND, level: float = LEVEL
) -> bool:
    """Whether a verdict is expected after so many restarts in all, if mean and scatter stay as they
    are in `log_ratios`, of which there must be five at least."""
    if len(log_ratios) < LOOKS[0]:
        return False
    half = half_width(deviation(log_ratios), restarts, level)
    return half < abs(abs(statistics.fmean(log_ratios)) - band)


def restarts_to_settle(deviation: float, band: float = BAND) -> int | None:
    """The look at which an unchanged benchmark gets the verdict "same", if its log-ratios have this
    standard deviation; None if the last look is not enough."""
    for look in LOOKS:
        if half_width(deviation, look, LEVEL) < band:
            return look
    return None


def _estimate(log_ratios: Sequence[float], band: float, level: float) -> Judgement:
    if not log_ratios:
        raise ValueError("log_ratios: is empty, expected one a restart")
    n = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    leans: Zone = "slower" if mean > band else "faster" if mean < -band else "same"
    if n < LEAST:
        return Judgement(math.exp(mean), None, "undecided", n, None, leans)
    interval = ratio_interval(log_ratios, level)
    p = _p(mean, deviation(log_ratios) / math.sqrt(n), band, n - 1)
    return Judgement(math.exp(mean), interval, "undecided", n, p, leans)


def _p(mean: float, error: float, band: float, df: int) -> float:
    """The largest probability of a mean so far from zero over all truths within the band. It
    belongs to a truth at the band's end.

    McCarthy and Smyth, Testing significance relative to a fold-change threshold is a TREAT,
    Bioinformatics 25 (2009), section 2.2.
    """
    if not error:
        return float(abs(mean) <= band)
    return t_beyond((abs(mean) - band) / error, df) + t_beyond((abs(mean) + band) / error, df)


def _decide(judgement: Judgement, band: float, limit: float) -> Judgement:
    if judgement.ci99 is None or judgement.p is None:
        return judgement
    verdict = zone(*judgement.ci99, band)
    if verdict in FLAGGED and judgement.p > limit:
        return judgement
    return replace(judgement, verdict=verdict)
