"""Interleaved timing of Python calls within one process, as `pairs.contest` of the extension times
Rust: short slices of calls in a new random order each round, with the baseline twice (A/A)."""

from __future__ import annotations

import gc
import itertools
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence

Call = Callable[[], object]
Read = tuple[float, float, float, float, int]

_SLICE_S = 0.00025  # the shortest slice; reading the clock twice takes less than 0.1 % of it
_LEAST_ROUNDS = 7


def contest(arms: tuple[Call, Call, Call], seconds: float, seed: int) -> Read:
    """Time `baseline, optimized, baseline again` against each other for about `seconds`.

    Returns `(log_ratio, log_ratio_aa, baseline_s, optimized_s, rounds)`: the median over rounds of
    ln(baseline time / optimised time), the same of the baseline against itself, and the median
    seconds of a call.
    """
    rng = random.Random(seed)
    calls = max(_calls_per_slice(arm) for arm in arms)
    times: list[list[float]] = [[], [], []]
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while len(times[0]) < _LEAST_ROUNDS or time.perf_counter() < end:
            for place in rng.sample(range(3), 3):
                times[place].append(timed(arms[place], calls) / calls)
    finally:
        gc.enable()
    baseline, optimized, again = times
    return (
        _log_ratio(baseline, optimized),
        _log_ratio(baseline, again),
        statistics.median(baseline),
        statistics.median(optimized),
        len(baseline),
    )


def timed(call: Call, calls: int) -> float:
    """Seconds that `calls` calls take together."""
    start = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    return time.perf_counter() - start


def _calls_per_slice(arm: Call) -> int:
    calls = 1
    while timed(arm, calls) < _SLICE_S:
        calls *= 2
    return calls


def _log_ratio(of: Sequence[float], to: Sequence[float]) -> float:
    return statistics.median(math.log(a / b) for a, b in zip(of, to, strict=True))
