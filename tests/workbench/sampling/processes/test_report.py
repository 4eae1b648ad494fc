"""Beliefs about the report of several processes: it says what is missing, and why."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import projects
import pytest
from recorded import Record, by_hand
from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.processes.launch import Options, launch
from rlox_opt.sampling.processes.report import report
from rlox_opt.sampling.processes.run import RecordedRun, read_run
from rlox_opt.sampling.processes.samples_file import write_samples
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.views.processes import render_markdown

from rlox import _core

UNSAMPLED = "Nothing was sampled, so layers are not known"


def reported(run: RecordedRun) -> dict[str, Any]:
    told, _ = report(run, run.folder / "trace.json", projects.HERE)
    return told


def incomplete(run: RecordedRun) -> list[str]:
    found: list[str] = reported(run)["incomplete"]
    return found


@pytest.mark.parametrize("one_works", [True, False])
def test_where_no_sampler_works_the_report_says_why(
    one_works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf, "unavailable", lambda: None if one_works else "perf is not there")
    monkeypatch.setattr(pyspy, "unavailable", lambda: "py-spy may not look")
    Record(tmp_path, 5).span("a", 0, 1500).until(2000)
    why = "" if one_works else " perf is not there. py-spy may not look."
    assert incomplete(by_hand(tmp_path)) == [f"{UNSAMPLED}; phases are.{why}"]


def test_a_run_without_a_sampler_and_phases_is_told_of_neither_and_not_to_do_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in (perf, pyspy):  # one that works was not wanted
        monkeypatch.setattr(tool, "unavailable", lambda: None)
    Record(tmp_path, 5).until(2000)
    told = reported(by_hand(tmp_path))
    assert told["incomplete"] == [f"{UNSAMPLED}."]
    assert told["warnings"] == []


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("startup", "Only start-up and waiting were sampled, so nothing is ranked."),
        (None, "Nothing was sampled, so no layers are known. Give the program more to do."),
    ],
)
def test_only_a_program_of_which_nothing_was_sampled_is_to_do_more(
    layer: str | None, says: str, tmp_path: Path
) -> None:
    record = Record(tmp_path, 5).until(2000)
    if layer is not None:
        stack = (Frame("_find_and_load", "<frozen importlib._bootstrap>", 9),)
        found = [Sample(stack, "", layer, 1.0, MAIN_THREAD)]
        write_samples(tmp_path, record.key, Samples("py-spy", found))
    run = by_hand(tmp_path)
    run.about.sampler = "py-spy"
    assert reported(run)["warnings"] == [says]


def test_what_perf_did_not_see_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf, "unseen", lambda: "the kernel is hidden")
    Record(tmp_path, 5).until(2000)
    for sampler, told in (("perf", True), ("py-spy", False)):
        run = by_hand(tmp_path)
        run.about.sampler = sampler
        assert ("the kernel is hidden." in incomplete(run)) is told


@pytest.mark.parametrize("from_s", [0.0, 5.0, 60.0])
def test_a_run_that_ended_before_what_was_asked_for_says_so(from_s: float, tmp_path: Path) -> None:
    record = Record(tmp_path, 5)
    if from_s < 12:
        record.write(recorded=[int(from_s * 1e9), 12 * 10**9])
    record.write(end=[12 * 10**9, "exit"])
    run = by_hand(tmp_path)
    run.about.options, run.about.sampler = {"from_s": from_s}, "none at all"
    said = "--from 60: the run ended after 12 s, so nothing was kept; use less."
    assert incomplete(run) == ([said] if from_s > 12 else [])


def launched(program: str, folder: Path, packages: Path) -> dict[str, Any]:
    """The report of a program in an environment with other packages."""
    silent: Any = SimpleNamespace(note=lambda *_: None)
    env = os.environ | {"PYTHONPATH": str(packages)}
    done = launch([sys.executable, "-c", program], folder, Options(), None, silent, None, env)
    assert done.status == 0
    told, _ = report(read_run(folder), folder / "trace.json", projects.HERE)
    return told


def test_a_profile_names_the_versions_of_the_program_and_not_ours(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    for name, version in (("numpy", "1.0.toy"), ("gymnasium", "0.1.toy")):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text(f'__version__ = "{version}"')
    found = launched("import numpy, gymnasium", tmp_path / "toy", packages)
    python = sys.version.split()[0]
    assert found["versions"] == {"python": python, "numpy": "1.0.toy", "gymnasium": "0.1.toy"}
    assert found["features"] is None
    assert "opt-p" not in render_markdown(found)
    assert "Optimisations" not in render_markdown(found)


def test_a_profile_of_what_loads_our_extension_names_its_features(tmp_path: Path) -> None:
    root = projects.ROOT
    found = launched("from rlox import _core", tmp_path / "ours", root)
    build = _core.build_info()
    assert found["features"] == build["features"]
    assert found["versions"]["rlox"] == build["version"]
    assert found["versions"]["build_profile"] == build["profile"]
    assert "Optimisations" in render_markdown(found)
