"""Ends everything that a verb started if the verb itself is killed, at any moment and by any
signal.

`guarded` sets a mark in the environment. Every process inherits it from the one that starts it,
even one that opens a new session or outlives its parent. `guarded` also starts a watcher, which
reads a pipe whose other end only this process has. If the pipe closes without a word, this process
was killed. The watcher then becomes this file, run as a program, which ends every process with the
mark: `python -I -S guard.py MARK`. It needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_WATCH = 'read -r over || exec "$@"'  # a shell starts in a millisecond and needs little memory
_PROC = Path("/proc")
_PS = ("ps", "-A", "-E", "-ww", "-o", "pid=,ppid=,command=")  # on macOS, which has no /proc
_POLL_S = 0.05
_QUIET_S = 2.0  # the search ends after so long without a find, since a process may be starting
_TIDYING_S = 2.0  # for multiprocessing's helper to remove shared memory; it then ends by itself
_LIMIT_S = 60.0
_TIDIES = b"multiprocessing.resource_tracker"


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """All processes that are started in this block end if this process is killed."""
    mark = f"RLOX_STARTED_BY_{secrets.token_hex(8)}"
    os.environ[mark] = "1"
    try:
        with subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", sys.executable, "-I", "-S", __file__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # a signal to this process's group must not end the watcher
        ) as watcher:
            try:
                yield
            finally:
                watcher.communicate(b"over\n")
    finally:
        del os.environ[mark]


def main(mark: str) -> None:
    """End all that bear the mark, and what they start meanwhile."""
    began = seen = time.monotonic()
    while time.monotonic() - seen < _QUIET_S and time.monotonic() - began < _LIMIT_S:
        for pid, text in marked(mark).items():
            seen = time.monotonic()
            if _TIDIES not in text or seen - began > _TIDYING_S:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def marked(mark: str) -> dict[int, bytes]:
    """The processes that bear a mark, but for this one and its own, and those which descend from
    them and have another environment; with their command and environment."""
    bearing: dict[int, bytes] = {}
    children: dict[int, dict[int, bytes]] = {}
    for pid, parent, text in processes():
        children.setdefault(parent, {})[pid] = text
        if mark.encode() in text and os.getpid() not in (pid, parent):
            bearing[pid] = text
    left = [*bearing]
    while left:
        more = children.get(left.pop(), {})
        left += more.keys() - bearing.keys()
        bearing |= more
    return bearing


def processes() -> Iterator[tuple[int, int, bytes]]:
    """Of all processes: its id, its parent's, and its command and environment in one text, as far
    as they can be seen."""
    if not (_PROC / "self/environ").exists():
        listed = subprocess.run(_PS, capture_output=True, check=False).stdout
        for line in listed.splitlines():
            fields = line.split(maxsplit=2)
            yield int(fields[0]), int(fields[1]), fields[2]
        return
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            text = b""
            with contextlib.suppress(OSError):  # it has just ended, or is somebody else's
                parent = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
                with contextlib.suppress(PermissionError):
                    text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                yield int(folder.name), parent, text


if __name__ == "__main__":
    main(*sys.argv[1:])
