"""Beliefs about the report of several processes: it says what is missing, and why."""

from pathlib import Path

import pytest
from recorded import Record, by_hand

from rlox.profiling import perf, pyspy
from rlox.profiling.processes.report import report
from rlox.profiling.processes.run import Run

UNSAMPLED = "Nothing was sampled, so layers are not known; phases are."


def incomplete(run: Run) -> list[str]:
    found: list[str] = report(run, run.folder / "trace.json")["incomplete"]
    return found


@pytest.mark.parametrize("one_works", [True, False])
def test_where_no_sampler_works_the_report_says_why(
    one_works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf, "unavailable", lambda: None if one_works else "perf is not there")
    monkeypatch.setattr(pyspy, "unavailable", lambda: "py-spy may not look")
    Record(tmp_path, 5).span("a", 0, 1500).until(2000)
    why = "" if one_works else " perf is not there. py-spy may not look."
    assert incomplete(by_hand(tmp_path)) == [UNSAMPLED + why]


@pytest.mark.parametrize("from_s", [0.0, 5.0, 60.0])
def test_a_run_that_ended_before_what_was_asked_for_says_so(from_s: float, tmp_path: Path) -> None:
    record = Record(tmp_path, 5)
    if from_s < 12:
        record.write(recorded=[int(from_s * 1e9), 12 * 10**9])
    record.write(end=[12 * 10**9, "exit"])
    run = by_hand(tmp_path)
    run.about |= {"options": {"from_s": from_s}, "sampler": "none at all"}
    said = "--from 60: the run ended after 12 s, so nothing was kept; use less."
    assert incomplete(run) == ([said] if from_s > 12 else [])
