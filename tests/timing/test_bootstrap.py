"""Bootstrap intervals hold what they promise."""

import numpy as np
import pytest

from rlox.timing.bootstrap import mean_interval


def test_an_interval_of_the_mean_covers_it_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        low, high = mean_interval(rng.normal(3.0, 1.0, size=20))
        covered += low <= 3.0 <= high
    assert 85 <= covered <= 99  # the percentile interval of 20 values is a little narrow


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="expected 2 at least"):
        mean_interval([1.0])
