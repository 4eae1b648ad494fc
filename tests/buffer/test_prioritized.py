"""Prioritised replay draws and weighs as Schaul et al. (2016) say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlox


def with_priorities(priorities: Any, **options: Any) -> rlox.PrioritizedReplayBuffer:
    n = len(priorities)
    buffer = rlox.PrioritizedReplayBuffer(n, 1, 1, **options)
    column = np.arange(n, dtype=np.float32)[:, None]
    flags = np.zeros(n, np.bool_)
    buffer.push_batch(column, column, column, column[:, 0].copy(), flags, flags)
    buffer.update_priorities(np.arange(n), np.asarray(priorities, np.float64))
    return buffer


@given(
    priorities=st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 10)), min_size=1, max_size=30),
    alpha=st.floats(0.1, 1),
    beta=st.floats(0, 1),
)
def test_weights_are_the_papers(priorities: list[float], alpha: float, beta: float) -> None:
    if not any(priorities):
        return
    p = np.array(priorities) ** alpha
    sample = with_priorities(priorities, alpha=alpha, beta=beta).sample(64)
    probability = p / p.sum()
    with np.errstate(divide="ignore"):
        weights = (len(p) * probability) ** -beta
    indices = sample["indices"]
    assert (p[indices] > 0).all(), "a priority of zero is never drawn"
    np.testing.assert_allclose(
        sample["weights"], weights[indices] / weights[p > 0].max(), rtol=1e-5
    )
    np.testing.assert_array_equal(sample["reward"], indices)
    assert (sample["weights"].dtype, indices.dtype) == (np.float32, np.int64)


def test_rows_are_drawn_in_proportion() -> None:
    """One draw a call, so that strata do not help: within five standard deviations."""
    p = np.arange(1.0, 11) ** 0.6
    buffer = with_priorities(np.arange(1.0, 11), alpha=0.6, seed=1)
    n = 20_000
    drawn = np.bincount([buffer.sample(1)["indices"][0] for _ in range(n)], minlength=10)
    share = p / p.sum()
    assert (np.abs(drawn - n * share) < 5 * np.sqrt(n * share * (1 - share))).all()


def test_strata_spread_a_batch_evenly() -> None:
    sample = with_priorities(np.ones(32)).sample(32)
    np.testing.assert_array_equal(sample["indices"], np.arange(32))


def test_a_new_transition_gets_the_largest_priority_seen() -> None:
    buffer = with_priorities([8.0, 1.0], alpha=1.0)
    buffer.update_priorities(np.array([0]), np.array([1.0]))
    one = np.zeros(1, np.float32)
    buffer.push(one, one, one, 0.0, False, False)  # over row 0, with priority 8
    drawn = np.bincount(buffer.sample(900)["indices"])
    np.testing.assert_array_equal(drawn, [800, 100])


def test_alpha_zero_is_uniform() -> None:
    sample = with_priorities([0.0, 1.0, 100.0, 7.0], alpha=0.0).sample(400)
    np.testing.assert_array_equal(np.bincount(sample["indices"]), [100] * 4)
    assert (sample["weights"] == 1).all()


def test_beta_can_be_annealed() -> None:
    buffer = with_priorities([1.0, 4.0], alpha=1.0, beta=0.5)
    assert (buffer.alpha, buffer.beta) == (1.0, 0.5)
    assert set(buffer.sample(10)["weights"]) == {1.0, 0.5}
    buffer.beta = 1.0
    assert set(buffer.sample(10)["weights"]) == {1.0, 0.25}
    with pytest.raises(ValueError, match="beta: is -1"):
        buffer.beta = -1.0


def test_the_last_of_two_priorities_counts_and_float32_will_do() -> None:
    buffer = with_priorities([1.0, 1.0], alpha=1.0)
    buffer.update_priorities(np.array([1, 1]), np.array([9.0, 3.0], np.float32))
    np.testing.assert_array_equal(np.bincount(buffer.sample(400)["indices"]), [100, 300])


@pytest.mark.parametrize(
    ("indices", "priorities", "exception", "message"),
    [
        ([0], [np.nan], ValueError, "priorities: is NaN at index 0"),
        ([0], [-1.0], ValueError, "priorities: is -1 at index 0"),
        ([0], [np.inf], ValueError, "priorities: is inf at index 0"),
        ([0, 1], [1.0], ValueError, "priorities: has length 1, expected 2"),
        ([0, 3], [1.0, 1.0], ValueError, "indices: is 3 at index 1, expected 0 <= index < 3"),
        ([-1], [1.0], ValueError, "indices: is -1 at index 0"),
        ([0.0], [1.0], TypeError, "indices: has dtype float64, expected int64"),
        ([0], [1], TypeError, "priorities: has dtype int64, expected float64 or float32"),
    ],
)
def test_a_bad_update_is_named_and_changes_nothing(
    indices: list[Any], priorities: list[Any], exception: type[Exception], message: str
) -> None:
    buffer = with_priorities([1.0, 2.0, 3.0])
    before = buffer.sample(50, seed=0)["indices"]
    with pytest.raises(exception, match=message):
        buffer.update_priorities(np.array(indices), np.array(priorities))
    np.testing.assert_array_equal(buffer.sample(50, seed=0)["indices"], before)


def test_nothing_can_be_drawn_when_every_priority_is_zero() -> None:
    with pytest.raises(RuntimeError, match="every priority is zero"):
        with_priorities([0.0, 0.0]).sample(1)
