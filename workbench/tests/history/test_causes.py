"""Which benchmarks moved between two recordings, so that it is asked why."""

import math

import pytest
import toy_projects

from rlox_opt.history import causes
from rlox_opt.history.store import Cell
from rlox_opt.project import calibration

TWIN = "pairs.Pairs.time_ten_calls('P1 gae n=8', 'optimized')"


def cell(name: str, ratio: float, half: float = 0.01, kind: str = "time") -> Cell:
    ends = ratio * math.exp(-half), ratio * math.exp(half)
    return Cell(name, kind, 1e-6, ratio, ends, 5)


def test_what_moved_beyond_its_intervals_is_asked_about_the_largest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"benchmarks": {"noisy": {"detectable": 1.2}}}
    monkeypatch.setattr(calibration, "newest", lambda records: found)
    before = [cell(name, 1.0) for name in ("slower", "faster", "little", "noisy", TWIN)]
    before += [cell("wide", 1.0, half=0.2), cell("counted", 1.0, kind="instructions")]
    now = [
        cell("slower", 1.1),
        cell("faster", 0.8),
        cell("little", 1.025, half=0.001),
        cell("noisy", 1.15),
        cell("wide", 1.15),
        cell("counted", 2.0, kind="instructions"),
        cell(TWIN, 2.0),
        cell("new", 2.0),
        Cell("slower", "criterion", 1.0),
    ]
    moved = causes.moved(toy_projects.PROJECT, now, before)
    assert moved == [("faster", pytest.approx(0.8)), ("slower", pytest.approx(1.1))]
