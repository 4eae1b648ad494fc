"""Where a cost changes its slope is found, and what is said of it is what was measured."""

from pathlib import Path

import numpy as np
import pytest

from rlox_opt.stats import slopes
from rlox_opt.stats.slopes import Knee, explain, knees

SIZES = [round(10 ** (1 + i / 4)) for i in range(17)]
CACHES = {"L1d": 48 * 1024, "L2": 2048 * 1024}


def noisy(seconds: "np.ndarray") -> list[float]:
    rng = np.random.default_rng(0)
    return list(seconds * np.exp(0.01 * rng.standard_normal(len(seconds))))


def test_a_power_law_has_no_knee() -> None:
    sizes = np.array(SIZES, float)
    for slope in (0.0, 0.5, 1.0, 2.0):
        assert knees(SIZES, noisy(1e-7 * sizes**slope)) == []


@pytest.mark.parametrize("place", [4, 8, 12])
def test_a_change_of_slope_is_found_where_it_is(place: int) -> None:
    x = np.log(np.array(SIZES, float))
    seconds = np.exp(-16 + 0.2 * (x - x[0]) + 0.8 * np.maximum(x - x[place], 0))
    (knee,) = knees(SIZES, noisy(seconds))
    assert abs(SIZES.index(int(knee.at)) - place) <= 1
    assert knee.before == pytest.approx(0.2, abs=0.05)
    assert knee.after == pytest.approx(1.0, abs=0.05)


def test_two_changes_are_found_in_order() -> None:
    x = np.log(np.array(SIZES, float))
    turns = np.maximum(x - x[4], 0) - 0.6 * np.maximum(x - x[11], 0)
    found = knees(SIZES, noisy(np.exp(-16 + turns)))
    assert [knee.at for knee in found] == sorted(knee.at for knee in found)
    assert len(found) == 2
    assert [round(knee.after, 1) for knee in found] == pytest.approx([1.0, 0.4], abs=0.1)


ALONE = (1.0, 1.0)


def test_a_knee_is_laid_to_the_cache_that_it_outgrows() -> None:
    rising = Knee(1000, 0.9, 1.3)
    assert explain(rising, 60_000, CACHES, ALONE) == "outgrows L1d (48 KiB)"
    assert explain(rising, 1_500_000, CACHES, ALONE) == "outgrows L2 (2,048 KiB)"
    assert "without a cache" in explain(rising, 300_000, CACHES, ALONE)


def test_threads_are_named_where_they_are_seen_to_work() -> None:
    assert explain(Knee(1000, 1.0, 0.6), 1e5, CACHES, (1.0, 1.9)) == "a second thread joins"
    assert "thread" not in explain(Knee(1000, 1.0, 0.6), 1e5, CACHES, ALONE)


def test_a_fixed_cost_that_ends_is_called_that() -> None:
    assert explain(Knee(100, 0.1, 0.9), 800, CACHES, ALONE) == "work outweighs the call"


def test_caches_are_those_that_linux_tells(tmp_path: Path) -> None:
    rows = [("Data", 1, "48K"), ("Instruction", 1, "32K"), ("Unified", 2, "2048K")]
    for number, row in enumerate(rows):
        index = tmp_path / f"index{number}"
        index.mkdir()
        for name, value in zip(("type", "level", "size"), row, strict=True):
            (index / name).write_text(f"{value}\n")
    assert slopes.caches(tmp_path) == CACHES
    assert slopes.caches(tmp_path / "none") == {}
