"""What decides about a build or an environment is in its key: whatever changes, nothing old is
taken for it."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import toy_projects
from users_repository import git

from rlox_opt.project import environments, interpreters
from rlox_opt.project.builders import cargo, command
from rlox_opt.project.builds import Cargo, Command
from rlox_opt.project.interpreters import Interpreter, running
from rlox_opt.project.project import Project

COPIES = "import os, sys; open(sys.argv[1] + '/toy.py', 'w').write(os.environ.get('CFLAGS', ''))"


def project(folder: Path, by: Cargo | Command) -> Project:
    """A repository of two commits, with a crate at its root and another one in a folder."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in (1, 2):
        for path in ("src/lib.rs", "bindings/inner/Cargo.toml", "bindings/inner/lib.rs"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(f"{number}\n")
        (folder / "README").write_text(f"{number}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", f"{number}")
    return toy_projects.of(folder, cache="../cache", build=by)


def asked(of: Project, name: str) -> str:
    assert isinstance(of.builds.by, Cargo)
    return of.builds._cargo(of.builds.by).asked(of.commits.resolve(name), ())


@pytest.mark.parametrize("path", ["src/lib.rs", "bindings/inner/lib.rs", "build.rs"])
def test_cargo_is_called_again_where_any_source_differs(tmp_path: Path, path: str) -> None:
    of = project(tmp_path / "toy", Cargo(crate="toy", manifest="Cargo.toml"))
    before = asked(of, "main")
    (of.root / path).write_text("3\n")
    assert asked(of, ".") != before
    git(of.root, "checkout", "--quiet", "--", ".")
    (of.root / "build.rs").unlink(missing_ok=True)
    (of.root / "README").write_text("3\n")
    assert asked(of, ".") == before, "what is no source does not matter"


def another_flag(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("RUSTFLAGS", "-C target-cpu=native")


def another_python(patch: pytest.MonkeyPatch) -> None:
    other = replace(running(), version="3.99.0")
    for module in (cargo, command):
        patch.setattr(module, "running", lambda: other)


@pytest.mark.parametrize("changes", [another_flag, another_python])
def test_builds_are_made_again_by_another_python_or_with_other_flags(
    changes: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = project(tmp_path / "toy", Cargo(crate="toy", manifest="Cargo.toml"))
    by = Command((sys.executable, "-c", COPIES, "{out}"))
    commanded = toy_projects.of(of.root, cache="../cache", build=by)
    head = of.commits.resolve("main")
    before = asked(of, "main"), commanded.builds.build(head).folder
    assert before == (asked(of, "main"), commanded.builds.build(head).folder)
    changes(monkeypatch)
    after = asked(of, "main"), commanded.builds.build(head).folder
    assert after[0] != before[0]
    assert after[1] != before[1]


@pytest.mark.parametrize("written", ["common @ file://{}", "{}"])
def test_a_requirement_that_is_a_folder_is_what_stands_there(tmp_path: Path, written: str) -> None:
    folder = tmp_path / "common of ours"
    folder.mkdir()
    (folder / "common.py").write_text("N = 1\n")
    requirement = [written.format(str(folder).replace(" ", "%20") if "@" in written else folder)]
    before = environments._local(requirement)
    assert before == environments._local(requirement) != []
    (folder / "common.py").write_text("N = 22\n")
    assert environments._local(requirement) != before
    assert environments._local(["numpy", "numpy==1.26", "a @ https://host/a.whl"]) == []


def test_a_version_means_this_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    name = sys.implementation.name
    there = [
        Interpreter(Path("/pypy"), "3.10.14", "pypy-3.10"),
        Interpreter(Path("/debug"), "3.10.13", f"{name}-3.10-freethreaded+debug"),
        Interpreter(Path("/plain"), "3.10.12", f"{name}-3.10"),
        Interpreter(Path("/free"), "3.13.1", f"{name}-3.13-freethreaded"),
    ]
    monkeypatch.setattr(interpreters, "installed", lambda: there)
    monkeypatch.setattr(interpreters, "running", lambda: there[0])
    assert interpreters.named("3.10").path == Path("/plain")
    assert interpreters.named("3.13t").path == Path("/free")


def test_a_user_without_a_home_has_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    assert running() in interpreters.installed.__wrapped__()
