"""Processes that outlive the one that started them: found by a mark in their environment."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

MAKING = ".rlox-making-*"  # folders that are written, until they are complete


def bearing(mark: str, but: str = "guard.py") -> list[str]:
    """The commands of the processes that bear the mark and have not ended; without what ends them,
    unless it is asked for."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has just ended
            continue
    return [command for command in found if not but or but not in command]


def none_left(mark: str) -> bool:
    """Whether all that bear the mark end; they are given long, for machines may be busy. One that
    is becoming another program has no environment for a moment, so one look is not enough."""
    deadline = time.monotonic() + 60
    looks = 0
    while looks < 5 and time.monotonic() < deadline:
        looks = 0 if bearing(mark) else looks + 1
        time.sleep(0.05)
    return looks == 5


def wait_for(what: Callable[[], object]) -> None:
    """Until that is so. It is given long, for machines may be busy."""
    deadline = time.monotonic() + 150
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def end(process: subprocess.Popen[str]) -> None:
    """`kill -9` of a process that is still running."""
    assert process.poll() is None
    process.kill()
    process.wait()
