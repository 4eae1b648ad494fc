"""The stages of a recording on a real build, and what is made of their readings."""

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import projects
import pytest
from rich.console import Console
from rlox_opt.harness import callgrind
from rlox_opt.history import causes, criterion, recording, why
from rlox_opt.history.recording import Recording
from rlox_opt.history.store import Cell
from rlox_opt.project.builds import Artefact, Builds, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.explained import Why
from rlox_opt.project.project import Project
from rlox_opt.sampling import brief, perf, pyspy
from rlox_opt.sampling.brief import Speed
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spec import Spec
from rlox_opt.system.progress import Lines


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artefact:
    """The installed one."""
    shutil.copytree(projects.HERE.root / "rlox", tmp_path / "built" / "rlox")
    monkeypatch.setattr(recording, "MORE", 0)
    library = projects.HERE.installed.extension().name
    twins, _ = projects.HERE.installed.extension_of_twins()
    built, packages = tmp_path / "built", ("rlox",)
    return Artefact(
        Revision("HEAD", "HEAD"), built, (), {}, 0.0, f"rlox/{library}", packages,
        twins=f"rlox/{twins.name}",
    )  # fmt: skip


def recorded(
    build: Artefact, pattern: str, *stages: str, control: Artefact | None = None
) -> Recording:
    quiet = Lines(Console(quiet=True))
    found = Recording(projects.HERE, build, control or build, re.compile(pattern), 600.0, quiet)
    recording.STAGES = stages
    found.measure()
    return found


@pytest.fixture(autouse=True)
def stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "STAGES", recording.STAGES)  # set back after each test


def kinds(found: Recording) -> dict[tuple[str, str], Cell]:
    return {(cell.benchmark, cell.kind): cell for cell in found.cells}


@pytest.mark.slow
def test_times_twins_and_counts_of_a_real_build(build: Artefact) -> None:
    found = recorded(build, r"time_gae\(128\)|'P12 ", "time", "pairs", "counts")
    assert found.failures == {} if callgrind.available() else ["counts"]
    gae = "data_plane.Gae.time_gae(128)"
    (pair,) = [name for name in recording.predicted(projects.HERE) if "'P12 " in name]
    cells = kinds(found)
    wanted = {(gae, "time"), (pair, "time")}
    if callgrind.available():
        wanted |= {(gae, "instructions"), (gae, "allocations")}
        assert cells[gae, "instructions"].value > 1_000
    assert cells.keys() == wanted
    for name in (gae, pair):
        cell = cells[name, "time"]
        assert cell.ratio
        assert cell.ratio_ci99
        assert cell.ratio_ci99[0] < cell.ratio < cell.ratio_ci99[1]
        assert cell.restarts == recording.RESTARTS
    assert found.build["commit"]


def test_a_build_from_before_the_pairs_has_none(build: Artefact) -> None:
    for of in (build.extension, build.laboratory):
        of.unlink()
    (build.folder / "rlox" / "_core.py").write_text("")
    (build.folder / "rlox" / "__init__.py").write_text("def build_info(): return {}\n")
    found = recorded(build, "'P12 ", "pairs")
    assert (found.cells, found.failures) == ([], {})


def test_training_is_told_by_its_speed_beside_the_control_s_and_by_its_profile(
    build: Artefact, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = Sample((Frame("step", "rlox/env/vec_env.py", 9),), "env_step", "rust", 1, MAIN_THREAD)
    older = replace(build, folder=build.folder.with_name("control"))
    shutil.copytree(build.folder, older.folder)
    # Of each training of each build another, so that none can be taken for another.
    steps_per_s = {
        (build.folder, "ppo"): 1_500.0, (build.folder, "sac"): 700.0,
        (older.folder, "sac"): 400.0,
    }  # fmt: skip

    def profile(spec: Spec, package: Path, sampler: str, _: object, progress: Lines) -> object:
        speed = Speed(steps_per_s[package, spec.algo], {"": 1.0, "env_step": 3.0})
        return speed, Samples(sampler, [sample])

    def control(spec: Spec, package: Path, progress: Lines) -> Speed:
        if (package, spec.algo) == (older.folder, "ppo"):
            raise brief.driver.ChildError("it is too old")
        return Speed(steps_per_s[package, spec.algo], {})

    choose = brief.tool
    monkeypatch.setattr(brief, "tool", lambda: "perf")
    monkeypatch.setattr(brief, "profile", profile)
    monkeypatch.setattr(brief, "speed", control)
    found = recorded(build, "^train", "profile", control=older)
    assert found.failures == {"train.ppo of the control": "it is too old"}
    assert kinds(found) == {
        ("train.ppo", "steps"): Cell("train.ppo", "steps", 1_500.0),
        ("train.sac", "steps"): Cell("train.sac", "steps", 700.0, 1.75),
    }
    assert found.profiles.keys() == {"ppo", "sac"}
    assert found.profiles["sac"].functions == {"rust:rlox/env/vec_env.py:step": 1.0}
    monkeypatch.setattr(brief, "tool", choose)
    for sampler in (perf, pyspy):
        monkeypatch.setattr(sampler, "unavailable", lambda: "not here")
    without = recorded(build, "^train", "profile")
    assert without.failures.keys() == {"train.ppo", "train.sac"}
    assert set(without.failures.values()) == {"neither perf nor py-spy can be used here"}


def test_criterion_that_fails_is_noted(build: Artefact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criterion, "build", lambda of, revision: shutil.which("false"))
    assert recorded(build, "time_gae", "criterion").failures.keys() == {"criterion"}


def test_criterion_that_does_not_build_is_noted_and_its_build_is_not_of_the_budget(
    build: Artefact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(of: Builds, revision: Revision) -> Path:
        raise NotBuiltError("error: no such benchmark target")

    monkeypatch.setattr(criterion, "build", fails)
    found = recorded(build, "time_gae", "criterion")
    assert found.failures == {"criterion": "error: no such benchmark target"}
    ids = {"data_plane.Gae.time_gae(128)": "gae/128", "data_plane.Gae.other": "other"}
    monkeypatch.setattr(criterion, "build", lambda of, revision: Path("program"))
    monkeypatch.setattr(criterion, "ids", lambda of, program: ids)
    monkeypatch.setattr(criterion, "times", lambda program, of: dict.fromkeys(of, 5e-7))
    found = recorded(build, "time_gae", "criterion")
    assert found.cells == [Cell("data_plane.Gae.time_gae(128)", "criterion", 5e-7)]


def test_an_interval_is_student_s_over_restarts() -> None:
    logs = [0.01, 0.03, 0.02, 0.04, 0.0]
    cell = recording._cell("a", "time", 1.0, logs, len(logs))
    half = 4.604 * math.sqrt(0.00025 / 5)  # t of 99 % with 4 degrees of freedom; variance / n
    assert cell.ratio == pytest.approx(math.exp(0.02))
    assert cell.ratio_ci99 == pytest.approx(
        (math.exp(0.02 - half), math.exp(0.02 + half)), rel=1e-4
    )
    assert recording._cell("a", "time", 1.0, [0.5], 1).ratio_ci99 is None
    assert recording._cell("a", "time", 1.0, [], 3) == Cell("a", "time", 1.0, restarts=3)


def test_what_moved_is_looked_into_against_the_entry_before(
    build: Artefact, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlox_opt.history.cause import Cause

    quiet = Lines(Console(quiet=True))
    found = Recording(projects.HERE, build, build, re.compile(""), 1.0, quiet)
    asked = []

    def with_cause(
        project: Project, before: Artefact, after: Artefact, name: str, ratio: float
    ) -> tuple[Why, Cause]:
        asked.append((before.revision, name, ratio))
        if name == "c":
            raise ValueError("too few samples")
        return Why(name, ratio), Cause(ratio, "rust", {"rust": 1.0})

    monkeypatch.setattr(why, "with_cause", with_cause)
    monkeypatch.setattr(causes, "moved", lambda of, now, then: [(n, 1.5) for n in "abcd"])
    monkeypatch.setattr(
        Builds, "build", lambda self, revision, like=None: Artefact(revision, Path(), (), {}, 0)
    )
    found._find_causes()  # nothing is before it
    assert not asked
    before = type("Before", (), {"commit": "b" * 40, "cells": ()})
    found.before = before  # type: ignore[assignment]
    found._find_causes()
    assert asked == [(Revision("b" * 40, "b" * 40, None), name, 1.5) for name in "abc"]
    assert found.causes["a"] == {
        "before": "b" * 40, "ratio": 1.5, "layer": "rust", "layers": {"rust": 1.0},
        "function": None, "function_share": None,
    }  # fmt: skip
    assert found.failures == {"cause of c": "too few samples"}
