"""Runs a child process for profiling: its messages, its time limit, and its end with all that it
started.

A child leads a session of its own. So Ctrl-C in the terminal reaches the driver alone, and whatever
a tool forks can be ended together with the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_GRACE_S = 3.0  # between SIGTERM and SIGKILL
_POLL_S = 0.5
_TAIL_LINES = 12
_PROC = Path("/proc")


class ChildError(RuntimeError):
    """A child failed or took too long; the message ends with the last lines of its stderr."""


class Child:
    """A child process that writes lines of JSON to stdout and stops when its stdin ends."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._stderr = folder / "stderr.txt"
        with self._stderr.open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(env),
                start_new_session=True,
            )
        self._buffer = b""

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end_group(self.process)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    @property
    def pid(self) -> int:
        """The child's process id, which is its group's and session's as well."""
        return self.process.pid

    def messages(self, silence_s: float) -> Iterator[dict[str, Any]]:
        """The child's messages, until it ends with status 0.

        Raises:
            ChildError: it ends with another status, or sends nothing for `silence_s`.
        """
        stdout = self.process.stdout
        assert stdout is not None
        hung = f"said nothing for {silence_s:.0f} s"
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            heard = time.monotonic()
            while True:
                ended = self.process.poll() is not None  # asked first: no last words are lost
                if not selector.select(_POLL_S):
                    if ended:
                        break  # a process that it started may keep its stdout open
                    if time.monotonic() - heard > silence_s:
                        raise ChildError(self._explain(hung))
                    continue
                heard = time.monotonic()
                chunk = os.read(stdout.fileno(), 65536)
                if not chunk:
                    break
                *lines, self._buffer = (self._buffer + chunk).split(b"\n")
                yield from map(json.loads, lines)
        try:
            status = self.process.wait(silence_s)
        except subprocess.TimeoutExpired as expired:
            raise ChildError(self._explain(hung)) from expired
        if status:
            raise ChildError(self._explain(_status(status)))

    def require_alive(self) -> None:
        """Raises ChildError if it has ended."""
        status = self.process.poll()
        if status is not None:
            raise ChildError(self._explain(f"ended too soon, {_status(status)}"))

    def stop(self) -> None:
        """Ask it to end training and write its results."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _explain(self, what: str) -> str:
        tail = tail_of(self._stderr)
        return f"{what}: {tail}" if tail else what


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process without children of its own: SIGTERM, a short wait, SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a session leader and everything in its group: SIGTERM, a short wait, SIGKILL."""
    for number, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        if process.poll() is None:
            signal_group(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
    # The leader may have ended before a process that it started.
    signal_group(process.pid, signal.SIGKILL)


def end_now(process: subprocess.Popen[bytes]) -> None:
    """Kill a session leader and everything in its group."""
    signal_group(process.pid, signal.SIGKILL)
    process.wait()


def tail_of(path: Path) -> str:
    """The last lines of a file as one text; "" without a file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_TAIL_LINES:])


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a process's group, as far as anything is left of it that this user may
    signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def lives(pid: int) -> bool:
    """Whether a process has not ended, or nobody can tell, as without /proc."""
    return not _tells() or _group(pid) is not None


def group_lives(group: int) -> bool:
    """Whether a process of the group has not ended, or nobody can tell. One that has ended stays in
    its group until its parent asks for its status, which the first process of a container may never
    do."""
    return not _tells() or any(_group(int(of.name)) == group for of in _PROC.glob("[0-9]*"))


def _tells() -> bool:
    return (_PROC / "self/stat").exists()


def _group(pid: int) -> int | None:
    """The group of a process; None if the process has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    state, _, group, *_ = stat.rpartition(b")")[2].split()
    return None if state in (b"Z", b"X") else int(group)


def _status(status: int) -> str:
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"
