"""Contests in processes of their own."""

import random

import pytest

from rlox.timing import restarts
from rlox.timing.restarts import Cell, ContestError

SMALL = Cell("P7", "gae", (("n_steps", 64),))


def test_a_restart_reads_every_cell_once() -> None:
    other = Cell("P13", "refresh", (("n_envs", 2),))
    found = dict(restarts.twins(restarts.installed(), [SMALL, other], 0.01, seed=1))
    assert set(found) == {SMALL, other}
    assert all(reading.baseline_s > 0 and reading.optimized_s > 0 for reading in found.values())


def test_two_builds_are_timed_in_turn() -> None:
    """The same build as both sides: an A/A."""
    both = {side: restarts.installed() for side in ("baseline", "optimized")}
    ((cell, reading),) = restarts.builds(both, [SMALL], 0.02, seed=1)
    assert cell == SMALL
    assert reading.baseline_s > 0
    assert abs(reading.log_ratio) < 3


def test_another_thread_keeps_a_share_of_its_speed_beside_either_twin() -> None:
    cell = Cell("P11", "sample_256_numpy", (("obs_dim", 3),))
    reading = restarts.shares(restarts.installed(), cell, 0.05, seed=1)
    assert 1 / reading.baseline_s > 0
    assert 1 / reading.optimized_s > 0


def test_what_a_worker_refuses_is_an_error_that_names_it() -> None:
    with (
        restarts.worker(restarts.installed(), random.Random(0)) as ask,
        pytest.raises(ContestError, match='workload: is "gea"'),
    ):
        ask("contest", "P7", "gea", {"n_steps": 64}, 0.01, 1)


def test_a_worker_that_dies_is_an_error_and_not_a_hang() -> None:
    with restarts.worker(restarts.installed(), random.Random(0)) as ask:
        assert ask("build")["features"] is not None
        ask._process.kill()
        with pytest.raises(ContestError):
            ask("build")
