"""The clock of the programs: what each thread did, and for how long by its own CPU time.

A part is nearly pure work of one layer. What the kernel did for it is told apart by the thread's
own figures of the kernel; a part that waits is timed by the wall clock. Nothing here is known to
the profiler.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
_FOLDER = os.environ.get("ACCURACY_TRUTH")  # where the compositions go; nowhere without it


class Clock:
    """The parts of one thread's time."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.spans: list[tuple[str, float, float, float, float]] = []
        self.rounds = 0

    def go_on(self) -> bool:
        """Whether there is time left for another round."""
        self.rounds += 1
        return time.monotonic() - self.began < SECONDS

    @contextmanager
    def part(self, layer: str) -> Iterator[None]:
        """What the block does, the thread's work in the kernel apart. What it waits in there, it
        waits for the interpreter; for a CPU is nobody's."""
        before = _now()
        try:
            yield
        finally:
            spent = [end - begin for begin, end in zip(before, _now(), strict=True)]
            wall, cpu, kernel, queued = spent
            self.seconds[layer] += cpu - kernel
            self.seconds["kernel"] += kernel
            self.seconds["gil"] += max(0.0, wall - cpu - queued)
            self.spans.append((layer, before[0], before[0] + wall, cpu, kernel))

    @contextmanager
    def waiting(self, seconds: float = 1e9) -> Iterator[None]:
        """What the block waits: `seconds` of its own will, and then for the interpreter."""
        wall, cpu, _, queued = _now()
        try:
            yield
        finally:
            after = _now()
            waited = after[0] - wall - (after[1] - cpu) - (after[3] - queued)
            self.seconds["idle"] += min(seconds, waited)
            self.seconds["gil"] += max(0.0, waited - seconds)

    def tell(self) -> None:
        """Write the composition of the calling thread."""
        if _FOLDER is None:
            return
        current = threading.current_thread()
        main = current is threading.main_thread()
        told = {
            "pid": os.getpid(),
            "thread": "MainThread" if main else current.name,
            "seconds": dict(self.seconds),
            "rounds": self.rounds,
            "window": [self.began, time.monotonic()],
            "spans": self.spans,  # layer, begin, end, its CPU time and that in the kernel
        }
        path = Path(_FOLDER, f"{os.getpid()}-{threading.get_native_id()}.json")
        path.write_text(json.dumps(told))


def _now() -> tuple[float, float, float, float]:
    """Of this thread: the wall's clock, its CPU time, that in the kernel, that queued for a CPU."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    queued = int(os.read(file, 100).split()[1]) * 1e-9
    os.close(file)
    return time.monotonic(), time.thread_time(), used.ru_stime, queued
