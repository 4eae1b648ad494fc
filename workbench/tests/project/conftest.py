"""A repository, for what asks of commits; and what tests of builds share."""

from pathlib import Path

import pytest
from users_repository import git

from rlox_opt.project.builders import wheels


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


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What is found out once for all tests of a module: uv's cache, which knows the interpreter,
    and packages by the paths of their files alone; and what the compilers say."""
    return tmp_path_factory.mktemp("uv-cache"), wheels.compilers(Path("/"))
