"""`rlox-opt calibrate`: measures a build against itself and keeps what it found."""

import json
from functools import partial
from pathlib import Path

import pytest
import toy_packages
import toy_projects

from rlox_opt.cli import calibrate
from rlox_opt.cli.main import main
from rlox_opt.harness import packages, sequential
from rlox_opt.project import calibration
from rlox_opt.project.builds import Artefact, Builds
from rlox_opt.project.commits import Commits, Revision


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HEAD is a toy package; returns where records go."""
    folder = toy_packages.package(tmp_path)
    built = Artefact(Revision("HEAD", "0" * 40), folder, (), {}, 0.0, packages=("toy",))
    monkeypatch.setattr(Commits, "resolve", lambda self, text: built.revision)
    monkeypatch.setattr(Commits, "dirty", lambda self, *left_out: True)
    monkeypatch.setattr(calibrate, "measured_by", toy_projects.by_its_own)
    monkeypatch.setattr(Builds, "build", lambda self, revision, like=None: built)
    toy_packages.benchmarks(tmp_path)
    table = 'package = "toy"\nsuite = "benchmarks"\nstate = "."'
    monkeypatch.chdir(toy_projects.write(tmp_path, table))
    monkeypatch.setattr(packages, "_CONTEST_S", 0.01)
    monkeypatch.setattr(calibrate, "Comparison", partial(sequential.Comparison, looks=(5,)))
    monkeypatch.setattr(calibration, "_DRAWS", 20)
    return tmp_path / "record"


def test_a_calibration_is_kept_and_found_again(
    toys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--bench", "steady|Sized", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (path,) = toys.glob("*/*_calibration.json")
    assert json.loads(path.read_text()) == told == calibration.newest(toys)
    assert told["dirty"] is True
    assert told["benchmarks"].keys() == {
        "toys.time_steady",
        "toys.Sized.time_sized(1)",
        "toys.Sized.time_sized(2)",
    }
    for name, of in told["benchmarks"].items():
        assert len(told["log_ratios"][name]) >= 5
        assert of["sd"] > 0
        assert of["detectable"] > 1


def test_for_people_it_says_what_can_be_told_apart(
    toys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--bench", "steady"]) == 0
    said = capsys.readouterr().out
    assert "found 95 times in 100" in said
    assert "toys.time_steady" in said


def test_a_pattern_that_matches_nothing_is_refused(toys: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["calibrate", "--bench", "gea"])
    assert stopped.value.code == 2
    assert not toys.exists()


def test_a_budget_for_one_restart_is_told_to_be_too_small(
    toys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--bench", "steady", "--budget", "0.001"]) == 2
    assert "no benchmark had 5 restarts; more --budget, or a --bench" in capsys.readouterr().err
    assert not toys.exists()


def test_benchmarks_that_fail_are_told_and_no_budget_is_blamed(
    toys: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = toy_packages.package(toys.parent / "raising", "raises")
    monkeypatch.setattr(Builds, "build", lambda *_: Artefact(
        Revision("HEAD", "0" * 40), folder, (), {}, 0.0, packages=("toy",)
    ))  # fmt: skip
    assert main(["calibrate", "--bench", "time_raises"]) == 2
    said = capsys.readouterr().err
    assert "rlox-opt calibrate: toys.time_raises fails, and is left out: " in said
    assert "--budget" not in said
    assert not toys.exists()


def test_an_interruption_writes_nothing(toys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(packages.Packages, "contests", interrupted)
    assert main(["calibrate", "--bench", "steady"]) == 130
    assert not toys.exists()


def test_advice_names_what_can_be_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (3.0, 3.0, 3.0))
    told = {"/proc/sys/kernel/randomize_va_space": "0"}
    monkeypatch.setattr(calibration, "_read", lambda path: told.get(path))
    said = calibration.advice()
    assert any("load is 3.0" in line for line in said)
    assert any("ASLR off" in line for line in said)
    told["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "powersave"
    assert any("governor is powersave" in line for line in calibration.advice())
