"""Student's t against the tables of the textbooks."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.stats.student import deviation, t_quantile, t_tail

# Two-sided, as printed in every book of tables.
TABLE = [
    (0.05, 1, 12.7062),
    (0.05, 4, 2.7764),
    (0.05, 9, 2.2622),
    (0.05, 10, 2.2281),
    (0.01, 4, 4.6041),
    (0.01, 19, 2.8609),
    (0.01, 39, 2.7079),
    (0.001, 2, 31.5991),
]


@pytest.mark.parametrize(("tail", "df", "t"), TABLE)
def test_quantiles_are_those_of_the_tables(tail: float, df: int, t: float) -> None:
    assert t_quantile(tail, df) == pytest.approx(t, abs=1e-4)
    assert t_tail(t, df) == pytest.approx(tail, rel=1e-4)


def test_all_lies_beyond_zero_and_nothing_beyond_infinity() -> None:
    for df in (1, 2, 7, 8):
        assert t_tail(0.0, df) == pytest.approx(1)
        assert t_tail(math.inf, df) == pytest.approx(0, abs=1e-12)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=40))
def test_the_deviation_is_that_of_the_standard_library(values: list[float]) -> None:
    assert deviation(values) == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-12)
