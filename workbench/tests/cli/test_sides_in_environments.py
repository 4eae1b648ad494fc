"""A project that says itself how it is built, where a side asks for an interpreter, requirements
or a release: both sides are built by its back-end, in environments."""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_projects
import toy_history
from command_line import rlox_opt
from small_projects import own, repository

from rlox_opt.cli.sides import in_environments, measured_by, resolved
from rlox_opt.project import parity
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suite
from rlox_opt.system.usage import UsageError

TABLE = """
[tool.rlox-opt]
package = "thing"
suite = "benchmarks"
one-process = true
build = { by = "command", command = ["sh", "-c", "cp thing.py {out}"] }
"""
SUITE = """
import alpha, thing

def time_it():
    return thing.ONE

def track_alpha():
    return float(alpha.VERSION)

def track_thing():
    return thing.ONE
"""
# Of the second commit so much more work that no neighbour on the machine hides it.
WORKING = """
import thing

def time_with_alpha_2():
    import alpha

    assert float(alpha.VERSION) == 2
    sum(range(1_000 * thing.ONE**3))
"""
# What asv would be told is of no matter where the project says another way.
CONF = {"matrix": {"req": {"alpha": ["1.5"]}}, "build_command": ["false"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project, whose builds and environments the tests share, and the index of packages."""
    folder = tmp_path_factory.mktemp("sides")
    files = {
        **own(),
        "pyproject.toml": small_projects.PYPROJECT + TABLE,
        "asv.conf.json": json.dumps({"version": 1, **CONF}),
        "benchmarks/all.py": SUITE,
    }
    repository(folder / "project", files, {"thing.py": "ONE = 3\n"})
    with pytest.MonkeyPatch.context() as here:
        small_projects.index(folder / "index", here)
        small_projects.wheel(folder / "index", "thing", "7.0")
        yield folder / "project"


@pytest.fixture
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its folder, in which a test commits nothing."""
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def copied(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it for one test, which may commit; without what was built of it."""
    copy = tmp_path / "project"
    shutil.copytree(made, copy, ignore=shutil.ignore_patterns(".rlox-opt"))
    monkeypatch.chdir(copy)
    return copy


def asked(root: Path, *texts: str, **more: list[str]) -> tuple[Project, Suite, list[Revision]]:
    """The project as it is for two sides."""
    project = Project.find(root)
    arguments = Namespace(**{"extra": [], "python": [], "features": [], **more})
    sides = resolved(project, texts, arguments)
    return (*in_environments(*measured_by(project, sides, "."), sides), sides)


def test_without_such_a_side_it_is_built_as_it_says(root: Path) -> None:
    project, _, sides = asked(root, "HEAD~1", "HEAD")
    assert project.builds.build(sides[0]).made["builder"] == "command"


@pytest.mark.parametrize(
    ("texts", "more"),
    [
        (("HEAD~1", "HEAD"), {"extra": ["base:alpha==1.0", "head:alpha==2.0"]}),
        (("HEAD~1", "HEAD"), {"python": [f"head:{sys.executable}"]}),
        (("pypi:thing==7.0", "HEAD"), {}),
    ],
    ids=["--with", "--python", "pypi:"],
)
def test_both_sides_come_by_the_back_end(
    root: Path, texts: tuple[str, str], more: dict[str, list[str]]
) -> None:
    project, suite, sides = asked(root, *texts, **more)
    for side in sides:
        project.builds.check(side)
    base = project.builds.build(sides[0])
    head = project.builds.build(sides[1], base)
    assert head.made["builder"] == "PEP 517, inner"
    told = parity.findings(base, head)
    if more.get("extra"):
        assert told == ["dependency alpha: 1.0 in base, 2.0 in head, as was asked for by --with."]
    elif "pypi:" in texts[0]:
        assert told[0].startswith("how it is built: a release, from its wheel in base, PEP 517")
    else:
        assert base.made["environment"] == head.made["environment"] == "alpha==1.5"
    assert suite.configuration.notes[-1].startswith("all sides are built in environments, by")


def test_sides_of_unlike_makes_are_refused(root: Path) -> None:
    project, _, (base, _) = asked(root, "HEAD~1", "HEAD")
    other, _, (_, head) = asked(root, "HEAD~1", "HEAD", extra=["alpha==1.0"])
    built = project.builds.build(base), other.builds.build(head)
    with pytest.raises(UsageError, match="compilers: none in base"):
        parity.findings(*built)


def test_a_side_that_no_back_end_builds_is_refused_with_the_remedy(copied: Path) -> None:
    repository(copied, {"pyproject.toml": TABLE})
    told = r"'HEAD': has no \[build-system\] in its pyproject\.toml, .*; write one, or leave out"
    with pytest.raises(UsageError, match=told):
        asked(copied, "HEAD~1", "HEAD", extra=["alpha==1.0"])
    done = rlox_opt("diff", "HEAD~1", "HEAD", "--with", "alpha==1.0")
    assert (done.returncode, "has no [build-system]" in done.stderr) == (2, True)


@pytest.mark.usefixtures("root")
def test_each_side_is_measured_in_its_own_environment_and_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy_history.quick(monkeypatch.setattr)
    words = ("--with", "base:alpha==1.0", "--with", "head:alpha==2.0", "--restarts", "5")
    done = rlox_opt("diff", "HEAD~1", "HEAD", *words, "--no-counts", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {row["benchmark"]: (row["base"], row["head"]) for row in found["memory"]}
    assert rows == {"all.track_alpha": (1.0, 2.0), "all.track_thing": (1.0, 3.0)}
    assert [row["benchmark"] for row in found["results"]] == ["all.time_it"]
    assert any("one-process = true does not hold for these two" in note for note in found["notes"])


@pytest.mark.usefixtures("root")
def test_the_same_environment_on_both_sides_is_still_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy_history.quick(monkeypatch.setattr)
    words = ("--with", "alpha==2.0", "--bench", "track", "--restarts", "5", "--no-counts")
    found = json.loads(rlox_opt("diff", "HEAD~1", "HEAD", *words, "--json").stdout)
    assert len(found["memory"]) == 2
    assert not any("one-process" in note for note in found["notes"])


def test_a_search_builds_every_commit_in_the_environment_that_is_asked_for(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_history.quick(monkeypatch.setattr)
    slower = small_projects.git(copied, "rev-parse", "HEAD")
    repository(copied, {"benchmarks/working.py": WORKING})
    words = "bisect", "HEAD~2", "HEAD", "--bench", "time_with_alpha_2"
    done = rlox_opt(*words)
    assert (done.returncode, "No module named 'alpha'" in done.stderr) == (2, True)
    done = rlox_opt(*words, "--json", "--with", "alpha==2.0", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["commit"] == slower


@pytest.mark.usefixtures("root")
def test_a_search_gives_no_commit_an_environment_of_its_own() -> None:
    done = rlox_opt("bisect", "HEAD~1", "HEAD", "--bench", "time_it", "--with", "base:alpha==1.0")
    assert done.returncode == 2
    assert "--with 'base:alpha==1.0': is no requirement; write numpy" in done.stderr
    done = rlox_opt("bisect", "HEAD~1", "HEAD", "--bench", "time_it", "--python", "base:3.12")
    assert done.returncode == 2
    assert "'base:3.12' is no Python: write a version such as 3.11" in done.stderr
