"""What a machine can tell apart, computed from made-up restarts whose truth is known."""

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.project import calibration
from rlox_opt.system.files import NotReadError
from rlox_opt.system.machine import machine, slug


def restarts(sd: float, bias: float = 0.0, n: int = 40, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(bias, sd) for _ in range(n)]


def test_the_smallest_change_found_grows_with_the_spread() -> None:
    rng = random.Random(0)
    found = [calibration.detectable(restarts(sd), rng) for sd in (0.005, 0.02, 0.08)]
    assert found == sorted(found)
    # Student's: (3.23 + 1.69) * 0.02 / sqrt(40), once the mean of these very restarts is off.
    assert found[1] == pytest.approx(1.016, abs=0.01)


def test_a_change_of_that_size_is_found_and_half_of_it_is_not_always() -> None:
    of = restarts(0.05)
    of = [ratio - statistics.fmean(of) for ratio in of]
    smallest = calibration.detectable(of, random.Random(0)) - 1
    rng = random.Random(1)

    def power(shift: float) -> float:
        drawn = [rng.choices(of, k=40) for _ in range(200)]
        return sum(calibration._found([ratio + shift for ratio in run]) for run in drawn) / 200

    assert power(smallest) >= 0.9
    assert power(smallest / 2) < 0.9


@pytest.mark.parametrize("bias", [0.02, -0.02])
def test_no_change_smaller_than_a_bias_is_said_to_be_found(bias: float) -> None:
    found = calibration.detectable(restarts(0.003, bias), random.Random(0))
    assert math.exp(0.02) < found < math.exp(0.03)


def test_a_steady_machine_raises_no_alarm_and_a_biased_one_does() -> None:
    steady = calibration.rates({f"b{i}": restarts(0.003, seed=i) for i in range(5)})
    assert steady["run_alarms"] < 0.02
    biased = calibration.rates({"b": restarts(0.003, bias=0.05)})
    assert biased["run_alarms"] == 1
    assert biased["benchmarks"]["b"]["alarms"] == 1


def test_alarms_are_told_at_each_threshold() -> None:
    """A bias of two per cent is a false alarm at a threshold of one, and none at three."""
    found = calibration.rates({"b": restarts(0.003, bias=math.log(1.02))})["thresholds"]
    assert found["1"] == {"run_alarms": 1.0, "cell_alarms": 1.0}
    assert found["3"] == {"run_alarms": 0.0, "cell_alarms": 0.0}


def _of(sd: float) -> dict[str, float]:
    return {"sd": sd, "detectable": 1.01}


def _kept(folder: Path, found: Any) -> Path:
    """A calibration of this machine."""
    path = folder / slug(machine()) / "2026-01-02T000000Z_calibration.json"
    path.parent.mkdir()
    path.write_text(json.dumps(found))
    return path


def test_a_plan_says_how_long_and_what_will_stay_open(tmp_path: Path) -> None:
    found = {
        "date": "2026-01-02T00:00:00Z",
        "seconds_per_restart": 0.5,
        "benchmarks": {"steady": _of(0.003), "noisy": _of(0.05)},
    }
    path = _kept(tmp_path, found)
    (said,) = calibration.plan(tmp_path, dict.fromkeys(["steady", "noisy", "new"], 0.01), 600.0)
    assert "2026-01-02 about 22 s" in said  # 5 and 40 restarts
    assert "1 of 2 are too noisy" in said
    assert not [*calibration.plan(tmp_path, {"new": 0.01}, 600.0)]
    path.unlink()
    assert not [*calibration.plan(tmp_path, {"steady": 0.01}, 600.0)]


def test_a_plan_says_what_the_budget_cannot_reach(tmp_path: Path) -> None:
    """Five restarts of 0.5 s: 10 s are enough for four benchmarks."""
    found = {
        "date": "2026-01-02T00:00:00Z",
        "seconds_per_restart": 0.5,
        "benchmarks": {str(n): _of(0.003) for n in range(9)},
    }
    _kept(tmp_path, found)
    said, _ = calibration.plan(tmp_path, dict.fromkeys(map(str, range(9)), 0.01), 10.0)
    assert "of about 4 of 9 benchmarks; --bench chooses" in said
    (alone,) = calibration.plan(tmp_path, dict.fromkeys(map(str, range(9)), 0.01), 60.0)
    assert "by the calibration" in alone


@pytest.mark.parametrize("broken", [{}, {"seconds_per_restart": []}])
def test_a_plan_refuses_a_broken_calibration_by_name(
    broken: dict[str, object], tmp_path: Path
) -> None:
    path = _kept(tmp_path, broken)
    with pytest.raises(NotReadError, match=path.name):
        [*calibration.plan(tmp_path, {"steady": 0.01}, 600.0)]


def test_the_newest_calibration_of_this_machine_is_taken(tmp_path: Path) -> None:
    assert calibration.newest(tmp_path) is None
    folder = tmp_path / slug(machine())
    folder.mkdir()
    for day in (1, 2):
        table = {"date": f"{day}", "seconds_per_restart": 1, "benchmarks": {}}
        path = folder / f"2026-01-0{day}T000000Z_calibration.json"
        path.write_text(json.dumps(table))
    found = calibration.newest(tmp_path)
    assert found is not None
    assert found["date"] == "2"


def test_the_smallest_change_is_known_of_every_calibrated_machine(
    tmp_path: Path,
) -> None:
    for name, date, ratio in (
        ("a", "2026-01-01", 1.1),
        ("a", "2026-01-02", 1.02),
        ("b", "2026-01-01", 1.05),
    ):
        (tmp_path / name).mkdir(exist_ok=True)
        found = {
            "date": date,
            "seconds_per_restart": 1,
            "benchmarks": {"gae": {"sd": 0.01, "detectable": ratio}},
        }
        (tmp_path / name / f"{date}T000000Z_calibration.json").write_text(json.dumps(found))
    assert calibration.smallest(tmp_path) == {
        "a": {"gae": pytest.approx(math.log(1.02))},
        "b": {"gae": pytest.approx(math.log(1.05))},
    }
