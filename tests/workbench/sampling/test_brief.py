"""A short profile, of another build than this one's too."""

import shutil
from dataclasses import replace
from pathlib import Path

import projects
import pytest
from projects import CLASSIFIER, ROOT
from rich.console import Console
from rlox_opt.sampling import brief, perf, pyspy
from rlox_opt.sampling.attribution import attribute
from rlox_opt.sampling.samples import MAIN_THREAD
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.workloads import reference
from rlox_opt.system.process import ChildError
from rlox_opt.system.progress import Lines

from workloads.child import _alone

QUIET = Lines(Console(quiet=True))
NO_SAMPLER = perf.unavailable() is not None and pyspy.unavailable() is not None


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A build of its own, which says when it trains."""
    folder = tmp_path / "other"
    shutil.copytree(ROOT / "rlox", folder / "rlox", ignore=shutil.ignore_patterns("profiling"))
    # The workbench of an old commit, which must not be the one that looks on.
    (folder / "rlox" / "profiling").mkdir()
    (folder / "rlox" / "profiling" / "__init__.py").write_text("")
    with (folder / "rlox" / "learner" / "ppo.py").open("a") as source:
        source.write(
            "\nimport sys\nprint('this is the other build', file=sys.stderr)\nsys.exit(3)\n"
        )
    return folder


@pytest.mark.slow
@pytest.mark.skipif(NO_SAMPLER, reason="neither perf nor py-spy can be used here")
def test_speed_phases_and_layers_of_another_build(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brief, "PLAIN_S", 1.0)
    monkeypatch.setitem(brief.SAMPLED_S, "perf", 1.0)
    with pytest.raises(ChildError, match="this is the other build"):
        brief.speed(reference(projects.HERE, "ppo"), package, QUIET)
    source = package / "rlox" / "learner" / "ppo.py"
    source.write_text(source.read_text().replace("sys.exit(3)", ""))
    spec = reference(projects.HERE, "ppo")
    spec = replace(spec, trainer=spec.trainer | {"optimizations": []})  # all layers are there
    speed, samples = brief.profile(spec, package, brief.tool(), CLASSIFIER, QUIET)
    assert speed.steps_per_s > 100
    assert speed.self_seconds["gradient_update/backward"] > 0
    assert min(speed.self_seconds.values()) >= -0.01
    # Whole iterations: the window is at least as long as asked for.
    assert sum(speed.self_seconds.values()) >= brief.PLAIN_S
    layers = {of.name: of.share for of in attribute(samples, speed.self_seconds)}
    assert sum(layers.values()) == pytest.approx(1)
    assert layers["torch_inference"] > 0.05
    assert layers["torch_backward"] > 0.02


def test_a_phase_has_what_is_in_none_of_its_inner_ones() -> None:
    log = SpanLog()
    log.paths = ["update", "update/forward", "collect"]
    main, other = log.open_thread(MAIN_THREAD, 1), log.open_thread("other", 2)
    for index, start, end in ((2, 10, 13), (1, 14, 16), (0, 13, 18), (1, 19, 21), (0, 18, 23)):
        main.data.extend((index, start * 10**9, end * 10**9))
    other.data.extend((2, 10 * 10**9, 15 * 10**9))
    found = _alone(log, 10.0, 8.0)  # the last update begins where these seconds end
    assert found == {"": 0.0, "collect": 3.0, "update": 3.0, "update/forward": 2.0}


def test_a_package_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChildError, match=f"not from {tmp_path}"):
        brief.speed(reference(projects.HERE, "ppo"), tmp_path, QUIET)
