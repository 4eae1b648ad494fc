"""`rlox-opt profile diff`: folders and builds against each other, its verdict and exit codes."""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from command_line import rlox_opt

from rlox_opt.history import sides

MACHINE = {"cpu": "Example CPU @ 2.80GHz", "cores": 2}
LAYERS = {"rust": 20.0, "python": 80.0}  # µs of a step


def folder(path: Path, layers: Mapping[str, float], kept: bool = True, **more: Any) -> Path:
    """What `rlox-opt profile` leaves of a run whose layers took so long."""
    step = sum(layers.values())
    shares = {name: value / step for name, value in layers.items()}
    table = {
        "algo": "ppo", "env_id": "CartPole-v1", "machine": MACHINE, "sps": 1e6 / step,
        "train_s": 1.0, "layer_source": "perf", "tools": {"perf": {"samples": 5000}},
        "phases": [{"name": "env_step", "self_seconds": shares["rust"]}],
        "layers": [{"name": name, "share": share} for name, share in shares.items()],
    }  # fmt: skip
    path.mkdir(parents=True)
    (path / "report.json").write_text(json.dumps(table | more))
    if kept:
        profile = sides.Profile(5000, shares, {"env_step": 1.0}, {}, "step 1\n")
        (path / sides.PROFILE).write_text(json.dumps(asdict(profile)))
    return path


def runs(path: Path, rust: float, n: int = 4) -> Path:
    draw = random.Random(str(path.name))
    for number in range(n):
        layers = {"rust": rust, "python": 80.0}
        folder(path / str(number), {k: v * draw.gauss(1, 0.002) for k, v in layers.items()})
    return path


def test_repeated_runs_of_a_slower_build_are_a_regression(tmp_path: Path) -> None:
    a, b = runs(tmp_path / "a", 20), runs(tmp_path / "b", 40)
    done = rlox_opt("profile", "diff", a, b, "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    rust = next(c for c in told["changes"] if c["name"] == "rust")
    assert rust["change"] == pytest.approx(0.2, abs=0.01)
    assert (told["runs"], told["exit_code"], told["complete"]) == ([4, 4], 1, True)
    assert "takes more: a step of training" in done.stderr


def test_the_same_is_no_regression_and_faster_is_none_either(tmp_path: Path) -> None:
    a, b, c = (runs(tmp_path / name, rust) for name, rust in (("a", 20), ("b", 20), ("c", 10)))
    assert rlox_opt("profile", "diff", a, b).returncode == 0
    assert rlox_opt("profile", "diff", a, c).returncode == 0


def test_the_help_says_what_the_threshold_decides() -> None:
    told = " ".join(rlox_opt("profile", "diff", "--help").stdout.split())
    assert "a change whose whole interval is within this counts as the same" in told


def test_one_run_a_side_cannot_tell_and_says_what_would(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", LAYERS), folder(tmp_path / "b", LAYERS | {"rust": 40.0})
    done = rlox_opt("profile", "diff", a, b)
    assert done.returncode == 2
    assert "profile each side at least twice" in done.stderr
    assert "One profile a side" in done.stdout


def test_of_two_machines_only_shares_are_compared(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", LAYERS)
    b = folder(
        tmp_path / "b", {k: 3 * v for k, v in LAYERS.items()}, machine=MACHINE | {"cores": 8}
    )
    told = json.loads(rlox_opt("profile", "diff", a, b, "--json").stdout)
    assert told["shares_of"] == "training"
    assert all(abs(c["change"]) < 1e-9 for c in told["changes"])
    assert any("different machines" in note for note in told["notes"])


def test_what_the_sides_were_run_with_is_told_where_it_differs(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", LAYERS, settings={"n_envs": 8, "threads": 1})
    b = folder(tmp_path / "b", LAYERS, settings={"n_envs": 16, "threads": 1})
    told = json.loads(rlox_opt("profile", "diff", a, b, "--json").stdout)
    assert told["notes"] == ["They differ in n_envs: 8 → 16."]


def test_a_folder_of_an_earlier_version_has_layers_and_phases(tmp_path: Path) -> None:
    a, b = (folder(tmp_path / name, LAYERS, kept=False) for name in "ab")
    done = rlox_opt("profile", "diff", a, b, "--markdown")
    assert "| Rust | 20.0 % | 20.0 % |" in done.stdout
    assert "earlier version" in done.stdout


def of_processes(path: Path, **more: Any) -> Path:
    """What `rlox-opt profile script.py` leaves."""
    table = {
        "kind": "processes", "command": ["python", "train.py"], "machine": MACHINE, "wall_s": 2.0,
        "status": 0, "interrupted": False, "incomplete": [],
        "components": [{"title": "main", "threads": [{"samples": 1000, "phases": []}]}],
        "layers": [{"name": "python", "seconds": 1.0, "share": 1.0}],
    }  # fmt: skip
    path.mkdir()
    (path / "report.json").write_text(json.dumps(table | more))
    return path


@pytest.mark.parametrize("more", [{"status": 1}, {"status": None}, {"interrupted": True}])
def test_a_program_that_did_not_finish_is_not_compared(more: Any, tmp_path: Path) -> None:
    a, b = of_processes(tmp_path / "a"), of_processes(tmp_path / "b", **more)
    done = rlox_opt("profile", "diff", a, b)
    assert done.returncode == 2
    assert "b/report.json: its program did not finish, or failed" in done.stderr


def test_what_is_missing_of_a_side_is_told(tmp_path: Path) -> None:
    a = of_processes(tmp_path / "a")
    b = of_processes(tmp_path / "b", incomplete=["Nothing was sampled."])
    told = json.loads(rlox_opt("profile", "diff", a, b, "--json").stdout)
    assert told["notes"] == [f"{b}: Nothing was sampled."]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "name two folders or revisions"),
        (["one"], "needs a B"),
        (["run", "main"], "'main': holds no report.json"),
        (["run", "run", "--runs", "0"], "expected a whole number from 1 to 100"),
        (["run", "run", "--page", "not/there/x.html"], "--page not/there/x.html: no such folder"),
        (["run", "run", "--page", "run"], "--page run: is a folder; name a file"),
    ],
)
def test_wrong_arguments_are_told_in_a_line(
    given: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "run", LAYERS)
    done = rlox_opt("profile", "diff", *given)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_where_nothing_trains_revisions_are_refused_and_nothing_given_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rlox_opt("profile", "diff")
    assert done.returncode == 2
    assert "A and B: name two folders or revisions" in done.stderr
    done = rlox_opt("profile", "diff", "HEAD~1", "HEAD")
    assert done.returncode == 2
    assert "profile diff: this project names no training runs; compare two" in done.stderr
    assert done.stderr.count("profile diff:") == 1
