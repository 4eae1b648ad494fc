"""The checkout that revisions are built in: whatever state it is found in, and wherever its making
was killed, the next run has a whole one, and nothing of the user's has changed."""

import fcntl
import functools
import itertools
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_projects
import users_repository
from users_repository import fingerprint, git

from rlox_opt.project.builders import cargo
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.system.usage import UsageError

_CHANGES = ("subprocess.Popen", "os.mkdir", "os.rename", "os.remove", "os.rmdir")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository; in a folder of another one, which git would find by looking higher."""
    around = tmp_path_factory.mktemp("around")
    git(around, "init", "--quiet")
    return users_repository.make(around / "a user's")


@pytest.fixture
def root(users: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The repository, of which every byte must be the same in the end."""
    monkeypatch.setattr(cargo, "outside", lambda _: ())  # which takes as long as all the rest
    before = fingerprint(users)
    yield users
    assert fingerprint(users) == before
    shutil.rmtree(users / "target", ignore_errors=True)


@functools.cache
def of(root: Path) -> Project:
    """The repository as a project, whose settings are read once: no test changes them."""
    return toy_projects.of(root, cache="target")


def checked_out(root: Path, name: str) -> dict[str, str]:
    """What the checkout holds at a revision, by path."""
    project = of(root)
    with project.builds.checked_out(project.commits.resolve(name)) as (checkout, _):
        assert [*checkout.parent.glob(".rlox-making-*")] == []
        assert git(checkout, "status", "--porcelain") == ""  # whole also for git in a build script
        return {
            str(path.relative_to(checkout)): path.read_text()
            for path in checkout.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(checkout).parts
        }


def committed(root: Path, name: str) -> dict[str, str]:
    """What git says that a revision holds."""
    names = git(root, "ls-tree", "-r", "-z", "--name-only", name).split("\0")
    return {path: f"{git(root, 'show', f'{name}:{path}')}\n" for path in names if path}


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


def to_a_file(path: Path, text: str) -> None:
    shutil.rmtree(path)
    path.write_text(text)


def to_a_link(path: Path, to: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to(to)


def to_a_clone(checkout: Path, root: Path) -> None:
    git(root, "clone", "--quiet", "--shared", str(root), str(emptied(checkout)))


BREAKS: dict[str, Callable[[Path, Path], object]] = {
    "nothing in it": lambda checkout, root: emptied(checkout),
    "a file": lambda checkout, root: to_a_file(checkout, ""),
    "a link to the user's": lambda checkout, root: to_a_link(checkout, root),
    "no git folder": lambda checkout, root: shutil.rmtree(checkout / ".git"),
    "an empty git folder": lambda checkout, root: emptied(checkout / ".git"),
    "the user's git folder, named": lambda checkout, root: to_a_file(
        checkout / ".git", f"gitdir: {root / '.git'}\n"
    ),
    "the user's git folder, linked": lambda checkout, root: to_a_link(
        checkout / ".git", root / ".git"
    ),
    "a clone": to_a_clone,
    "no objects": lambda checkout, root: shutil.rmtree(checkout / ".git" / "objects"),
    "no objects of the user's": lambda checkout, root: (
        checkout / ".git/objects/info/alternates"
    ).unlink(),
    "HEAD is garbage": lambda checkout, root: (checkout / ".git/HEAD").write_text("garbage\n"),
    "HEAD is no commit": lambda checkout, root: (checkout / ".git/HEAD").write_text(f"{'1' * 40}"),
    "HEAD is locked": lambda checkout, root: (checkout / ".git/HEAD.lock").touch(),
    "the index is garbage": lambda checkout, root: (checkout / ".git/index").write_text("garbage"),
    "the index is locked": lambda checkout, root: (checkout / ".git/index.lock").touch(),
    "the settings are garbage": lambda checkout, root: (checkout / ".git/config").write_text("["),
    "files are changed": lambda checkout, root: (
        (checkout / "edited").write_text("other"),
        (checkout / "staged").unlink(),
        (checkout / "package" / "new").mkdir(),
        git(checkout, "add", "--all"),
    ),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_checkout_is_made_anew(root: Path, how: str) -> None:
    checked_out(root, "v1")
    BREAKS[how](root / "target" / "revisions" / "checkout", root)
    assert checked_out(root, "v1~1") == committed(root, "v1~1")


def test_the_uncommitted_work_is_checked_out_and_comes_into_no_git_folder(root: Path) -> None:
    found = checked_out(root, ".")
    texts = ("edited", "staged, then edited", "untracked", "package/untracked")
    assert [found[name] for name in texts] == ["of this worktree alone\n"] * 4
    assert not {"deleted", "deleted and staged", "an.ignored"} & found.keys()
    assert of(root).commits.resolve(".") == of(root).commits.resolve(".")


def test_what_stays_the_same_keeps_its_time_stamp(root: Path) -> None:
    stamps = []
    for name in ("v1", "v1~1"):
        checked_out(root, name)
        stamps.append((root / "target/revisions/checkout/edited").stat().st_mtime_ns)
    assert stamps[0] == stamps[1]


@pytest.mark.parametrize("left", [b"", b"garbage"])
def test_broken_objects_of_the_uncommitted_work_are_made_anew(root: Path, left: bytes) -> None:
    found = checked_out(root, ".")
    for path in (root / "target" / "revisions" / "objects").glob("*/*"):
        path.chmod(0o644)
        path.write_bytes(left)
    shutil.rmtree(root / "target" / "revisions" / "checkout")
    assert checked_out(root, ".") == found


def test_a_partial_clone_is_told_how_to_get_the_rest(tmp_path: Path) -> None:
    source, partial = users_repository.make(tmp_path / "source"), tmp_path / "partial"
    git(source, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{source}", str(partial))
    with pytest.raises(UsageError, match="`git fetch --refetch --no-filter` loads what it lacks"):
        checked_out(partial, "HEAD~1")
    git(partial, "fetch", "--quiet", "--refetch", "--no-filter")
    assert checked_out(partial, "HEAD~1") == committed(partial, "HEAD~1")


def test_a_commit_that_is_not_there_costs_no_checkout(root: Path) -> None:
    checked_out(root, "v1")
    kept = (root / "target/revisions/checkout").stat().st_ino
    missing = Revision("gone", "1" * 40)
    with pytest.raises(UsageError, match=f"checkout .* {'1' * 40} -- failed"):
        of(root).builds.checked_out(missing).__enter__()
    assert (root / "target/revisions/checkout").stat().st_ino == kept


def test_a_commit_that_was_pruned_since_and_a_repository_that_was_moved(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = users_repository.make(tmp_path / "copy")
    git(copy, "stash", "drop", "--quiet")
    git(copy, "commit", "--quiet", "--all", "-m", "soon gone")
    for at in (copy, tmp_path / "moved"):
        if at != copy:
            git(copy, "reset", "--quiet", "--hard", "v1")
            git(copy, "reflog", "expire", "--expire=now", "--all")
            git(copy, "gc", "--quiet", "--prune=now")
            copy.rename(at)
        assert checked_out(at, "HEAD") == committed(at, "HEAD")


def killed(
    work: Callable[[], object], step: int = -1, after_s: float = 60.0, with_git: bool = False
) -> bool:
    """Whether a process that does `work` was killed: before it changes a file or starts git for the
    `step`-th time, or after some seconds, with the git that it started or without."""
    child = os.fork()
    if child == 0:
        left = itertools.count(step, -1)

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            writes = event == "open" and isinstance(arguments[0], str) and arguments[2] & 3
            if (writes or event in _CHANGES) and next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    os.setpgid(child, child)
    deadline = time.monotonic() + after_s
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            (os.killpg if with_git else os.kill)(child, signal.SIGKILL)
        time.sleep(0.0005)
    return os.WIFSIGNALED(ended[1])


@pytest.mark.parametrize("broken", [pytest.param(False, marks=pytest.mark.slow), True])
def test_killed_at_any_step_the_next_run_succeeds(root: Path, broken: bool) -> None:
    found = committed(root, "v1")
    steps = 0
    while True:
        shutil.rmtree(root / "target", ignore_errors=True)
        if broken:
            (root / "target" / "revisions" / "checkout" / ".git").mkdir(parents=True)
        if not killed(lambda: checked_out(root, "v1" if broken else "."), steps):
            break
        assert checked_out(root, "v1") == found, steps
        steps += 1
    assert steps > 15


def random_kills(root: Path, kills: int) -> None:
    found = {name: committed(root, name) for name in ("v1", "v1~1")}
    draw = random.Random(kills)
    start = time.monotonic()
    checked_out(root, ".")
    longest, hit, number = time.monotonic() - start, 0, 0
    # Where the first one was disturbed, many kills come too late: then there are more of them, and
    # they come ever sooner.
    while number < kills or (hit <= kills / 4 and number < 5 * kills):
        if number % 3 == 0:
            shutil.rmtree(root / "target", ignore_errors=True)
        asked = draw.choice(("v1", "v1~1", "."))
        after_s = draw.uniform(0, longest)
        before = hit
        hit += killed(lambda asked=asked: checked_out(root, asked), -1, after_s, number % 2 == 0)
        if number >= kills and hit == before:
            longest *= 0.9
        name = draw.choice(("v1", "v1~1"))
        assert checked_out(root, name) == found[name], number
        number += 1
    assert hit > kills / 4


def test_killed_at_random_moments_the_next_run_succeeds(root: Path) -> None:
    random_kills(root, 12)


@pytest.mark.slow
def test_killed_at_many_random_moments_the_next_run_succeeds(root: Path) -> None:
    random_kills(root, 300)


def test_a_git_that_outlives_its_run_keeps_the_next_one_waiting(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "git"
    slow.write_text(
        f"""#!/bin/sh
        case "$*" in *--detach*) touch "{tmp_path}/at it"
            until test -e "{tmp_path}/go on"; do sleep 0.01; done;;
        esac
        exec "{shutil.which("git")}" "$@"
        """
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    child = os.fork()
    if child == 0:
        try:
            checked_out(root, "v1")
        finally:
            os._exit(0)
    while not (tmp_path / "at it").exists():
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    lock = root / "target" / "revisions" / "lock"
    with lock.open() as held, pytest.raises(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (tmp_path / "go on").touch()
    assert checked_out(root, "v1~1") == committed(root, "v1~1")
