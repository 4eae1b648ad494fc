"""Verdicts on many benchmarks at once, looked at after 5, 10, 20, 40 restarts.

Each benchmark gives one log-ratio a restart, ln(head time / base time). An interval is Student's
over restarts, wide enough that four looks together miss the truth at most once in a hundred times.
A difference must also pass Benjamini and Hochberg's procedure over all benchmarks of the run
(Controlling the False Discovery Rate, 1995), at each look with a quarter of the error: where
nothing has changed, a run says otherwise at most once in a hundred times.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlox.timing.paired import BAND, LEVEL, LOOKS, Verdict
from rlox.timing.student import deviation, ratio_interval, t_quantile, t_tail


@dataclass(frozen=True)
class Judgement:
    """A ratio over 1 is slower. `ci99` and `p` are None below five restarts, and without any
    difference between restarts `p` is 0 or 1."""

    ratio: float
    ci99: tuple[float, float] | None
    verdict: Verdict
    restarts: int
    p: float | None


def judge(
    log_ratios: Mapping[str, Sequence[float]],
    band: float = BAND,
    settled: Mapping[str, Judgement] | None = None,
    level: float = LEVEL,
) -> dict[str, Judgement]:
    """The verdict of each benchmark at this look; those of `settled` stand.

    `band` is the log-ratio up to which two times count as the same, `level` the error at this look.
    Raises ValueError for a benchmark without any ratio.
    """
    settled = settled or {}
    fresh = {name: _estimate(of, level) for name, of in log_ratios.items() if name not in settled}
    found = {name: settled.get(name) or fresh[name] for name in log_ratios}
    limit = passing([judgement.p for judgement in found.values()], level)
    return found | {name: _decide(judgement, band, limit) for name, judgement in fresh.items()}


def passing(ps: Iterable[float | None], level: float) -> float:
    """The p up to which a difference counts, so that of all that count at most the part `level` is
    expected to be none (Benjamini and Hochberg); -1 where none does. None is not judged."""
    ranked = sorted(p for p in ps if p is not None)
    # The largest p that is below its share of the error, and all that are smaller.
    limits = [p for rank, p in enumerate(ranked, 1) if p <= level * rank / len(ranked)]
    return max(limits, default=-1.0)


def restarts_to_settle(deviation: float, band: float = BAND) -> int | None:
    """After how many restarts a benchmark in which nothing changed is the same, where its
    log-ratios have this standard deviation; None where that takes more than the last look."""
    for look in LOOKS:
        if t_quantile(LEVEL, look - 1) * deviation / math.sqrt(look) < band:
            return look
    return None


def _estimate(log_ratios: Sequence[float], level: float) -> Judgement:
    if not log_ratios:
        raise ValueError("log_ratios: is empty, expected one a restart")
    n = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    if n < LOOKS[0]:
        return Judgement(math.exp(mean), None, "undecided", n, None)
    error = deviation(log_ratios) / math.sqrt(n)
    p = t_tail(abs(mean) / error, n - 1) if error else float(mean == 0)
    return Judgement(math.exp(mean), ratio_interval(log_ratios, level), "undecided", n, p)


def _decide(found: Judgement, band: float, limit: float) -> Judgement:
    if found.ci99 is None or found.p is None:
        return found
    verdict: Verdict = "undecided"
    if max(-math.log(found.ci99[0]), math.log(found.ci99[1])) < band:
        verdict = "same"
    elif found.p <= limit:
        verdict = "slower" if found.ratio > 1 else "faster"
    return Judgement(found.ratio, found.ci99, verdict, found.restarts, found.p)
