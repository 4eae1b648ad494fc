"""The one checkout that revisions are built in. One process at a time uses it, and a broken one is
made anew."""

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
    """Lock `folder` for this process; gives the lock's descriptor. What a killed process left
    unfinished is removed."""
    ignored(folder)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_left(folder)
        for left in folder.glob("*.part"):
            left.unlink()
        yield lock.fileno()


def ignored(folder: Path) -> None:
    """Make a folder that git ignores, since builds are not to be committed."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".gitignore"
    if not path.exists():
        path.write_text("*\n")


def moved(folder: Path, lock: int, source: Repository, commit: str) -> tuple[Path, tuple[str, ...]]:
    """The checkout of `source` in `folder`, moved to a commit, with its submodules; and a sentence
    for each submodule that cannot be had. A broken checkout is replaced once a new one is complete.

    Raises:
        GitError: `source` does not have the commit, or not all of it.
    """
    place, kept = Checkout(of(folder), lock), submodules_of(folder)
    try:
        # Unchanged files keep their time stamps, so that cargo does not compile them again.
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
    """Where the submodules fetched for the checkout in `folder` are kept."""
    return folder / "submodules"
