"""Sides that differ by a switch of this repository's training loop."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import rlox_opt
from rlox_opt.sampling import brief
from rlox_opt.sampling.brief import Speed
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Training that takes twice as long without R4, as far as `brief` says."""
    asked: list[Any] = []

    def profile(spec: Any, package: Any, sampler: str, *_: Any) -> tuple[Speed, Samples]:
        asked.append(spec.trainer.get("optimizations", []))
        with_r4 = "R4" in asked[-1]
        seconds = {"": 1.0, "gradient_update": 1.0 if with_r4 else 3.0}
        frames = (Frame("train", "rlox/learner/ppo.py", 1),)
        found = [
            Sample(frames, phase, "python", 0.01, MAIN_THREAD)
            for phase in seconds
            for _ in range(50)
        ]
        return Speed(1e4 / sum(seconds.values()), seconds), Samples("perf", found)

    monkeypatch.setattr(brief, "tool", lambda: "perf")
    monkeypatch.setattr(brief, "profile", profile)
    return asked


def test_switches_are_of_b_alone_and_the_sides_take_turns(
    trained: list[Any], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = rlox_opt("profile", "diff", "--enable", "r4", "--runs", "3", "--json", "--page", page)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["before"], told["after"]) == ("installed", "installed +r4")
    assert sorted("R4" in asked for asked in trained) == 3 * [False] + 3 * [True]
    assert told["rounds"] is True
    update = next(c for c in told["changes"] if c["name"] == "gradient_update")
    assert (update["before"], update["after"]) == (pytest.approx(0.75), pytest.approx(0.25))
    assert update["verdict"] == "less"
    assert "Differential flamegraph" in page.read_text()


def test_an_interrupted_first_round_is_no_failure(
    trained: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(brief, "profile", interrupted)
    assert rlox_opt("profile", "diff", "--enable", "r4").returncode == 130


def test_a_page_that_cannot_be_written_is_told_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    done = rlox_opt("profile", "diff", "--enable", "r4", "--page", tmp_path)
    assert done.returncode == 2
    assert f"--page {tmp_path}: is a folder; name a file" in done.stderr
    assert done.stderr.count("\n") == 1
