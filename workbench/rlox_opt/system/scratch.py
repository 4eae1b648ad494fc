"""Temporary folders, also next to results, which are moved into place when they are complete.

A killed process leaves its folder behind, and the next process that makes one in the same place
removes it. A folder is locked as long as the process that made it lives, however that process ends.
So no folder in use is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_PREFIX = ".rlox-making-"
_LOCK, _INNER = "lock", "made"


@contextlib.contextmanager
def scratch(beside: Path | None = None) -> Iterator[Path]:
    """A new empty folder in the folder `beside`, or in the system's for temporary files. It is
    removed at the end with its contents, unless it was moved away.

    Raises:
        OSError: it cannot be made.
    """
    home = Path(tempfile.gettempdir()) if beside is None else beside
    home.mkdir(parents=True, exist_ok=True)
    remove_left(home)
    outer, lock = _locked(home)
    try:
        with lock:
            inner = outer / _INNER
            inner.mkdir()
            yield inner
    finally:
        with contextlib.suppress(OSError):
            _remove(outer)


def _locked(home: Path) -> tuple[Path, IO[bytes]]:
    while True:
        outer = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
        with contextlib.suppress(FileNotFoundError):
            lock = (outer / _LOCK).open("xb")
            with contextlib.suppress(OSError):  # without locks, no process removes another's folder
                fcntl.flock(lock, fcntl.LOCK_EX)
            if (outer / _LOCK).exists():
                return outer, lock
            lock.close()
        # Another process removed it before it was locked.


def remove_left(home: Path) -> None:
    """Remove the folders that ended processes of this user left in the folder `home`."""
    for outer in home.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is in use, or has just been removed
            about = outer.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            if not (outer / _LOCK).exists():  # killed before it was locked, or not locked yet
                outer.rmdir()
                continue
            with (outer / _LOCK).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(outer)


def _remove(outer: Path) -> None:
    """Remove a folder. Its lock goes last: a folder without a lock is not recognised."""
    if (outer / _INNER).exists():  # not if its process was killed earlier, or if it was moved away
        shutil.rmtree(outer / _INNER)
    (outer / _LOCK).unlink()
    outer.rmdir()
