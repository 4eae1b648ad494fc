"""In a hook of git, which sets variables that name its repository, and in checkouts of any kind:
nothing of the user's changes."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import real_checkouts
import users_repository
from real_checkouts import GATE, UNHARMED
from users_repository import git

TESTS = Path(__file__).parents[1]


def plain(folder: Path) -> Path:
    return folder / "repository"


def linked_worktree(folder: Path) -> Path:
    """Beside the repository, with the commits of main and work of its own."""
    git(folder / "repository", "worktree", "add", "--quiet", "-b", "linked", "../a worktree")
    return with_work(folder / "a worktree")


def submodule(folder: Path) -> Path:
    """Of a repository around it, with work of its own."""
    (folder / "around").mkdir()
    git(folder / "around", "init", "--quiet", "--initial-branch=main")
    git(folder / "around", "submodule", "--quiet", "add", "../repository", "inner")
    git(folder / "around", "commit", "--quiet", "-m", "around it")
    return with_work(folder / "around" / "inner")


def with_work(root: Path) -> Path:
    users_repository.work(root)
    (root / "toy.json").write_text(json.dumps({"passes": 12}))
    return root


def command(folder: Path) -> list[str]:
    """rlox-opt's gate on the checkout that it is started in."""
    return [sys.executable, real_checkouts.__file__, str(folder), *GATE]


def seen(folder: Path) -> Any:
    return json.loads((folder / "seen.json").read_text())


def hook(root: Path, name: str, folder: Path) -> None:
    """Have a hook ask the gate, and then refuse."""
    own = Path(root, git(root, "rev-parse", "--git-path", "hooks"))
    own.mkdir(exist_ok=True)
    path = f"PYTHONPATH={shlex.quote(str(TESTS))}"
    (own / name).write_text(f"#!/bin/sh\n{path} {shlex.join(command(folder))}\nexit 1\n")
    (own / name).chmod(0o755)


@pytest.mark.parametrize("kind", [plain, linked_worktree, submodule])
@pytest.mark.parametrize("name", ["pre-commit", "pre-push"])
def test_a_hook_changes_nothing_of_the_users(tmp_path: Path, kind: Any, name: str) -> None:
    real_checkouts.make(tmp_path)
    root = kind(tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "elsewhere.git")
    hook(root, name, tmp_path)
    asks = {
        "pre-commit": ("commit", "--all", "-m", "never made"),
        "pre-push": ("push", str(tmp_path / "elsewhere.git"), "HEAD:refs/heads/never"),
    }
    with contextlib.suppress(subprocess.CalledProcessError):
        git(root, *asks[name])
    assert seen(tmp_path) == UNHARMED


@pytest.mark.parametrize("bare", [False, True])
def test_variables_that_name_another_repository_are_not_followed(
    tmp_path: Path, bare: bool
) -> None:
    root = real_checkouts.make(tmp_path)
    other = users_repository.make(tmp_path / "other", [{"toy.json": "another"}])
    if bare:
        git(tmp_path, "clone", "--quiet", "--bare", str(other), "bare.git")
    there = tmp_path / "bare.git" if bare else other / ".git"
    redirecting = {
        "GIT_DIR": there,
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": there / "index",
        "GIT_OBJECT_DIRECTORY": there / "objects",
        "GIT_COMMON_DIR": there,
        "GIT_PREFIX": "package/",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_AUTHOR_DATE": "no date",
    }
    if bare:
        redirecting = {"GIT_DIR": there}
    env = os.environ | {name: str(value) for name, value in redirecting.items()}
    before = users_repository.fingerprint(tmp_path)
    subprocess.run(command(tmp_path), cwd=root, env=env | {"PYTHONPATH": str(TESTS)}, check=True)
    after = users_repository.fingerprint(tmp_path)
    ours = ("seen.json", "builds", "repository/target")
    assert seen(tmp_path) == UNHARMED
    assert {n: d for n, d in after.items() if not n.startswith(ours)} == before
