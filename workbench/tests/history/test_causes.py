"""Why a benchmark moved: which are asked about, and what real samplers say of a known change."""

import math
from pathlib import Path

import pytest
import toy_history
import toy_packages
import toy_projects

from rlox_opt.cli import profile_bench
from rlox_opt.harness.restarts import ContestError
from rlox_opt.history import causes
from rlox_opt.history.store import Cell
from rlox_opt.project import calibration
from rlox_opt.project.builds import Artefact
from rlox_opt.project.commits import WORKING_TREE, Revision
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suites
from rlox_opt.sampling import brief, perf, pyspy

NO_SAMPLER = perf.unavailable() is not None and pyspy.unavailable() is not None


TWIN = "pairs.Pairs.time_ten_calls('P1 gae n=8', 'optimized')"


def cell(name: str, ratio: float, half: float = 0.01, kind: str = "time") -> Cell:
    ends = ratio * math.exp(-half), ratio * math.exp(half)
    return Cell(name, kind, 1e-6, ratio, ends, 5)


def test_what_moved_beyond_its_intervals_is_asked_about_the_largest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"benchmarks": {"noisy": {"detectable": 1.2}}}
    monkeypatch.setattr(calibration, "newest", lambda records: found)
    before = [cell(name, 1.0) for name in ("slower", "faster", "little", "noisy", TWIN)]
    before += [cell("wide", 1.0, half=0.2), cell("counted", 1.0, kind="instructions")]
    now = [
        cell("slower", 1.1),
        cell("faster", 0.8),
        cell("little", 1.025, half=0.001),
        cell("noisy", 1.15),
        cell("wide", 1.15),
        cell("counted", 2.0, kind="instructions"),
        cell(TWIN, 2.0),
        cell("new", 2.0),
        Cell("slower", "criterion", 1.0),
    ]
    moved = causes.moved(toy_projects.PROJECT, now, before)
    assert moved == [("faster", pytest.approx(0.8)), ("slower", pytest.approx(1.1))]


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout whose toy packages are made beside it, with their benchmarks, which are watched
    for a second or two."""
    short = {name: ((0, 1), 1.0 if name != "py-spy" else 2.0) for name in causes._WINDOWS}
    monkeypatch.setattr(causes, "_WINDOWS", short)
    toy_history.commits(tmp_path, [{}])
    made = str(tmp_path / "benchmarks")
    project = toy_projects.of(tmp_path / "repository", suite=made, cache=str(tmp_path))
    return Suites(project).lend(Revision(WORKING_TREE, ""))[0]


def toy(folder: Path, passes: int) -> Artefact:
    package = toy_packages.package(folder, passes=passes)
    return Artefact(Revision("HEAD", "HEAD"), package, (), {}, 0.0)


@pytest.mark.skipif(NO_SAMPLER, reason="neither perf nor py-spy can be used here")
@pytest.mark.parametrize("sampler", ["perf", "py-spy"])
def test_more_work_in_python_is_put_down_to_its_function(
    sampler: str, toys: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"perf": perf.unavailable, "py-spy": pyspy.unavailable}[sampler]()
    if missing or pyspy.unavailable():
        pytest.skip(missing or "functions of Python are named by py-spy")
    monkeypatch.setattr(brief, "tool", lambda: sampler)
    before, after = toy(toys.cache, 10), toy(toys.cache, 20)
    found = causes.of_benchmark(toys, before, after, "toys.time_work", 2.0)
    assert found.layer == "python"
    assert found.layers[found.layer] == pytest.approx(1, abs=0.2)
    assert found.function == "toy/__init__.py:work"


@pytest.mark.skipif(NO_SAMPLER, reason="neither perf nor py-spy can be used here")
def test_a_benchmark_that_fails_has_no_cause(toys: Project) -> None:
    broken = toy_packages.package(toys.cache, name="raises")
    after = Artefact(Revision("HEAD", "HEAD"), broken, (), {}, 0.0)
    with pytest.raises(ContestError, match="no such thing"):
        causes.of_benchmark(toys, toy(toys.cache, 10), after, "toys.time_raises", 2.0)


@pytest.mark.skipif(NO_SAMPLER, reason="neither perf nor py-spy can be used here")
def test_the_calls_of_a_benchmark_are_ranked_by_layer_and_function(toys: Project) -> None:
    found = causes.of_calls(toys, toy(toys.cache, 20), "toys.time_work")
    assert sum(found.layers.values()) == pytest.approx(1, abs=0.01)
    assert found.layers["python"] > 0.8
    told = list(profile_bench.sentences("toys.time_work", found))
    assert told[0] == f"toys.time_work: {found.samples} samples"
    assert told[1].endswith("  Python")
    shares = [float(line.split()[0]) for line in told if line.split()[1:2] == ["%"]]
    assert shares[0] == pytest.approx(100 * found.layers["python"], abs=0.1)
