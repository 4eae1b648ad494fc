"""Verdicts on many benchmarks at once, looked at after 5, 10, 20, 40 restarts; where time does not
suffice for the first look, once after as many as it does, three at least.

Each benchmark gives one log-ratio a restart, ln(head time / base time). The threshold is the least
change that matters: a benchmark is slower where the whole interval lies above it, faster where the
whole lies below its negative, the same where the whole lies within, else undecided. The interval is
Student's over restarts, wide enough that four looks together miss the truth at most once in a
hundred times. A difference must also pass Benjamini and Hochberg's procedure over all benchmarks of
the run (Controlling the False Discovery Rate, 1995), at each look with a quarter of the error.
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
    """A ratio over 1 is slower. `ci99` and `p` are None below three restarts, and without any
    difference between restarts `p` is 0 or 1. `leans` is where the ratio itself lies, which is
    what an undecided benchmark leans to."""

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
    """The verdict of each benchmark at this look; those of `settled` stand.

    `band` is the threshold as a log-ratio, but of benchmarks that have their `own`; `level` is the
    error at this look. Raises ValueError for a benchmark without any ratio.
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
    """The p up to which a difference counts, so that of all that count at most the part `level` is
    expected to be none (Benjamini and Hochberg); -1 where none does. None is not judged."""
    ranked = sorted(p for p in ps if p is not None)
    # The largest p that is below its share of the error, and all that are smaller.
    limits = [p for rank, p in enumerate(ranked, 1) if p <= level * rank / len(ranked)]
    return max(limits, default=-1.0)


def would_settle(
    log_ratios: Sequence[float], restarts: int, band: float = BAND, level: float = LEVEL
) -> bool:
    """Whether a verdict is foreseen after so many restarts in all, where mean and scatter stay what
    they are in `log_ratios`, five at least."""
    if len(log_ratios) < LOOKS[0]:
        return False
    half = half_width(deviation(log_ratios), restarts, level)
    return half < abs(abs(statistics.fmean(log_ratios)) - band)


def restarts_to_settle(deviation: float, band: float = BAND) -> int | None:
    """After how many restarts a benchmark in which nothing changed is the same, where its
    log-ratios have this standard deviation; None where that takes more than the last look."""
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
    """How probable a mean so far from zero is where the truth lies within the band, at most: it is
    at the band's end.

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
