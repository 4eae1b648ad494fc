"""What several processes cost is told from what iterations took: by how much, and what to do."""

import warnings

import pytest

from rlox.learner.exchange_cost import ExchangeCost, Iteration, verdict

# Half a rollout each, and an exchange that takes twice what one process does in all.
SLOW = Iteration((0.001, 0.002), updating=0.003, exchanging=0.012, joined=True)
FAST = Iteration((1.0, 1.2), updating=0.1, exchanging=0.2, joined=True)


def test_one_process_collects_for_all_and_exchanges_nothing() -> None:
    assert SLOW.together() == pytest.approx(0.016)
    assert SLOW.alone() == pytest.approx(0.006)


def test_one_process_learns_from_all_parts_of_a_minibatch() -> None:
    divided = SLOW._replace(joined=False)
    assert divided.together() == pytest.approx(0.016)
    assert divided.alone() == pytest.approx(0.009)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_without_exchanges_or_updates_workers_are_as_many_times_as_fast_as_they_are(
    size: int,
) -> None:
    ideal = Iteration((0.5,) * size, updating=0.0, exchanging=0.0, joined=True)
    assert ideal.alone() / ideal.together() == pytest.approx(size)


def test_slower_workers_are_told_with_the_estimate_and_the_remedy() -> None:
    told = verdict([SLOW], left=100)
    assert told is not None
    assert "2 processes train at most 0.38 times as fast as one" in told
    assert "take 16 ms, of which 12 ms are exchanges" in told
    assert "would take one process 6 ms at most" in told
    assert "longer by 1 s or more" in told
    assert "Train in one process, or collect more between two exchanges (n_steps)" in told


def test_a_training_that_ends_loses_nothing_more() -> None:
    told = verdict([SLOW], left=0)
    assert told is not None
    assert "longer by" not in told


def test_where_each_minibatch_is_exchanged_fewer_and_larger_ones_are_the_remedy() -> None:
    told = verdict([SLOW._replace(joined=False)], left=1)
    assert told is not None
    assert "exchange less often (a larger batch_size, fewer n_epochs)" in told


def test_workers_that_may_be_faster_are_told_nothing() -> None:
    assert verdict([FAST], left=100) is None
    even = SLOW._replace(exchanging=0.002)
    assert even.alone() == pytest.approx(even.together())
    assert verdict([even._replace(exchanging=0.0019)], left=100) is None
    assert verdict([even._replace(exchanging=0.0021)], left=100) is not None


def test_one_disturbed_iteration_decides_nothing() -> None:
    held_up = FAST._replace(exchanging=60.0)
    assert verdict([FAST, held_up, FAST], left=1) is None
    assert verdict([SLOW, FAST, SLOW], left=1) == verdict([SLOW], left=1)


def test_it_is_said_once_and_the_first_iteration_does_not_count() -> None:
    cost = ExchangeCost()
    for iteration in (SLOW, FAST, FAST):
        cost.add(iteration, left=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cost.add(FAST, left=9)
        cost.add(SLOW, left=9)

    cost = ExchangeCost()
    for iteration in (FAST, SLOW, SLOW):
        cost.add(iteration, left=9)
    with pytest.warns(UserWarning, match="2 processes train at most"):
        cost.add(SLOW, left=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cost.add(SLOW, left=9)
