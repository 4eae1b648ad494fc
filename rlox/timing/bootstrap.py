"""Percentile intervals by the bootstrap (Efron 1979): of a mean, and of a difference of means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_TAIL = 2.5  # per cent on either side: 95 % lie within


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean of `values`, which takes two of them at least."""
    return _within(_means(values, np.random.default_rng(0)))


def difference_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """95 % interval of mean(a) - mean(b), the two drawn apart; two values of each at least."""
    rng = np.random.default_rng(0)
    return _within(_means(a, rng) - _means(b, rng))


def _means(values: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    if len(values) < 2:
        raise ValueError(f"values: there is {len(values)}, expected 2 at least")
    array = np.asarray(values, dtype=np.float64)
    drawn = array[rng.integers(len(array), size=(RESAMPLES, len(array)))]
    means: NDArray[np.float64] = drawn.mean(axis=1)
    return means


def _within(means: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(means, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
