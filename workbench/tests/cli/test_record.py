"""`rlox-opt record`: what it keeps of a commit, and that nothing is lost or done twice, whatever
happens to it."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy_entries
import toy_history
from survivors import wait_for
from toy_history import SPENT, Make, entries

from rlox_opt.cli import record
from rlox_opt.cli.main import main
from rlox_opt.history import recorded, recording, store
from rlox_opt.history.recording import Recording
from rlox_opt.history.store import Entry
from rlox_opt.system.machine import machine, slug

ALL_STAGES = recording.STAGES
ONE = ("--bench", "toys.time_steady")


def value(entry: Entry, benchmark: str, kind: str = "time") -> store.Cell:
    (found,) = [c for c in entry.cells if (c.benchmark, c.kind) == (benchmark, kind)]
    return found


def test_a_history_is_a_series_of_ratios_to_the_first_commit(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({"passes": 1}, {"passes": 1, "size": 90}, {"passes": 40})
    asked = (f"{made[0]}", f"{made[0]}..main", "--bench", "work|held", "--json")
    assert main(["record", *asked]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["recorded"]) == 3
    assert told["complete"]
    found = entries(tmp_path)
    assert [entry.commit for entry in found] == made
    assert {entry.control["commit"] for entry in found} == {made[0]}
    assert [entry.parent for entry in found] == [None, *made[:2]]
    assert found[2].subject == "number 2"
    assert found[2].features == ("shipped",)
    assert found[2].built["interpreter"].startswith("cpython 3.")
    assert not [value for value in found[2].built.values() if "/" in value], "no folder of ours"
    for entry in found:
        cell = value(entry, "toys.time_work")
        assert cell.ratio and cell.ratio_ci99 and cell.restarts
        assert cell.ratio_ci99[0] < cell.ratio < cell.ratio_ci99[1]
        assert cell.restarts >= 5
    # Forty times the work, so that no neighbour on the machine can hide it.
    first, _, last = (value(entry, "toys.time_work") for entry in found)
    assert last.ratio > 5 * first.ratio  # type: ignore[operator]
    assert last.value > 5 * first.value
    small, large = (value(e, "toys.peakmem_held", "peak_memory").value for e in found[:2])
    assert large - small > 60_000_000  # bytes


def test_what_fails_has_its_reason_and_loses_no_other_number(history: Make, tmp_path: Path) -> None:
    history({}, {"name": "raises"})
    assert main(["record", "main~1", "main", "--bench", "raises|steady", *SPENT]) == 0
    _, found = entries(tmp_path)
    assert value(found, "toys.time_steady").restarts
    reasons = {failure["benchmark"]: failure["reason"] for failure in found.failures}
    assert reasons["toys.time_raises"] == "RuntimeError: no such thing"


def test_a_benchmark_that_the_control_lacks_is_timed_without_a_ratio(
    history: Make, tmp_path: Path
) -> None:
    history({"name": "old"}, {})
    assert main(["record", "main~1", "main", "--bench", "new|steady", *SPENT]) == 0
    old, new = entries(tmp_path)
    assert {cell.benchmark for cell in old.cells} == {"toys.time_steady"}
    cell = value(new, "toys.time_new")
    assert cell.ratio is None
    assert cell.value > 0


def test_a_commit_that_does_not_build_is_noted_once_and_the_rest_go_on(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({"name": "broken"}, {}, {"name": "broken"}, {"passes": 11})
    asked = ["record", *made, *ONE, *SPENT]
    assert main(asked) == 0
    found = {entry.commit: entry for entry in entries(tmp_path)}
    assert found.keys() == {*made}
    assert [bool(found[commit].cells) for commit in made] == [False, True, False, True]
    assert "does not build" in found[made[2]].failures[0]["reason"]
    assert "2 recorded, 2 without numbers" in capsys.readouterr().out
    assert main(asked) == 0
    assert "2 there already, or being recorded by another process, 2 without" in _out(capsys)
    assert len(entries(tmp_path)) == 4
    assert main(["record", f"{made[0]}..{made[2]}", *ONE, *SPENT]) == 0
    assert "1 that failed before; name them to try again" in _out(capsys)


def _out(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_what_is_there_is_passed_over_unless_asked_for_again(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({}, {"passes": 11})
    for asked in ([made[0]], made, [*made, "--features", "none"], [made[1], "--again"]):
        assert main(["record", *asked, *ONE, *SPENT]) == 0
    found = [(entry.commit, entry.features) for entry in entries(tmp_path)]
    assert Counter(found) == {
        (made[0], ("shipped",)): 1,
        (made[1], ("shipped",)): 2,
        (made[0], ()): 1,
        (made[1], ()): 1,
    }
    assert "1 recorded, 1 there already" in capsys.readouterr().out


def test_of_a_range_only_what_changes_something_measured_is_recorded(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({}, {"passes": 11}, {"notes": "a"}, {"passes": 12}, {"notes": "b"})
    assert main(["record", f"{made[0]}..main", *SPENT]) == 0
    assert {entry.commit for entry in entries(tmp_path)} == {made[1], made[3]}
    assert "2 recorded, 2 that change nothing measured." in capsys.readouterr().out
    assert main(["record", f"{made[3]}..main", *SPENT]) == 0
    assert "1 that change nothing measured." in capsys.readouterr().out
    assert main(["record", made[2], *SPENT]) == 0  # by its name
    assert main(["record", f"{made[0]}..main", "--every", *SPENT]) == 0
    assert {entry.commit for entry in entries(tmp_path)} == {*made[1:]}


def test_a_merge_is_measured_for_what_its_branch_brought(history: Make, tmp_path: Path) -> None:
    """And the commits of the branch, which are on no line of first parents, are not."""
    made = history({}, {"notes": "a"})
    repository = tmp_path / "repository"

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("checkout", "--quiet", "-b", "side", made[0])
    (repository / "toy.json").write_text('{"number": 9, "passes": 11}')
    git("commit", "--quiet", "--all", "-m", "side")
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-edit", "--no-ff", "side")
    assert main(["record", f"{made[0]}..main", *ONE, *SPENT]) == 0
    assert [entry.commit for entry in entries(tmp_path)] == [git("rev-parse", "main")]


def test_a_commit_is_expected_to_take_as_long_as_the_last_that_was_recorded_whole() -> None:
    whole = argparse.Namespace(bench=None, budget=6000.0)
    some = argparse.Namespace(bench=re.compile("io"), budget=6000.0)
    last = toy_entries.entry(1, toy_entries.cell(1.0))
    assert record._expected_s(last, whole) == last.seconds == 100.0
    part = toy_entries.entry(1, toy_entries.cell(1.0), complete=False)
    for one, asked in ((None, whole), (part, whole), (last, some)):
        assert record._expected_s(one, asked) > 6000.0


def test_what_would_be_recorded_is_listed_and_nothing_is_measured(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({}, {"passes": 11}, {"notes": "a"}, {"passes": 12})
    assert main(["record", made[0], made[1], *ONE, *SPENT]) == 0
    capsys.readouterr()
    there = len(entries(tmp_path))
    assert main(["record", f"{made[0]}..main", *ONE, "--list", "--budget", "6000"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].endswith(" number 3")
    assert listed[1:] == [
        "1 to record, in some 101 minutes, 1 there already, or being recorded by another process, "
        "1 that change nothing measured."
    ]
    asked = ["record", f"{made[0]}..main", *ONE, "--list", "--json"]
    assert main(asked) == 0
    told = json.loads(capsys.readouterr().out)
    assert [len(told[what]) for what in ("wanted", "passed", "unneeded")] == [1, 1, 1]
    assert main([*asked, "--control", made[1]]) == 0
    assert len(json.loads(capsys.readouterr().out)["wanted"]) == 2  # another series
    assert len(entries(tmp_path)) == there


def test_a_machine_of_another_kind_begins_a_series_of_its_own(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its control is the first commit that was asked for, whatever the other machine's is."""
    made = history({"passes": 1}, {"passes": 2}, {"passes": 3})
    assert main(["record", made[0], made[1], *ONE, *SPENT]) == 0
    other = {**machine(), "cpu": "Another CPU"}
    for module in (record, recorded):
        monkeypatch.setattr(module, "machine", lambda: other)
    assert main(["record", f"{made[0]}..main", *ONE, *SPENT]) == 0
    controls = {
        (entry.slug == slug(other), entry.commit): entry.control["commit"]
        for entry in entries(tmp_path)
    }
    assert controls == {
        (False, made[0]): made[0],
        (False, made[1]): made[0],
        (True, made[1]): made[1],
        (True, made[2]): made[1],
    }


def test_another_control_is_another_series(history: Make, tmp_path: Path) -> None:
    made = history({"passes": 1}, {"passes": 40})
    for control in made:  # of several restarts a neighbour on the machine may disturb one
        asked = ("--control", control, "--bench", "work", "--budget", "60")
        assert main(["record", made[1], *asked]) == 0
    assert main(["record", made[1], "--bench", "work", *SPENT]) == 0  # that of the newest entry
    slow, same = entries(tmp_path)
    assert (slow.control["commit"], same.control["commit"]) == tuple(made)
    ratios = [value(entry, "toys.time_work").ratio for entry in (slow, same)]
    assert ratios[0] > 5 > ratios[1]  # type: ignore[operator]


def test_some_benchmarks_do_not_pass_for_all(history: Make, tmp_path: Path) -> None:
    history({})
    assert main(["record", *ONE, *SPENT]) == 0
    assert main(["record", *ONE, *SPENT]) == 0
    (some,) = entries(tmp_path)
    assert not some.complete
    for _ in range(2):  # the second one finds it there
        assert main(["record", *SPENT]) == 0
    _, every = entries(tmp_path)
    assert every.complete
    assert store.newest([some, every])[every.slug, every.features, every.commit] is every


def test_an_entry_tells_by_which_suite_it_was_measured(history: Make, tmp_path: Path) -> None:
    made = history({}, {"passes": 11}, {"passes": 12})
    assert main(["record", *made[:2], *ONE, *SPENT]) == 0
    with (tmp_path / "benchmarks" / "toys.py").open("a") as suite:
        suite.write("\n# another\n")
    assert main(["record", made[2], *ONE, *SPENT]) == 0
    one, same, other = (entry.suite for entry in entries(tmp_path))
    assert one == same != other
    assert one


def test_a_short_budget_keeps_what_is_wanted_most(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history({})
    now, did = [0.0], list[str]()

    def stage(name: str, seconds: float) -> None:
        def does(self: Recording) -> None:
            did.append(name)
            now[0] += seconds

        monkeypatch.setattr(Recording, f"_{name}", does)

    assert ALL_STAGES[:2] == ("time", "counts")
    monkeypatch.setattr(recording, "STAGES", ALL_STAGES)
    monkeypatch.setattr(Recording, "_has", lambda *_: True)
    # A clock that the stages alone move on.
    monkeypatch.setattr(recording, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for name in ALL_STAGES:
        stage(name, 2.0 if name == "memory" else 0.0)
    assert main(["record", "--budget", "1.5"]) == 2  # stages of nothing leave no number
    assert did == ["time", "counts", "memory"]
    (found,) = entries(tmp_path)
    left_out = {failure["benchmark"] for failure in found.failures}
    assert left_out == {"profile", "pairs", "criterion"}


def test_stages_for_which_a_project_has_nothing_are_not_said_to_be_left_out(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history({})
    monkeypatch.setattr(recording, "STAGES", ALL_STAGES)
    assert main(["record", *SPENT]) == 0
    (found,) = entries(tmp_path)
    assert {failure["benchmark"] for failure in found.failures} == {"counts", "memory"}


def test_what_the_budget_left_out_is_said(history: Make, tmp_path: Path) -> None:
    history({})
    assert main(["record", *SPENT]) == 0
    (found,) = entries(tmp_path)
    assert value(found, "toys.time_steady").restarts == 1
    said = f"no time was left of the budget of {SPENT[1]} s"
    assert {"benchmark": "memory", "reason": said} in found.failures


def test_an_interruption_keeps_what_is_known_of_the_commit(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history({})
    with monkeypatch.context() as now:
        now.setattr(Recording, "_time", toy_history.interrupted)
        assert main(["record", *SPENT]) == 130
    (stopped,) = entries(tmp_path)
    assert not stopped.complete
    assert value(stopped, "toys.time_steady").restarts
    assert main(["record", *SPENT]) == 0
    assert [entry.complete for entry in entries(tmp_path)] == [False, True]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, toy_history.__file__, str(folder), "record", *arguments]
    here = str(Path(toy_history.__file__).parent)
    path = os.pathsep.join([here, *sys.path])
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


HANGS = """
def time_hangs():
    if toy.NAME == "hangs":
        open({reached!r}, "w").close()
        time.sleep(200)
"""


def test_a_killed_run_loses_at_most_the_commit_it_was_on(tmp_path: Path) -> None:
    made = toy_history.commits(tmp_path, [{}, {"passes": 11}, {"name": "hangs"}, {"passes": 12}])
    asked = (*made, "--bench", r"toys\.time_(steady|hangs)", *SPENT)
    with (tmp_path / "benchmarks" / "toys.py").open("a") as suite:
        suite.write(HANGS.format(reached=str(tmp_path / "reached")))
    first = start(tmp_path, *asked)
    wait_for(lambda: first.poll() is not None or (tmp_path / "reached").exists())
    assert first.poll() is None  # the third waits a minute for its benchmark that hangs
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert [entry.commit for entry in entries(tmp_path)] == made[:2]
    with (tmp_path / "benchmarks" / "toys.py").open("a") as suite:
        suite.write("\ntime_hangs.timeout = 0.1\n")  # it is not waited for again
    second = start(tmp_path, *asked, "--json")
    told = json.loads(second.communicate(timeout=280)[0])
    assert second.returncode == 0
    assert (len(told["recorded"]), len(told["passed"])) == (2, 2)
    assert [entry.commit for entry in entries(tmp_path)] == made
    assert not [*(tmp_path / "history").glob("*/.writing-*")]


def test_two_at_once_share_the_commits(tmp_path: Path) -> None:
    made = toy_history.commits(tmp_path, [{"passes": passes} for passes in range(10, 13)])
    asked = (*made, *ONE, *SPENT, "--json")
    both = [start(tmp_path, *asked) for _ in range(2)]
    told = [json.loads(one.communicate(timeout=280)[0]) for one in both]
    assert Counter(entry.commit for entry in entries(tmp_path)) == dict.fromkeys(made, 1)
    one, other = (of["recorded"].keys() for of in told)
    assert len(one) + len(other) == len(made)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["nothing"], "'nothing': is no commit of this repository"),
        (["."], r"'\.': is no commit"),
        (["main..nothing"], "'nothing': is no commit"),
        (["--budget", "-1"], "--budget: is '-1', expected a number over 0"),
        (["--control", "nothing"], "'nothing': is no commit of this repository"),
        (["--features", "opt p5"], "'opt p5' is no cargo feature"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    texts: list[str], says: str, history: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    history({})
    with pytest.raises(SystemExit) as stopped:
        main(["record", *texts])
    assert stopped.value.code == 2
    assert re.search(says, capsys.readouterr().err)
