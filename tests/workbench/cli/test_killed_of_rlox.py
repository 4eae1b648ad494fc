"""`kill -9` of a verb over this repository, or of a program with a Timing: nothing goes on."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import projects
import pytest
from survivors import MAKING, bearing, end, none_left, wait_for

ENDLESS = """
import multiprocessing, pathlib, subprocess, sys, threading, time
from rlox.timing import span

def work():
    while True:
        with span("turn"):
            time.sleep(0.01)

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        multiprocessing.get_context(method).Process(target=work).start()
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    pathlib.Path("ready").touch()
    work()
"""


PROJECT = projects.ROOT
MANIFEST = PROJECT / "crates" / "rlox-core" / "Cargo.toml"


@pytest.mark.parametrize("moment", ["begun", "recording", "all at work"])
def test_a_profile_of_a_script(
    start: Callable[..., subprocess.Popen[str]], mark: str, tmp_path: Path, moment: str
) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "short.py").touch()
    words = ("--sampler", "none", "--out")
    process = start("profile", "endless.py", *words, tmp_path / "out" / "a")
    at_work = {
        "begun": lambda: any(
            "endless.py" in command and "rlox_opt.cli" not in command for command in bearing(mark)
        ),
        "recording": lambda: list(tmp_path.glob("out/*/**/*.jsonl")),
        "all at work": lambda: len(bearing(mark)) >= 5 and (tmp_path / "ready").exists(),
    }
    wait_for(at_work[moment])
    end(process)
    assert none_left(mark)
    assert len(list((tmp_path / "out").glob(MAKING))) == 1
    if moment == "all at work":
        assert start("profile", "short.py", *words, tmp_path / "out" / "b").wait() == 0
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["b"]


def test_a_profile_of_training(
    start: Callable[..., subprocess.Popen[str]], mark: str, tmp_path: Path
) -> None:
    words = ("profile", "ppo", "--tools", "none", "--total-timesteps")
    process = start(*words, 10**8, "--out", tmp_path / "a", folder=PROJECT)
    wait_for(lambda: any("child_of.py" in command for command in bearing(mark)))
    end(process)
    assert none_left(mark)
    assert len(list((tmp_path / "temporary").glob(MAKING))) == 1


# What is counted is built already, and was timed.
COUNTS = """
import sys
from rlox_opt.plan import comparing, counts
from rlox_opt.cli.main import main
counts.cargo = comparing.measure = lambda *_: None
sys.exit(main(sys.argv[1:]))
"""


def test_a_comparison_that_counts_under_valgrind(
    start: Callable[..., subprocess.Popen[str]],
    mark: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = {
        "target/release/count": 'echo \'{"allocations": 1, "bytes": 1}\'',
        "bin/valgrind": "trap '' TERM INT\nsleep 600\ntrue",
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    projects.write(
        tmp_path,
        f'package = "rlox"\ncards = "{projects.HERE.cards}"\n'
        'build = { by = "cargo", manifest = "' + str(MANIFEST) + '", '
        'laboratory = { crate = "rlox-laboratory", library = "_laboratory" } }',
    )
    quick = ("--sizes", "n_envs=4", "--restarts", "5", "--no-record")
    process = start("cmp", "p13", *quick, program=("-c", COUNTS), folder=tmp_path)
    wait_for(lambda: any("sleep 600" in command for command in bearing(mark)))
    end(process)
    assert none_left(mark)
    assert list((tmp_path / "temporary").glob(MAKING))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.0, 4.0, 8.0, 12.0, 20.0, 30.0])
@pytest.mark.parametrize(
    "words",
    [
        ("ppo", "--seconds", "8"),
        ("ppo", "--nproc", "2", "--vector", "async", "--n-envs", "4", "--n-steps", "128"),
        ("ppo", "--nproc", "2", "--vector", "async", "--sampler", "py-spy"),
    ],
)
def test_a_profile_with_all_tools_at_any_moment(
    start: Callable[..., subprocess.Popen[str]],
    mark: str,
    tmp_path: Path,
    words: tuple[str, ...],
    seconds: float,
) -> None:
    process = start("profile", *words, "--total-timesteps", 10**6, "--out", tmp_path / "a")
    time.sleep(seconds)
    end(process)
    assert none_left(mark)
