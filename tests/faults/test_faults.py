"""The short form of the campaign: a few trials of each kind, always the same. `make faults` holds
thousands."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import campaign
import kills
import leveling
import odd_names
import pytest
import users_repository
from campaign import Trial
from rlox_opt.system import plugins

import workbench

TWO_AT_ONCE = 2


def found(name: str) -> list[str]:
    """A line for each fault that the short form of a kind finds."""
    kind: Any = importlib.import_module(name)
    trials = campaign.held(kind, kind.SHORT, TWO_AT_ONCE)
    assert len(trials) == len(kind.SHORT)
    assert all(trial.counts for trial in trials), "each trial says what it did"
    return [line for trial in trials for line in campaign.lines(kind.NAME, trial)]


@pytest.mark.timeout(900)
def test_kills_harm_nobody_and_the_same_command_goes_on() -> None:
    assert not found("kills")


@pytest.mark.timeout(900)
def test_where_nothing_can_be_written_that_is_said_in_a_line() -> None:
    assert not found("full_disk")


@pytest.mark.timeout(900)
def test_broken_files_are_refused_in_a_line() -> None:
    assert not found("hostile_files")


def test_hostile_files_are_read_or_refused_in_a_line() -> None:
    assert not found("hostile_readers")


@pytest.mark.timeout(900)
def test_hostile_command_lines_are_answered_in_a_line() -> None:
    assert not found("command_lines")


def test_hostile_calls_into_the_extension_end_in_exceptions() -> None:
    assert not found("boundary_calls")


def test_work_leaves_no_memory_threads_or_files_behind() -> None:
    assert not found("levels")


@pytest.mark.timeout(900)
def test_odd_names_do_no_harm() -> None:
    assert not found("odd_names")


@pytest.mark.parametrize(
    ("resident", "files", "grows"),
    [
        ([100.0] * 12, [9] * 12, []),
        ([60.0, 80, 100, 100, 101, 100, 101, 100, 101, 100, 100, 101], [9] * 12, []),
        ([100.0 + 3 * n for n in range(12)], [9] * 12, ["MiB"]),
        ([100.0] * 12, [9 + n // 4 for n in range(12)], ["files"]),
    ],
)
def test_what_goes_on_growing_is_a_leak(
    resident: list[float], files: list[int], grows: list[str]
) -> None:
    levels = [{"MiB": mib, "files": n} for mib, n in zip(resident, files, strict=True)]
    assert [text.split()[1] for text in leveling.grown(levels)] == grows


def test_a_campaign_finds_what_is_planted(tmp_path: Path) -> None:
    class Kind:
        NAME, SHORT, LONG = "planted", 3, 3

        @staticmethod
        def trial(seed: int, folder: Path) -> Trial:
            (folder / "scratch").touch()
            of = Trial(seed, f"number {seed}")
            if seed == 1:
                of.fault("two\nlines")
            return of

    heard: list[Trial] = []
    trials = campaign.held(Kind, range(3), TWO_AT_ONCE, heard.append)
    assert sorted(trial.seed for trial in heard) == [0, 1, 2] == sorted(t.seed for t in trials)
    (line,) = [line for trial in trials for line in campaign.lines("planted", trial)]
    assert line == (
        "planted: number 1: two lines [python tests/faults --only planted --seed 1 --count 1]"
    )


@pytest.mark.parametrize(
    ("code", "out", "err", "faults"),
    [
        (0, "", "", 0),
        (2, "", "rlox-opt diff: BASE: is no commit\n", 0),
        (3, "", "rlox-opt: cannot write x\n", 0),
        (1, "", "", 1),
        (1, "", "Traceback (most recent call last):\nKeyError: 1\n", 1),
        (0, "", "Exception ignored in\nTraceback (most recent call last):\n", 1),
        (2, "", "", 1),
        (3, "", "rlox-opt: an error of rlox-opt itself, KeyError: 1; the traceback is in x\n", 1),
        (-11, "", "", 1),
        (120, "", "", 1),
    ],
)
def test_an_ending_that_nobody_agreed_on_is_a_fault(
    code: int, out: str, err: str, faults: int
) -> None:
    assert len([*campaign.complaints(code, out, err)]) == faults


def test_what_happens_to_a_users_repository_is_seen(tmp_path: Path) -> None:
    repository = workbench.make(tmp_path / "a user's")
    before = users_repository.fingerprint(repository)
    assert not [*kills.changes(repository, before)]
    (repository / "asv_bench/history/new.json").write_text("{")
    assert [*kills.halves(repository)], "half a record"
    assert not [*kills.changes(repository, before)], "a record may be new"
    (repository / "elsewhere").touch()
    (repository / "untracked").write_text("changed")
    (repository / "edited").unlink()
    users_repository.git(repository, "checkout", "--quiet", "--detach")
    wrong = {line.partition(" ")[2] for line in kills.changes(repository, before)}
    assert wrong == {"is new", "has changed", "is gone"}


def test_a_process_that_is_left_is_found_and_ended(tmp_path: Path) -> None:
    mark = "RLOX_FAULTS_MARK=left"
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    env = {**os.environ, **dict([mark.split("=")])}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()  # what is becoming another program has no environment for a moment
        found = campaign.outlived(mark, 0.2)
        assert list(found) == [left.pid]
        assert left.wait(60) < 0


def test_injected_markup_is_seen(tmp_path: Path) -> None:
    good = "<p title='&lt;script&gt;'>&lt;script&gt;</p><script>1</script>"
    (tmp_path / "good.html").write_text(good)
    assert not [*odd_names.injected(tmp_path)]
    (tmp_path / "bad.html").write_text(odd_names._PAYLOAD)
    assert len([*odd_names.injected(tmp_path)]) == 4


def test_the_record_of_a_campaign_has_a_table(tmp_path: Path) -> None:
    program = plugins.load(workbench.HERE / "__main__.py")
    kinds = {"kills": {"trials": 2, "faults": 1, "seconds": 3, "counts": {"kills": 5}}}
    record = {**program._where(), "seconds": 3, "seed": 0, "kinds": kinds, "faults": ["kills: x|y"]}
    path = program.keep(record, program.table(record), tmp_path)
    assert json.loads(path.read_text())["kinds"] == kinds
    assert "| kills | 2 | 1 | 3 | 5 kills |" in path.with_suffix(".md").read_text()
