"""The open regressions of a history: listed, acknowledged, and an exit code."""

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import toy_entries as toy
import toy_history
from command_line import rlox_opt
from toy_entries import BENCHMARK, cell, entry, history, written

from rlox_opt.cli import regressions
from rlox_opt.cli.main import main
from rlox_opt.history import series
from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.history.store import Entry

KEYS = ["benchmark", "kind", "features", "machine", "commit", "subject", "after", "commits",
        "ratio", "ci99", "p", "state", "slower", "layer", "acknowledged",
        "acknowledged_to", "besides", "unexplained"]  # fmt: skip


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return rlox_opt("regressions", "--history", folder, *arguments)


def regressed() -> list[Entry]:
    """Slower from commit 25 on, which is Rust's doing."""
    one = history({25: 1.05})
    causes = {BENCHMARK: {"ratio": 1.05, "layer": "rust", "layers": {"rust": 1.0}}}
    one[25] = entry(25, *one[25].cells, causes=causes)
    return one


def meant(path: Path, commit: str, *kinds: str, ratio: float = 1.06) -> str:
    """A file of acknowledgements, one of each kind."""
    path.write_text(
        "".join(
            f'[[acknowledged]]\nbenchmark = "data_plane.*"\ncommit = "{commit[:10]}"\n'
            f'kind = "{kind}"\nratio = {ratio}\nreason = "checks its bounds now"\n'
            for kind in kinds
        )
    )
    return str(path)


@pytest.fixture
def acknowledgement(tmp_path: Path) -> str:
    return meant(tmp_path / "acknowledged.toml", toy.commit(25), "time")


def test_a_regression_is_listed_with_its_commit_and_fails(tmp_path: Path) -> None:
    done = run(written(regressed(), tmp_path))
    assert done.returncode == 1, done.stderr
    assert "1.050×" in done.stdout
    assert "confirmed" in done.stdout
    assert BENCHMARK in done.stdout
    assert "time · shipped · intel-xeon-2.80ghz-2c · in Rust" in done.stdout
    assert f"{toy.commit(25)[:10]} Commit 25" in done.stdout
    assert "1 unexplained, in 1 series of 40 recordings" in done.stderr


def test_json_is_the_list_and_nothing_else(tmp_path: Path) -> None:
    done = run(written(regressed(), tmp_path), "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    (row,) = found["open"]
    assert list(row) == KEYS
    assert (row["commit"], row["after"], row["commits"]) == (toy.commit(25), toy.commit(24), 1)
    assert (row["slower"], row["layer"], row["acknowledged"]) == (True, "rust", None)
    assert row["ci99"][0] < 1.05 < row["ci99"][1]
    assert found["exit_code"] == 1


def test_an_acknowledged_one_is_listed_apart_with_its_reason(
    tmp_path: Path, acknowledgement: str
) -> None:
    done = run(written(regressed(), tmp_path / "h"), "--acknowledged", acknowledgement)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Acknowledged\n")
    assert "checks its bounds now" in done.stdout
    assert "none unexplained" in done.stderr


def test_one_that_is_larger_than_was_acknowledged_is_a_regression_again(
    tmp_path: Path, acknowledgement: str
) -> None:
    folder = written(history({25: 1.08}), tmp_path / "h")
    done = run(folder, "--acknowledged", acknowledgement)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("Regressions\n")
    assert "more than the 1.06× that is acknowledged" in done.stdout
    assert "fits no change" not in done.stderr
    (row,) = json.loads(run(folder, "--acknowledged", acknowledgement, "--json").stdout)["open"]
    assert (row["acknowledged"], row["acknowledged_to"]) == (None, 1.06)


def test_what_is_acknowledged_of_a_time_excuses_no_instructions(
    tmp_path: Path, acknowledgement: str
) -> None:
    counts = [1000.0] * 25 + [1030.0] * 15
    both = [
        entry(n, *one.cells, cell(of, "instructions"))
        for n, (one, of) in enumerate(zip(history({25: 1.05}), counts, strict=True))
    ]
    done = run(written(both, tmp_path / "h"), "--acknowledged", acknowledgement)
    assert done.returncode == 1
    regressions, acknowledged = done.stdout.split("Acknowledged\n")
    assert "instructions · shipped" in regressions
    assert "time · shipped" in acknowledged
    assert "1 unexplained" in done.stderr


def test_an_entry_that_fits_nothing_is_told(tmp_path: Path, acknowledgement: str) -> None:
    folder = written(history({}), tmp_path / "h")
    done = run(folder, "--acknowledged", acknowledgement)
    assert done.returncode == 0
    assert f"time of data_plane.* at {toy.commit(25)[:10]}: fits no change" in done.stderr
    found = json.loads(run(folder, "--acknowledged", acknowledgement, "--json").stdout)
    assert [of["commit"] for of in found["unused"]] == [toy.commit(25)[:10]]


def test_an_entry_is_told_to_be_removed_only_once_its_change_would_have_been_found() -> None:
    line = [toy.commit(n) for n in range(16)]
    of = series.of_store([entry(n, cell(1.0)) for n in range(16)], line)
    numbers = {commit: number for number, commit in enumerate(line)}
    for at, told in (
        (2, "; remove the entry"),
        (12, " yet: 10 recordings since then would show one"),
    ):
        known = Acknowledgement("data_plane.*", "time", 1.1, "checks", toy.commit(at))
        assert regressions._remedy(known, of, numbers) == told


def test_what_is_never_recorded_is_not_told_to_be_removed(tmp_path: Path) -> None:
    folder = written(history({}, 3), tmp_path / "h")
    path = meant(tmp_path / "meant.toml", toy.commit(1), "memory", "track")
    assert "acknowledged" not in run(folder, "--acknowledged", path).stderr
    found = json.loads(run(folder, "--acknowledged", path, "--json").stdout)
    assert found["unused"] == []


def test_where_several_commits_may_be_the_cause_all_are_named_and_each_can_be_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = toy_history.commits(tmp_path, [{"passes": 10 + n} for n in range(9)])
    toy_history.patch(tmp_path, monkeypatch.chdir, monkeypatch.setattr)
    entries = [
        entry(
            n,
            cell(1000.0 if n < 5 else 1100.0, "instructions"),
            commit=made[n],
            parent=made[n - 1] if n else None,
        )
        for n in (0, 1, 2, 3, 4, 7)
    ]
    folder = written(entries, tmp_path / "h")
    done = run(folder)
    assert done.returncode == 1, done.stderr
    assert f"      after {made[4][:10]}, up to {made[7][:10]} (3 commits)\n" in done.stdout
    assert "since" not in done.stdout
    path = tmp_path / "meant.toml"
    done = run(folder, "--acknowledged", meant(path, made[5], "instructions", ratio=1.2))
    assert done.returncode == 0, done.stderr
    assert "acknowledged" not in done.stderr
    done = run(folder, "--acknowledged", meant(path, made[8], "instructions", ratio=1.2))
    assert done.returncode == 1
    said = f"instructions of data_plane.* at {made[8][:10]}: neither this commit nor a later one"
    assert said in done.stderr


def test_in_a_shallow_clone_no_entry_is_told_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = toy_history.commits(tmp_path, [{}, {"passes": 11}, {"passes": 12}])
    clone = tmp_path / "clone"
    source = f"file://{tmp_path / 'repository'}"
    subprocess.run(["git", "clone", "--quiet", "--depth=2", source, str(clone)], check=True)
    monkeypatch.chdir(clone)
    entries = [entry(n, cell(9.0, "instructions"), commit=of) for n, of in enumerate(made)]
    path = meant(tmp_path / "meant.toml", made[0], "instructions")
    done = run(written(entries, tmp_path / "h"), "--acknowledged", path)
    assert done.returncode == 0, done.stderr
    told = "; the clone is shallow: `git fetch --unshallow`\n"
    assert f"1 recorded commits are not on the line of HEAD; left out{told}" in done.stderr
    assert f"at {made[0][:10]}: fits no change{told}" in done.stderr
    assert "remove" not in done.stderr


def measured(before: dict[str, Any], since: dict[str, Any]) -> list[Entry]:
    """Slower from commit 25 on, with other fields since then."""
    return [
        dataclasses.replace(one, **(before if n < 25 else since))
        for n, one in enumerate(regressed())
    ]


def test_where_the_suite_changed_too_that_is_said_and_the_change_still_fails(
    tmp_path: Path,
) -> None:
    folder = written(measured({"suite": "a"}, {"suite": "b"}), tmp_path)
    done = run(folder)
    assert done.returncode == 1, done.stderr
    assert "      the suite changed here too\n" in done.stdout
    (row,) = json.loads(run(folder, "--json").stdout)["open"]
    assert (row["besides"], row["unexplained"]) == (["the suite changed here too"], True)


def counted(*others: dict[str, Any]) -> list[Entry]:
    """More instructions from the second recording on, with other fields then."""
    return [
        dataclasses.replace(entry(n, cell(9.0 + n, "instructions")), **of)
        for n, of in enumerate(others)
    ]


def test_an_environment_explains_counts_unless_a_commit_asks_for_it(tmp_path: Path) -> None:
    told = "numpy 2.1 → 2.2\n"
    numpy = [{"suite": "a", "toolchain": {"numpy": of}} for of in ("2.1", "2.2")]
    done = run(written(counted(*numpy), tmp_path / "drifted"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Measured otherwise\n")
    assert f"the environment changed here too: {told}" in done.stdout
    asked = [{**of, "built": {"requirements": f"{of['toolchain']}"}} for of in numpy]
    done = run(written(counted(*asked), tmp_path / "asked"))
    assert done.returncode == 1, done.stderr
    assert f"the environment changed here too, as the commits ask: {told}" in done.stdout
    old = [{**of, "suite": ""} for of in numpy]  # from before suites were kept
    done = run(written(counted(*old), tmp_path / "old"))
    assert done.returncode == 1, done.stderr
    assert "changed here too" not in done.stdout


def test_an_environment_explains_no_time_which_is_a_ratio_to_a_control(tmp_path: Path) -> None:
    numpy = [{"suite": "a", "toolchain": {"numpy": of}} for of in ("2.1", "2.2")]
    done = run(written(measured(*numpy), tmp_path))
    assert done.returncode == 1, done.stderr
    assert "the environment changed here too: numpy 2.1 → 2.2\n" in done.stdout


def test_what_was_mended_is_not_listed(tmp_path: Path) -> None:
    done = run(written(history({15: 1.05, 25: 1.0}), tmp_path))
    assert (done.returncode, done.stdout) == (0, "")


def test_what_became_faster_is_listed_when_asked_for(tmp_path: Path) -> None:
    folder = written(history({25: 0.8}), tmp_path)
    assert run(folder).stdout == ""
    done = run(folder, "--all")
    assert done.returncode == 0
    assert done.stdout.startswith("Improvements\n")
    assert "0.80×" in done.stdout


def test_only_the_benchmarks_asked_for_count(tmp_path: Path) -> None:
    steady = cell(1.0, benchmark="data_plane.VTrace.time_vtrace")
    both = [dataclasses.replace(one, cells=(*one.cells, steady)) for one in regressed()]
    folder = written(both, tmp_path)
    assert run(folder, "--bench", "gae").returncode == 1
    other = run(folder, "--bench", "vtrace")
    assert other.returncode == 0
    assert "none unexplained, in 1 series of 40 recordings" in other.stderr
    mistaken = run(folder, "--bench", "vtrase")
    assert mistaken.returncode == 2
    assert "'vtrase' matches no benchmark of the history; there are " in mistaken.stderr


def test_a_larger_count_is_a_regression_too(tmp_path: Path) -> None:
    counts: Sequence[float] = [1000.0] * 5 + [1100.0] * 2
    entries = [entry(n, cell(of, "instructions")) for n, of in enumerate(counts)]
    done = run(written(entries, tmp_path))
    assert done.returncode == 1
    assert "instructions · shipped" in done.stdout


@pytest.mark.parametrize(("commits", "few"), [(1, True), (9, True), (10, False)])
def test_a_history_too_short_to_search_times_says_so(
    tmp_path: Path, commits: int, few: bool
) -> None:
    done = run(written(history({}, commits), tmp_path))
    assert done.returncode == 0, done.stderr
    told = "1 of 1 times are not searched: their newest machine and control have fewer than 10 "
    assert (told in done.stderr) if few else ("not searched" not in done.stderr)


def test_what_cannot_be_read_is_asked_wrongly(tmp_path: Path) -> None:
    empty = run(tmp_path)
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "has no entries; `rlox-opt record`" in empty.stderr
    folder = written(history({}), tmp_path / "h")
    bad = run(folder, "--acknowledged", str(tmp_path / "none.toml"))
    assert bad.returncode == 2
    assert "none.toml: cannot be read" in bad.stderr
    next(folder.rglob("*.json")).write_text("{")
    assert run(folder).returncode == 2


def test_commits_without_a_recording_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [{}, {"passes": 11}, {"notes": "a"}, {"passes": 12}, {"notes": "b"}, {"passes": 13}]
    made = toy_history.commits(tmp_path, settings)
    toy_history.patch(tmp_path, monkeypatch.chdir, monkeypatch.setattr)

    def told(*recorded: int) -> tuple[str, Any]:
        folder = tmp_path / f"of {recorded}"
        written([entry(n, cell(1.0), commit=made[n]) for n in recorded], folder)
        assert main(["regressions", "--history", str(folder)]) == 0
        said = capsys.readouterr().err
        assert main(["regressions", "--history", str(folder), "--json"]) == 0
        return said, json.loads(capsys.readouterr().out)["unrecorded"]

    said, found = told(1, 4)
    assert (
        "3 of the 5 commits since the first recording have none; 2 of them change what is "
        f"measured, 1 after {made[4][:10]}: `rlox-opt record {made[4][:10]}..HEAD`\n"
    ) in said
    assert found["ahead"] == [made[5]]
    assert (found["without"], found["needing"], found["newest"]) == (3, 2, made[4])
    said, found = told(3, 5)
    assert "1 of the 3 commits since the first recording have none; 0 of them change" in said
    assert "rlox-opt record" not in said
    said, _ = told(0, 1, 2, 3, 4, 5)
    assert "since the first recording" not in said
