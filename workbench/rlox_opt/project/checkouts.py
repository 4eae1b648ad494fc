"""The one checkout that revisions are built in: one process has it; it is whole, or made anew."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from rlox_opt.system import submodules
from rlox_opt.system.git import Checkout, GitError, Repository
from rlox_opt.system.scratch import remove_left, scratch


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Only this process works in `folder`; gives the descriptor of the lock. What one that was
    killed left half made is removed."""
    ignored(folder)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_left(folder)
        for left in folder.glob("*.part"):
            left.unlink()
        yield lock.fileno()


def ignored(folder: Path) -> None:
    """Make a folder whose contents git passes over: builds and what they need are nothing that the
    project would commit."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".gitignore"
    if not path.exists():
        path.write_text("*\n")


def moved(folder: Path, lock: int, source: Repository, commit: str) -> tuple[Path, tuple[str, ...]]:
    """The checkout of `source` in `folder`, at a commit, with its submodules, and a sentence for
    each of these that cannot be had. One that is broken is made anew, and takes its place when it
    is whole.

    Raises:
        GitError: `source` does not have the commit, or not all of it.
    """
    place, kept = Checkout(of(folder), lock), submodules_of(folder)
    try:
        # What is unchanged keeps its time stamp, so that cargo need not compile it again.
        lacking = submodules.moved(place, source, commit, kept)
    except (GitError, OSError):
        with scratch(folder) as making:
            new = dataclasses.replace(place, folder=making / "new")
            lacking = submodules.made(new, source, commit, kept)
            if os.path.lexists(place.folder):
                place.folder.rename(making / "broken")
            new.folder.rename(place.folder)
    return place.folder, lacking


def of(folder: Path) -> Path:
    """Where the checkout in `folder` is."""
    return folder / "checkout"


def submodules_of(folder: Path) -> Path:
    """Where submodules are kept that were fetched for the checkout in `folder`."""
    return folder / "submodules"
