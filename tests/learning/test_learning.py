"""The trainers learn, and not worse than Stable-Baselines3 with the same hyperparameters.

Slow: PPO takes about two minutes, SAC about half an hour. `RLOX_LEARNING_OUT` names a folder that
gets the tables.
"""

import os
from pathlib import Path

import pytest
import side_by_side

pytest.importorskip("stable_baselines3")


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_learns_not_worse_than_stable_baselines3(algo: str, tmp_path: Path) -> None:
    result = side_by_side.compare(algo)
    print(side_by_side.table(result))
    side_by_side.write(result, Path(os.environ.get("RLOX_LEARNING_OUT", tmp_path)))
    assert result["difference"][1] >= 0, "worse than Stable-Baselines3"
    for engine, (low, _) in result["intervals"].items():
        assert low > result["random"], f"{engine} has not learnt"


@pytest.mark.parametrize(("df", "expected"), [(4, 2.776), (8, 2.306), (30, 2.042)])
def test_t_quantiles_are_those_of_the_tables(df: float, expected: float) -> None:
    assert side_by_side.t_quantile(df) == pytest.approx(expected, abs=2e-3)


def test_welch_interval_of_a_known_example() -> None:
    low, high = side_by_side.welch_interval([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 6.0])
    assert (low, high) == pytest.approx((-1 - 2.306, -1 + 2.306), abs=5e-3)
