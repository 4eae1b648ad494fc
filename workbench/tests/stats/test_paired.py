"""Verdicts: right where they fall, and rarely wrong on nothing."""

import math
import random

import pytest

from rlox_opt.stats import paired


def test_a_clear_gain_is_faster_and_its_inverse_slower() -> None:
    gain = [math.log(1.5) + noise for noise in (-0.01, -0.005, 0, 0.005, 0.01)]
    found = paired.estimate(gain)
    assert found.verdict == "faster"
    assert found.ratio == pytest.approx(1.5)
    assert found.ci95 is not None
    assert found.ci95[0] < 1.5 < found.ci95[1]
    assert paired.estimate([-x for x in gain]).verdict == "slower"


def test_close_to_one_within_the_band_is_the_same() -> None:
    assert paired.estimate([0.001, -0.001, 0.0, 0.0005, -0.0005]).verdict == "same"


def test_noise_as_wide_as_the_effect_is_undecided() -> None:
    assert paired.estimate([0.3, -0.2, 0.1, -0.1, 0.2]).verdict == "undecided"


def test_below_the_first_look_there_is_no_interval_and_no_verdict() -> None:
    found = paired.estimate([0.5] * (paired.LOOKS[0] - 1))
    assert (found.ci95, found.verdict) == (None, "undecided")


def test_no_ratios_are_an_error() -> None:
    with pytest.raises(ValueError, match="log_ratios"):
        paired.estimate([])


def test_over_all_looks_a_wrong_verdict_on_nothing_is_rarer_than_one_in_a_hundred() -> None:
    """Sequentially, as `cmp` looks."""
    rng = random.Random(0)
    trials, wrong = 4_000, 0
    for _ in range(trials):
        ratios: list[float] = []
        while (look := paired.next_look(len(ratios), 40)) is not None:
            ratios += [rng.gauss(0, 0.03) for _ in range(look - len(ratios))]
            verdict = paired.estimate(ratios).verdict
            if verdict != "undecided":
                break
        wrong += verdict in ("faster", "slower")
    # 1 % of 4,000 is 40; 60 would be three standard deviations above it.
    assert wrong < 60


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(1)
    covered = 0
    for _ in range(4_000):
        ci95 = paired.estimate([rng.gauss(0.2, 0.05) for _ in range(5)]).ci95
        assert ci95 is not None
        covered += ci95[0] <= math.exp(0.2) <= ci95[1]
    assert 0.94 < covered / 4_000 < 0.96


def test_looks_come_in_order_and_end_at_the_most_allowed() -> None:
    assert paired.next_look(0, 20) == 5
    assert paired.next_look(7, 20) == 10
    assert paired.next_look(20, 20) is None
    assert paired.next_look(20, 40) == 40
