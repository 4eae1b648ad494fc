"""A commit that cargo cannot build."""

import subprocess
from pathlib import Path

import projects
import pytest
from rlox_opt.project.builds import Cargo, NotBuiltError
from rlox_opt.project.commits import Commits
from rlox_opt.project.project import Project


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits, the first tagged v1; `side` branches off before the last."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for number in (1, 2, 3):
        (tmp_path / "file").write_text(f"{number}\n")
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "-m", f"number {number}")
        if number == 1:
            git(tmp_path, "tag", "v1")
        if number == 2:
            git(tmp_path, "branch", "side")
    return tmp_path


@pytest.fixture
def project(repository: Path) -> Project:
    """The repository, whose builds are kept beside it."""
    manifest = Cargo(crate="rlox-python", manifest="Cargo.toml")
    return projects.of(repository, cache=f"../{repository.name} cache", build=manifest)


@pytest.fixture
def revisions(project: Project) -> Commits:
    return project.commits


def test_what_does_not_build_says_so_and_keeps_what_the_compiler_said(
    project: Project, revisions: Commits
) -> None:
    with pytest.raises(NotBuiltError, match=r"could not find `Cargo\.toml`"):
        project.builds.build(revisions.resolve("v1"))
    (log,) = project.revisions.glob("*.log")
    assert "Cargo.toml" in log.read_text()
