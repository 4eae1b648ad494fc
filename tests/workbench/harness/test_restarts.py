"""Contests in processes of their own."""

import dataclasses
import math
import random
import statistics
from time import sleep

import projects
import pytest
from rlox_opt.harness import restarts, twins_worker
from rlox_opt.harness.restarts import Cell, ContestError, Reading

EXTENSION, _ = projects.HERE.installed.extension_of_twins()
SMALL = Cell("P7", "gae", (("n_steps", 64),))
BUSY = math.log(1.8)  # what neighbours on the machine may move the median of some restarts by


def median(readings: list[Reading]) -> Reading:
    """Of each of their numbers: a restart of some milliseconds can be off by a factor of four."""
    columns = zip(*map(dataclasses.astuple, readings), strict=True)
    return Reading(*(None if None in of else statistics.median(of) for of in columns))


def assert_consistent(reading: Reading) -> None:
    """The ratio of its seconds is about its ratio."""
    assert min(reading.baseline_s, reading.optimized_s) > 0
    of_seconds = math.log(reading.baseline_s / reading.optimized_s)
    assert of_seconds == pytest.approx(reading.log_ratio, abs=math.log(6))


def test_a_restart_reads_every_cell_once() -> None:
    other = Cell("P13", "refresh", (("n_envs", 2),))
    found = [dict(restarts.twins(EXTENSION, [SMALL, other], 0.03, seed)) for seed in range(9)]
    assert [set(of) for of in found] == [{SMALL, other}] * 9
    gae, refresh = (median([of[cell] for of in found]) for cell in (SMALL, other))
    for reading in (gae, refresh):
        assert_consistent(reading)
        assert reading.log_ratio_aa is not None
    # The refresh is made some six times as fast, and the baseline as itself: no neighbour on the
    # machine hides that in most of nine restarts. It does in one, and has in two of three.
    assert refresh.log_ratio > math.log(2)
    assert abs(refresh.log_ratio_aa or 0) < refresh.log_ratio / 2


def test_two_builds_are_timed_in_turn() -> None:
    """The same build as both sides: an A/A."""
    both = dict.fromkeys(("baseline", "optimized"), EXTENSION)
    found = [dict(restarts.builds(both, [SMALL], 0.03, seed)) for seed in range(9)]
    assert [set(of) for of in found] == [{SMALL}] * 9
    reading = median([of[SMALL] for of in found])
    assert_consistent(reading)
    assert abs(reading.log_ratio) < BUSY


def test_another_thread_keeps_a_share_of_its_speed_beside_either_twin() -> None:
    cell = Cell("P11", "sample_256_numpy", (("obs_dim", 3),))
    readings = [restarts.shares(EXTENSION, cell, 0.05, seed) for seed in range(7)]
    middle = median(readings)
    for time in (middle.baseline_s, middle.optimized_s):
        # Over 1 where neighbours slowed what it is a share of.
        assert 0.02 < 1 / time < 4, "a share"
    for reading in readings:
        ratio = reading.baseline_s / reading.optimized_s
        assert reading.log_ratio == pytest.approx(math.log(ratio))


class Holds:
    """Keeps the interpreter's lock while it sorts."""

    def __init__(self) -> None:
        draw = random.Random(0).random
        self.numbers = [draw() for _ in range(400_000)]

    def time(self, calls: int) -> None:
        sorted(self.numbers)


class LetsGo:
    """Does not need the lock."""

    def time(self, calls: int) -> None:
        sleep(0.02)


def test_a_share_is_all_beside_what_needs_no_lock_and_little_beside_what_keeps_it() -> None:
    all_of_it, little = (
        # Of many short ones: a neighbour on the machine that comes for half of one, halves it.
        statistics.median(twins_worker.share(arm, 0.05) for _ in range(times))
        for arm, times in ((LetsGo(), 15), (Holds(), 9))
    )
    assert 0.6 < all_of_it < 1.6
    assert 0 < little < 0.4 * all_of_it


def test_what_a_worker_refuses_is_an_error_that_names_it() -> None:
    with (
        restarts.worker(EXTENSION, random.Random(0)) as ask,
        pytest.raises(ContestError, match='workload: is "gea"'),
    ):
        ask("contest", "P7", "gea", {"n_steps": 64}, 0.01, 1)


def test_a_worker_that_dies_is_an_error_and_not_a_hang() -> None:
    with restarts.worker(EXTENSION, random.Random(0)) as ask:
        assert ask("build")["features"] is not None
        ask._process.kill()
        with pytest.raises(ContestError):
            ask("build")
