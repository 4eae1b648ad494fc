"""Looks at the threads of a run's processes from outside, some fifty times a second: for how long
each has run, for how long others kept it off a CPU, and what it waits for.

All of this is read from /proc. What a thread waits for is shown by its system call. CPython's own
lock differs from other futexes by its address, which lies among the interpreter's static variables.
Where the kernel forbids this, or without /proc, nothing is known, and the report says so.

A watch consists of files of JSON lines, of a long run the last ones: `{"look": [ns, [[pid, tid,
ran, kept, state, kernel], …]]}`. Times are nanoseconds, states are those of `STATES`, and `kernel`
is how much of its time a thread ran in the kernel.
"""

from __future__ import annotations

import os
import platform
import re
import threading
import time
from pathlib import Path

from rlox_opt.sampling.processes.inside.rlox_opt_segments import Segments

WATCH = "watch.seen"  # the beginning of its files' names
# "stopped": by a debugger, or by py-spy, which stops a process for every sample.
STATES = ("running", "gil", "lock", "pipe", "poll", "sleep", "process", "other", "stopped")
_BYTES, _FILES = 8 << 20, 8  # the size of a file, and their number: an hour of ten threads
_PERIOD_S = 0.02
_REST = 9  # the pause is this many times as long as a look took, which is long for many threads
_TREE_EVERY = 10  # looks between searches for new processes
# System calls of x86-64 (unistd_64.h). Elsewhere only running and other states are distinguished.
_CALLS = {
    **dict.fromkeys((0, 17, 19, 43, 45, 47, 288), "pipe"),  # read, recvfrom, accept, …
    **dict.fromkeys((1, 18, 20, 44, 46), "pipe"),  # write, sendto, …
    **dict.fromkeys((7, 23, 232, 270, 271, 281, 441), "poll"),
    **dict.fromkeys((35, 230), "sleep"),
    **dict.fromkeys((61, 247), "process"),
}
_FUTEX = 202
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_INTERPRETER = re.compile(r"/(lib)?python3[^/]*$")


class Watcher:
    """Watches a process, and all that it starts, between two times of the monotonic clock, or until
    the block ends."""

    def __init__(self, pid: int, folder: Path, from_ns: int = 0, until_ns: int = 1 << 62) -> None:
        self.pid, self.from_ns, self.until_ns = pid, from_ns, until_ns
        self._files = Segments(str(folder / WATCH), _BYTES, _FILES, lambda _: [])
        self._stop = threading.Event()
        self._statics: dict[int, list[tuple[int, int]]] = {}
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self._files.close()

    def _run(self) -> None:
        pids: list[int] = []
        for number in range(1 << 62):
            begin = time.thread_time()
            if number % _TREE_EVERY == 0:
                pids = tree(self.pid)
            at = time.monotonic_ns()
            if self.from_ns <= at < self.until_ns:
                tasks = [task for pid in pids for task in self._tasks(pid)]
                try:
                    self._files.write([{"look": [at, tasks]}])
                except OSError:  # the disk is full, which the report's writer will notice
                    return
            if self._stop.wait(max(_PERIOD_S, _REST * (time.thread_time() - begin))):
                return

    def _tasks(self, pid: int) -> list[tuple[int, ...]]:
        tasks: list[tuple[int, ...]] = []
        try:
            for folder in Path(f"/proc/{pid}/task").iterdir():
                ran, kept, _ = (folder / "schedstat").read_text().split()
                state, *stat = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                at, kernel_ns = self._state(folder, pid, state), int(stat[11]) * _TICK_NS
                tasks.append((pid, int(folder.name), int(ran), int(kept), at, kernel_ns))
        except (OSError, ValueError):  # the process has just ended
            pass
        return tasks

    def _state(self, folder: Path, pid: int, state: bytes) -> int:
        if state == b"R":
            return STATES.index("running")
        if state in b"tT":
            return STATES.index("stopped")
        try:
            call = (folder / "syscall").read_text().split()
        except OSError:  # the kernel forbids it
            return STATES.index("other")
        if call[0] == "running" or platform.machine() != "x86_64":
            return STATES.index("running" if call[0] == "running" else "other")
        number = int(call[0])
        if number == _FUTEX:
            return STATES.index("gil" if self._is_static(pid, int(call[1], 16)) else "lock")
        return STATES.index(_CALLS.get(number, "other"))

    def _is_static(self, pid: int, address: int) -> bool:
        if pid not in self._statics:
            try:
                maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
                self._statics[pid] = statics(maps)
            except OSError:
                self._statics[pid] = []
        return any(start <= address < end for start, end in self._statics[pid])


def tree(pid: int) -> list[int]:
    """A process and its descendants, as far as their parents still live."""
    pids, left = [], [pid]
    while left:
        pids.append(left.pop())
        try:
            for task in Path(f"/proc/{pids[-1]}/task").iterdir():
                left += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
    return pids


def statics(maps: str) -> list[tuple[int, int]]:
    """Where the interpreter's own variables lie, from /proc/<pid>/maps: the writable mappings of
    its file, and the nameless mapping right behind them, for variables that begin as zeros."""
    mappings: list[tuple[int, int]] = []
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        start, end = (int(part, 16) for part in fields[0].split("-"))
        name = fields[5] if len(fields) > 5 else ""
        behind = not name and bool(mappings) and mappings[-1][1] == start
        if "w" in fields[1] and (behind or _INTERPRETER.search(name)):
            mappings.append((start, end))
    return mappings
