"""In a hook of git, which sets variables that name its repository, and in checkouts of any kind:
nothing of the user's changes."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import real_checkouts
import users_repository
from real_checkouts import GATE, UNHARMED
from users_repository import fingerprint, git

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TESTS)}


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
    shutil.copytree(folder / "benchmarks", folder / "around" / "benchmarks")
    return with_work(folder / "around" / "inner")


def with_work(root: Path) -> Path:
    users_repository.work(root)
    (root / "toy.json").write_text(json.dumps({"passes": 12}))
    return root


def program(folder: Path) -> list[str]:
    """rlox-opt on the checkout that it is started in."""
    return [sys.executable, real_checkouts.__file__, str(folder)]


def seen(folder: Path) -> Any:
    """What the last gate did."""
    path = folder / "seen.json"
    found = json.loads(path.read_text())
    path.unlink()
    return found


def hook(root: Path, name: str, folder: Path) -> None:
    """Have a hook ask the gate, and then refuse."""
    own = Path(root, git(root, "rev-parse", "--git-path", "hooks"))
    own.mkdir(exist_ok=True)
    command = shlex.join(["env", f"PYTHONPATH={TESTS}", *program(folder), *GATE])
    (own / name).write_text(f"#!/bin/sh\n{command}\nexit 1\n")
    (own / name).chmod(0o755)


@pytest.mark.parametrize("kind", [plain, linked_worktree, submodule])
def test_hooks_change_nothing_of_the_users(tmp_path: Path, kind: Callable[[Path], Path]) -> None:
    real_checkouts.make(tmp_path)
    root = kind(tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "elsewhere.git")
    asks = {
        "pre-commit": ("commit", "--all", "-m", "never made"),
        "pre-push": ("push", str(tmp_path / "elsewhere.git"), "HEAD:refs/heads/never"),
    }
    for name, ask in asks.items():
        hook(root, name, tmp_path)
        with pytest.raises(subprocess.CalledProcessError):  # refused by the hook
            git(root, *ask)
        assert seen(tmp_path) == UNHARMED, name


def test_variables_that_name_another_repository_are_not_followed(tmp_path: Path) -> None:
    root = real_checkouts.make(tmp_path)
    other = users_repository.make(tmp_path / "other", [{"toy.json": "another"}])
    redirecting = {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git" / "index",
        "GIT_OBJECT_DIRECTORY": other / ".git" / "objects",
        "GIT_COMMON_DIR": other / ".git",
        "GIT_PREFIX": "package/",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_AUTHOR_DATE": "no date",
    }
    env = ENVIRONMENT | {name: str(value) for name, value in redirecting.items()}
    before = fingerprint(other)
    subprocess.run([*program(tmp_path), *GATE], cwd=root, env=env, check=True)
    assert seen(tmp_path) == UNHARMED
    assert fingerprint(other) == before


def test_a_broken_checkout_does_not_lead_to_the_users_work(tmp_path: Path) -> None:
    root = real_checkouts.make(tmp_path)
    (root / "target" / "revisions" / "checkout" / ".git").mkdir(parents=True)
    record = ("record", "HEAD~1", "--control", "HEAD~1", "--bench", "nothing")
    subprocess.run([*program(tmp_path), *record], cwd=root, env=ENVIRONMENT, check=True)
    did = seen(tmp_path)
    assert did["changed"] == []
    assert did["built"][0] == 10
