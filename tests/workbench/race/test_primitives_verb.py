"""`rlox-opt peers primitives`: that a failing engine stays its own affair, that an interrupted run
goes on, and what can be asked."""

import dataclasses
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import projects
import pytest
from rlox_opt.cli import main as cli
from rlox_opt.project.project import Project
from rlox_opt.race.environments import home, python_of
from rlox_opt.race.primitives import cases, contest
from rlox_opt.race.primitives.cases import Case
from rlox_opt.race.primitives.engines import Process, Processes
from rlox_opt.system.exits import INTERRUPTED

COMMAND = ["peers", "primitives", "--runs", "2", "--json"]


HOME = home(projects.HERE)


def test_engines_are_held_to_the_reference_and_to_each_other(
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*COMMAND, "--case", "n=8"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    (case,) = found["cases"]
    ours, slow = case["rows"]
    assert (ours["engine"], slow["engine"]) == ("rlox", "slow")
    assert ours["restarts"] == slow["restarts"] == 2
    assert slow["against"]["rlox"]["verdict"] == "undecided", "two restarts tell too little"
    assert slow["against"]["rlox"]["ratio"] < 0.1
    assert slow["s"] > 0.002
    assert ours["p99_s"] >= ours["s"]
    assert "wrong is wrong: advantages is off by 1e-05" in said.err
    assert "crashes fails: the process ended (exit status 3)" in said.err
    assert "broken does not start" in said.err
    assert "no such library" in said.err
    assert "lacks" not in said.err, "an engine need not have every operation"
    (record,) = made_up.glob("record/*/*_primitives.json")
    assert json.loads(record.read_text())["cases"] == found["cases"]
    assert {path.suffix for path in record.parent.iterdir()} == {".json", ".md", ".html"}


def test_an_engine_that_did_not_start_once_is_tried_again(
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = made_up / "primitives" / "primitives.toml"
    toml.write_text(toml.read_text().replace('form = "slow"', 'form = "second"'))
    assert cli.main([*COMMAND, "--only", "slow", "--case", "n=8"]) == 0
    said = capsys.readouterr()
    for case in json.loads(said.out)["cases"]:
        assert {row["engine"]: row["restarts"] for row in case["rows"]} == {"rlox": 2, "slow": 1}
    assert "slow does not start: " in said.err
    assert "ImportError: no room yet, in 1 of 2 restarts\n" in said.err


def test_a_first_call_that_compiles_is_not_what_is_timed(made_up: Path) -> None:
    engine = dataclasses.replace(cases.load(Project.here())[1][0], form="compiles")
    process = Process(engine, python_of(engine.peer, HOME), 1, Random(0))
    process("prepare", "gae", {"n": 8})
    calls, took = process("fit", 0.0005)
    process.close()
    assert calls > 1
    assert took < 0.001


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The cases that were timed, in order; Ctrl-C comes once there are three."""
    hold, keys = contest.hold, list[str]()

    def interrupted(processes: Any, case: Case, *rest: Any) -> dict[str, Any]:
        if len(keys) == 3:
            raise KeyboardInterrupt
        keys.append(case.key)
        return hold(processes, case, *rest)

    monkeypatch.setattr(contest, "hold", interrupted)
    return keys


def test_an_interrupted_run_keeps_its_readings_and_goes_on_with_the_others(
    made_up: Path, held: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*COMMAND, "--only", "slow"]
    assert cli.main(command) == INTERRUPTED
    assert "3 readings are kept" in capsys.readouterr().err
    held.clear()
    assert cli.main(command) == 0
    assert len(held) == 1
    found = json.loads(capsys.readouterr().out)
    assert sorted((row["restart"], row["case"]) for row in found["readings"]) == [
        (restart, case) for restart in (0, 1) for case in ("gae/n=32", "gae/n=8")
    ]
    assert not list(made_up.glob("cache/peers/*.jsonl")), "what is recorded is not kept twice"


def test_a_record_of_some_cases_leaves_the_readings_of_the_others(
    made_up: Path, held: list[str]
) -> None:
    command = [*COMMAND, "--only", "slow"]
    assert cli.main(command) == INTERRUPTED
    others = [key for key in held if key != "gae/n=8"]
    held.clear()
    assert cli.main([*command, "--case", "n=8"]) == 0
    (kept,) = made_up.glob("cache/peers/*.jsonl")
    assert [json.loads(line)["case"] for line in kept.read_text().splitlines()] == others


def test_a_run_without_a_record_leaves_nothing_to_the_next(made_up: Path) -> None:
    assert cli.main([*COMMAND, "--only", "slow", "--no-record", "--runs", "1"]) == 0
    assert not list(made_up.glob("cache/peers/*.jsonl"))
    assert not (made_up / "record").exists()


def test_a_run_that_timed_nothing_leaves_nothing_to_the_next(made_up: Path) -> None:
    toml = made_up / "primitives" / "primitives.toml"
    toml.write_text(toml.read_text().replace('form = "right"', 'form = "crashes"'))
    assert cli.main([*COMMAND, "--only", "rlox", "--runs", "1"]) == 2
    assert not list(made_up.glob("cache/peers/*.jsonl"))


def test_cases_and_engines_are_listed_without_running_any(
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["peers", "primitives", "--list"]) == 0
    said = capsys.readouterr().out
    assert "gae/n=8" in said
    assert "slow, made up" in said
    assert not (made_up / "cache" / "peers").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--case", "gea"], "--case: 'gea' is in no case of gae"),
        (["--case", "("], "--case: is '(', no regular expression"),
        (["--only", "numpi"], "--only: is 'numpi', expected some of rlox, slow"),
        (["--runs", "0"], "--runs: is '0', expected a whole number from 1 on"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    made_up: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["peers", "primitives", *arguments])
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_all_engines_share_the_same_cores(made_up: Path) -> None:
    engines = [one for one in cases.load(Project.here())[1] if one.name in ("rlox", "slow")]
    pythons = {one.name: python_of(one.peer, HOME) for one in engines}
    with Processes(engines, pythons, 1, Random(0)) as processes:
        held = [os.sched_getaffinity(process._started().pid) for _, process in processes]
    assert len(held) == 2
    assert held[0] == held[1]
    assert len(held[0]) == 1
