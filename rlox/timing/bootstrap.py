"""Percentile intervals by the bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000
_TAIL = 2.5  # per cent on either side: 95 % lie within


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean of `values`, which takes two of them at least."""
    if len(values) < 2:
        raise ValueError(f"values: there is {len(values)}, expected 2 at least")
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(0)
    means = array[rng.integers(len(array), size=(RESAMPLES, len(array)))].mean(axis=1)
    low, high = np.percentile(means, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
