"""`rlox-opt record` where something fails or is mistyped: what is known stays, and the reason is
told."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import toy_history
from toy_entries import cell, entry
from toy_history import SPENT, Make, entries

from rlox_opt.cli import record
from rlox_opt.cli.main import main
from rlox_opt.history import recorded, recording, store
from rlox_opt.history.recording import Recording
from rlox_opt.project.builds import Artefact, Builds, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.system.files import NotReadError
from rlox_opt.system.machine import machine
from rlox_opt.system.usage import UsageError


def out(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, on one line."""
    return " ".join(capsys.readouterr().out.split())


def test_a_failure_that_passes_is_tried_again_and_hides_nothing(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = history({})

    def fails(*_: Any) -> NoReturn:
        raise NotBuiltError(f"{made} does not build: no network")

    def numbers() -> int:
        (found,) = store.newest(entries(tmp_path)).values()
        return len(found.cells)

    assert main(["record", *SPENT]) == 0
    there = numbers()
    with monkeypatch.context() as patched:
        patched.setattr(Builds, "build", fails_for_twins(fails))
        assert main(["record", "--again", *SPENT]) == 2
    assert len(entries(tmp_path)) == 2
    assert numbers() == there > 0


def fails_for_twins(fails: Callable[..., NoReturn]) -> Callable[..., Artefact]:
    """A commit's build, which fails, where the control's does not."""
    build = Builds.build
    return lambda self, *of: fails() if self.twins else build(self, *of)


def test_a_name_that_no_benchmark_has_records_nothing(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history({})
    assert main(["record", "--bench", "toys.time_staedy", *SPENT]) == 2
    assert "no benchmark of it has such a name" in out(capsys)
    assert not entries(tmp_path)


def test_benchmarks_of_kinds_that_a_history_does_not_keep_are_told_once(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history({}, {"passes": 11})
    assert main(["record", "main~1", "main", *SPENT]) == 0
    assert out(capsys).count("1 track_ or mem_ benchmark is not kept in a history") == 1
    (tmp_path / "benchmarks" / "toys.py").write_text("def track_it():\n    return 1\n")
    assert main(["record", "--again", *SPENT]) == 2
    assert "only track_ and mem_ benchmarks, which are not kept in a history" in out(capsys)


def test_a_benchmark_that_fails_on_the_control_alone_is_timed_without_a_ratio(
    history: Make, tmp_path: Path
) -> None:
    history({"name": "raises"}, {})
    assert main(["record", "main~1", "main", "--bench", "raises|steady", *SPENT]) == 0
    old, new = entries(tmp_path)
    assert [failure["benchmark"] for failure in old.failures] == ["toys.time_raises"]
    assert new.failures == ()
    ratios = {of.benchmark: of.ratio for of in new.cells}
    assert ratios.keys() == {"toys.time_raises", "toys.time_steady"}
    assert ratios["toys.time_raises"] is None
    assert ratios["toys.time_steady"]


def test_what_a_recording_lacks_is_told_in_a_line_with_what_would_bring_it(
    history: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    history({"name": "raises"})
    assert main(["record", *SPENT]) == 0
    assert (
        "1 benchmark failed (toys.time_raises); memory: no time was left; 1 restart each: "
        "a larger --budget, or --bench"
    ) in out(capsys)


def test_a_part_of_the_suite_that_cannot_be_read_is_lacking(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history({})
    (tmp_path / "benchmarks" / "broken.py").write_text("import no_such_module\n")
    assert main(["record", *SPENT]) == 0
    assert "1 benchmark failed (benchmarks.broken)" in out(capsys)
    (found,) = entries(tmp_path)
    assert "no_such_module" in found.failures[0]["reason"]


def test_memory_is_weighed_until_the_budget_is_spent(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history({})
    with (tmp_path / "benchmarks" / "toys.py").open("a") as suite:
        suite.write("\ndef peakmem_more():\n    return bytearray(1_000)\n")
    now, weighed = [0.0], list[str]()

    def peak(self: Recording, name: str) -> None:
        weighed.append(name)
        now[0] += 2.0

    monkeypatch.setattr(Recording, "_peak", peak)
    monkeypatch.setattr(recording, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert main(["record", "--bench", "peakmem", "--budget", "1.5"]) == 2
    assert len(weighed) == 1
    (left,) = {"toys.peakmem_held", "toys.peakmem_more"} - {*weighed}
    why = f"no time was left of the budget of 1.5 s to weigh {left}"
    (found,) = entries(tmp_path)
    assert found.failures == ({"benchmark": "memory", "reason": why},)


def test_where_one_side_has_benches_of_its_own_there_is_no_ratio_and_the_note_is_kept(
    history: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made, build = history({}, {"passes": 11}), Builds.build

    def noted(self: Builds, revision: Revision, like: Artefact | None = None) -> Artefact:
        own = ("it has its own benches",) if revision.commit == made[1] else ()
        return dataclasses.replace(build(self, revision, like), notes=own)

    monkeypatch.setattr(Builds, "build", noted)
    monkeypatch.setattr(record, "own_benches", lambda built: "".join(built.notes))
    assert main(["record", *made, "--bench", "toys.time_steady", *SPENT]) == 0
    one, own = entries(tmp_path)
    assert [of.ratio is None for each in (one, own) for of in each.cells] == [False, True]
    assert (one.notes, own.notes) == ((), ("it has its own benches",))
    assert own.suite != one.suite
    assert "note: it has its own benches" in out(capsys)


def test_a_commit_whose_benchmarks_cannot_be_read_is_no_control(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({"name": "unreadable"}, {}, {"passes": 11})
    assert main(["record", *made, *SPENT]) == 0
    found = {entry.commit: entry for entry in entries(tmp_path)}
    assert {entry.control["commit"] for entry in found.values()} == {made[1]}
    assert [bool(found[commit].cells) for commit in made] == [False, True, True]
    assert "RuntimeError: of its import" in out(capsys)
    with pytest.raises(SystemExit, match="2"):
        main(["record", made[1], "--control", made[0], *SPENT])
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be the control, since no benchmark can be read" in said


@pytest.mark.parametrize(
    ("there", "error", "says"),
    [
        (False, UsageError, "is not in this clone; --control REV begins a new series"),
        (True, NotBuiltError, "does not build any more; --control REV begins a new series: "),
    ],
)
def test_a_control_that_is_gone_or_no_longer_builds_is_named_with_the_option_for_another(
    there: bool, error: type[Exception], says: str, history: Make, tmp_path: Path
) -> None:
    (broken,) = history({"name": "broken"})
    control = broken if there else "f" * 40
    newest = entry(0, cell(1.0), control={"commit": control, "features": []})
    project = toy_history.project(tmp_path)
    store.append(dataclasses.replace(newest, machine=machine()), project.history)
    with pytest.raises(error, match=f"the control {control[:10]} of the newest recording {says}"):
        recorded.choose_control(project, [], None)


def test_other_benchmarks_of_a_commit_and_those_of_a_stopped_run_are_still_to_be_measured(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history({})
    assert main(["record", "--bench", "steady", *SPENT]) == 0
    assert main(["record", "--bench", "time", *SPENT]) == 0  # which finds "steady", and more
    assert len(entries(tmp_path)) == 2
    with monkeypatch.context() as now:
        now.setattr(Recording, "_time", toy_history.interrupted)
        assert main(["record", "--bench", "work", *SPENT]) == 130
    for _ in range(2):  # the second one finds it there
        assert main(["record", "--bench", "work", *SPENT]) == 0
    assert [(of.asked, of.stopped) for of in entries(tmp_path)[2:]] == [
        ("work", True), ("work", False)
    ]  # fmt: skip


def test_a_calibration_that_cannot_be_read_costs_the_causes_alone(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise NotReadError(Path("x_calibration.json"), "is no JSON")

    made = history({}, {"passes": 11})
    assert main(["record", made[0], *SPENT]) == 0
    monkeypatch.setattr("rlox_opt.project.calibration.newest", broken)
    monkeypatch.setattr(Recording, "_find_causes", toy_history.CAUSES)
    assert main(["record", made[1], *SPENT]) == 0
    failure = {"benchmark": "cause of changes", "reason": "x_calibration.json: is no JSON"}
    assert failure in entries(tmp_path)[1].failures
