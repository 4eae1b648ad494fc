"""Percentile intervals by the bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_TAIL = 2.5  # per cent on either side: 95 % lie within


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean of `values`, which takes two of them at least."""
    return _interval(_resampled(values).mean(axis=1))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median of `values`, which takes two of them at least."""
    return _interval(np.median(_resampled(values), axis=1))


def _resampled(values: Sequence[float]) -> NDArray[np.float64]:
    if len(values) < 2:
        raise ValueError(f"values: there is {len(values)}, expected 2 at least")
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(0)
    return array[rng.integers(len(array), size=(RESAMPLES, len(array)))]


def _interval(found: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(found, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
