"""Temporary folders, also beside results that are moved into place when they are whole.

A process that is killed leaves its folder, and the next one that makes a folder in the same place
removes it. A folder is locked for as long as the process that made it lives, however that ends; so
none is removed that is in use.
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
    """A new empty folder in the folder `beside`, or in the system's for temporary files. At the end
    it is removed with all that is in it, unless it was moved away.

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
            with contextlib.suppress(OSError):  # a file system without locks: nobody removes it
                fcntl.flock(lock, fcntl.LOCK_EX)
            if (outer / _LOCK).exists():
                return outer, lock
            lock.close()
        # Another process was quicker, and took it for one that was left.


def remove_left(home: Path) -> None:
    """Remove what processes of this user that have ended left in the folder `home`."""
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
    """The lock goes last but the folder: without it, what is left would be nobody's."""
    if (outer / _INNER).exists():  # not if its maker was killed before, or it was moved away
        shutil.rmtree(outer / _INNER)
    (outer / _LOCK).unlink()
    outer.rmdir()
