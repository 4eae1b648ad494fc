"""`rlox-opt peers backends`: what criterion wrote is read, and wrong numbers are left out."""

import argparse
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import projects
import pytest
from rlox_opt.race.primitives import cases
from rlox_opt.system.commands import Done
from rlox_opt.system.usage import UsageError
from rlox_opt.views import html, markdown

from peers import backends_page as report
from peers import kinds
from peers.primitives import checks, networks


def criterion(folder: Path, step: str, backend: str, ns: float) -> None:
    """A benchmark's files as criterion leaves them."""
    new = folder / step / backend / "new"
    new.mkdir(parents=True)
    ends = {"lower_bound": ns * 0.9, "upper_bound": ns * 1.1}
    estimates = {"median": {"point_estimate": ns, "confidence_interval": ends}}
    (new / "estimates.json").write_text(json.dumps(estimates))
    of = {"group_id": step, "function_id": backend}
    (new / "benchmark.json").write_text(json.dumps(of))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A benchmark that has run: ours is right in all, Candle is wrong in one step. It ends as the
    parameter says."""

    def run(command: Any, cwd: Path, env: dict[str, str], limit_s: float) -> Done:
        assert "nn-backends,accepted" in command
        for step, reference in networks.STEPS.items():
            expected = reference(checks.inputs())
            numbers = np.concatenate([np.ravel(one) for one in expected.values()])
            for backend in ("native", "candle"):
                criterion(Path(env["CRITERION_HOME"]), step, backend, 98_000.0)
                found = numbers.astype("<f4")
                if (backend, step) == ("candle", "ppo_step"):
                    found[7] += 0.01
                found.tofile(Path(env["RLOX_NN_ANSWERS"]) / f"{step}_{backend}.f32")
        done: Done = getattr(request, "param", Done(0, "", 1.0))
        return done

    monkeypatch.setattr(kinds, "run_command", run)
    monkeypatch.setattr(kinds, "cargo", lambda: "cargo")


def test_medians_are_read_and_a_wrong_backend_is_left_out(ran: None) -> None:
    times, wrong = kinds.by_criterion(projects.HERE, threads=1)
    assert set(times) == set(networks.STEPS)
    assert times["dqn_step"]["candle"]["s"] == pytest.approx(98e-6)
    assert times["dqn_step"]["candle"]["ci95"] == pytest.approx([88.2e-6, 107.8e-6])
    assert set(times["ppo_step"]) == {"native"}
    ((reason, steps),) = wrong["candle"].items()
    assert reason.startswith("is wrong: params is off by 0.01")
    assert steps == ["ppo_step"]


@pytest.mark.parametrize("ran", [Done(101, "error: bench failed", 1.0)], indirect=True)
def test_a_benchmark_that_stops_midway_loses_nothing(ran: None) -> None:
    times, wrong = kinds.by_criterion(projects.HERE, threads=1)
    assert set(times) == set(networks.STEPS)
    assert wrong["criterion"] == {"stops midway: error: bench failed": []}


@pytest.mark.parametrize("ran", [Done(-9, "timing", 1800.0, late=True)], indirect=True)
def test_a_benchmark_that_is_ended_at_its_limit_is_told(ran: None) -> None:
    _, wrong = kinds.by_criterion(projects.HERE, threads=1)
    assert wrong["criterion"] == {"did not end within 1800 s: timing": []}


def test_a_benchmark_that_does_not_build_says_so_before_anything_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinds, "cargo", lambda: "cargo")
    failed = Done(101, "error: could not compile burn", 1.0)
    monkeypatch.setattr(kinds, "run_command", lambda *_, **__: failed)
    monkeypatch.setattr(kinds, "conclude", lambda *_: pytest.fail("times"))
    asked = argparse.Namespace(project=projects.HERE, threads=1, no_criterion=False)
    with pytest.raises(UsageError, match=r"--no-criterion (.|\n)*could not compile burn"):
        kinds.run(asked)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_benchmark_builds_and_all_its_backends_compute_what_plain_numpy_does(
    tmp_path: Path,
) -> None:
    """Nothing else compiles it. By `--test` criterion runs each backend once, and times nothing."""
    command = ["cargo", *kinds._BENCH, *kinds._FEATURES, "--", "--test"]
    of_run = {"RLOX_NN_ANSWERS": str(tmp_path), "RAYON_NUM_THREADS": "1"}
    subprocess.run(command, cwd=projects.HERE.root, env={**os.environ, **of_run}, check=True)
    arms = {f"{step}_{of}" for step in networks.STEPS for of in ("native", "burn", "candle")}
    assert {path.stem for path in tmp_path.iterdir()} == {*arms, "layer_faer"}
    assert kinds._wrong(tmp_path, cases.checks(cases.folder(projects.HERE))) == {}


def test_the_table_has_a_column_for_every_backend() -> None:
    found = {
        "threads": 1,
        "ours": ["rlox"],
        "engines": [{"name": "torch", "what": "PyTorch, eager", "version": "torch 2.15"}],
        "families": [{"name": "dqn_step", "what": "DQN's TD step"}],
        "cases": [
            {
                "family": "dqn_step",
                "rows": [{"engine": "torch", "s": 7.38e-4, "ci95": [7.3e-4, 7.5e-4]}],
            }
        ],
        "criterion": {"dqn_step": {"burn": {"s": 1.91e-4, "ci95": [1.9e-4, 1.92e-4]}}},
        "left_out": {"candle": {"is wrong: params is off by 1": ["dqn_step"]}},
        "date": "2026-01-01T00:00:00Z",
        "commit": "0" * 40,
        "dirty": False,
        "machine": {"cpu": "one", "cores": 2},
        "build": {"profile": "release", "features": []},
    }
    table = report.summary(found)
    assert table.columns == ("step", "ours, Rust", "Burn", "Candle", "faer", "torch, Python")
    assert table.rows == [
        ("dqn_step", "–", "191 µs (190 µs – 192 µs)", "–", "–", "738 µs (730 µs – 750 µs)")
    ]
    for text in (markdown.text(report.document(found)), html.page(report.document(found))):
        assert "candle is wrong: params is off by 1 (dqn" in text.replace("\\", "")
