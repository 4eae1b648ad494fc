"""The upper bound of a rate, held to closed forms and to what it promises."""

from math import comb

import pytest

from rlox_opt.stats.rate import OUTSIDE, upper_bound


@pytest.mark.parametrize("trials", [1, 40, 320])
def test_without_a_hit_the_bound_is_that_of_the_closed_form(trials: int) -> None:
    """(1 - rate) ** trials = OUTSIDE: the rule of three, exactly."""
    assert upper_bound(0, trials) == pytest.approx(1 - OUTSIDE ** (1 / trials), rel=1e-9)


@pytest.mark.parametrize(("hits", "trials"), [(1, 10), (2, 40), (9, 12), (11, 320)])
def test_at_the_bound_so_few_hits_are_as_rare_as_said(hits: int, trials: int) -> None:
    rate = upper_bound(hits, trials)
    few = sum(comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(hits + 1))
    assert few == pytest.approx(OUTSIDE, rel=1e-6)
    assert upper_bound(1, 10) == pytest.approx(0.3942, abs=5e-5)  # of printed tables


def test_all_hits_have_no_bound_below_one() -> None:
    assert upper_bound(10, 10) == 1.0


@pytest.mark.parametrize(("hits", "trials"), [(-1, 3), (4, 3), (0, 0)])
def test_counts_that_cannot_be_are_refused(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="hits, trials: are"):
        upper_bound(hits, trials)
