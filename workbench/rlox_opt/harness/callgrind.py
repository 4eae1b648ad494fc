"""Instructions and heap allocations of a benchmark's call, counted by callgrind.

They repeat to nearly the last digit, where times do not. They show neither what the caches do nor
what wider SIMD brings.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, Worker
from rlox_opt.system.scratch import scratch

_CALLS_S = 0.002  # so many calls are counted as take this long outside valgrind
_MOST_CALLS = 1000
# Calls under valgrind beside those that are counted, and how many times as long each takes at the
# least: 17 to 110 times were measured.
_MORE_CALLS, _SLOWER = 5, 20
_GRACE_S = 1.0  # for an answer, when the time is over
_REPEATABLE = ("RAYON_NUM_THREADS=1",)  # keeps libraries from starting threads
_UNDER = (
    *("setarch", "-R", "env", *_REPEATABLE),  # at addresses that are the same in each process
    *("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"),
)
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
_ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}
_CALLED = re.compile(r"^cfn=\((\d+)\)(?: (\S+))?")
_NAMED = re.compile(r"^c?fn=\((\d+)\) (\S+)")
_COUNT = re.compile(r"^calls=(\d+)")


class Counts(TypedDict):
    """Numbers of one call."""

    instructions: float
    allocations: float


def available() -> bool:
    """Whether valgrind is installed."""
    return all(shutil.which(tool) for tool in ("valgrind", "callgrind_control"))


def count_all(
    packages: Packages,
    jobs: Sequence[tuple[str, Mapping[str, float]]],
    hear: Callable[[str, str, Counts], None],
    until: float = math.inf,
    begins: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Count several sides, or parts of one side, at the same time: counts do not depend on what
    else runs. `begins` is called with each benchmark, `hear` with the side, the benchmark and its
    counts. Nothing is counted after `time.monotonic() = until`, or after a KeyboardInterrupt.
    Returns the benchmarks for which the time was too short."""
    late: list[str] = []
    processes = [_Process(until) for _ in jobs]

    def of(job: tuple[str, Mapping[str, float]], process: _Process) -> None:
        for name, counts in _count(packages, *job, process, begins, late):
            hear(job[0], name, counts)

    with ThreadPoolExecutor(len(jobs)) as pool:
        counting = [pool.submit(of, *job) for job in zip(jobs, processes, strict=True)]
        try:
            for one in counting:
                one.result()
        finally:
            for process in processes:
                process.stop()
    return [*dict.fromkeys(late)]


class _Process:
    """The process that counts at present, and until when. It is never killed while vgdb is attached
    to it, since it would not end then."""

    def __init__(self, until: float) -> None:
        self.until = until
        self._ask: Worker | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def left(self) -> float:
        """The seconds that are left; 0 after `stop`."""
        return 0.0 if self._stopped else max(0.0, self.until - time.monotonic())

    @contextmanager
    def of(self, ask: Worker) -> Iterator[None]:
        """Within the block this process counts."""
        ask.until = self.until + _GRACE_S
        with self._lock:
            self._ask = ask
        try:
            yield
        finally:
            with self._lock:
                self._ask = None

    def control(self, pid: int, pipes: str, *actions: str) -> None:
        """Have callgrind_control do this. Raises ContestError."""
        with self._lock:
            if self._stopped:
                raise ContestError("stopped")
            for action in actions:
                _control(pid, pipes, action)

    def stop(self) -> None:
        """End the process at once."""
        with self._lock:
            self._stopped = True
            if self._ask:
                self._ask.end()


def _count(
    packages: Packages,
    side: str,
    seconds: Mapping[str, float],
    process: _Process,
    begins: Callable[[str], None],
    late: list[str],
) -> Iterator[tuple[str, Counts]]:
    """The counts of each benchmark in `seconds`, which holds the seconds of a call, the shortest
    first. A benchmark that fails or takes too long under valgrind is left out; `late` gets those
    for which the time is too short."""
    left = sorted(seconds, key=lambda name: seconds[name], reverse=True)
    while left and process.left():
        with scratch() as folder, _without_spaces(folder) as named:
            out = folder / "out"
            pipes = f"--vgdb-prefix={named / 'pipe'}"  # a killed valgrind leaves these files behind
            under = [*_UNDER, pipes, f"--callgrind-out-file={out}"]
            # One seed, so that the environment variables are as long on both sides.
            with packages.alone(side, random.Random(0), under) as ask, process.of(ask):
                while left and process.left():
                    name = left.pop()
                    calls = max(1, min(_MOST_CALLS, round(_CALLS_S / seconds[name])))
                    if (calls + _MORE_CALLS) * _SLOWER * seconds[name] > process.left():
                        late.append(name)
                        continue
                    begins(name)
                    try:
                        there = packages.listed()[side].benchmarks[name]
                        if there.type == "timeraw" or packages.prepare(ask, side, name):
                            continue  # neither a process of its own nor its setup may be counted
                        ask("call", 2)
                        # After it was switched off and on, callgrind's counters hold garbage.
                        process.control(ask.pid, pipes, "--instr=on", "--zero")
                        dumps = []
                        for n in (1, 1 + calls):  # the difference is free of the commands' own cost
                            ask("call", n)
                            process.control(ask.pid, pipes, "--dump")
                            dumps.append(_newest(out))
                        process.control(ask.pid, pipes, "--instr=off")
                        one, more = map(_read, dumps)
                    except (ContestError, subprocess.TimeoutExpired, OSError, ValueError):
                        late += [] if process.left() else [name]
                        break
                    yield (
                        name,
                        Counts(
                            instructions=(more[0] - one[0]) / calls,
                            allocations=(more[1] - one[1]) / calls,
                        ),
                    )
    late += left


@contextmanager
def _without_spaces(folder: Path) -> Iterator[Path]:
    """The same folder by a path without spaces: callgrind_control splits paths at spaces."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{handle}")
    finally:
        os.close(handle)


def _control(pid: int, pipes: str, action: str) -> None:
    command = ["callgrind_control", pipes, action, str(pid)]
    # In a session of its own, where Ctrl-C in the terminal does not reach it.
    done = subprocess.run(command, capture_output=True, timeout=60, start_new_session=True)
    if done.returncode:
        raise ContestError(f"callgrind_control {action} failed")


def _newest(out: Path) -> Path:
    return max(out.parent.glob(f"{out.name}.*"), key=lambda path: int(path.suffix[1:]))


def _read(dump: Path) -> tuple[int, int]:
    """Instructions, and calls of the allocators, in a dump of callgrind.

    A dump writes each name once with a number, and only the number from then on.
    """
    text = dump.read_text(errors="replace")
    total = _TOTAL.search(text)
    names: dict[str, str] = {}
    called, allocations = "", 0
    for line in text.splitlines():
        if named := _NAMED.match(line):
            names[named[1]] = named[2].split("'")[0]
        if callee := _CALLED.match(line):
            called = names.get(callee[1], "")
        elif (counted := _COUNT.match(line)) and called in _ALLOCATORS:
            allocations += int(counted[1])
    return int(total[1]) if total else 0, allocations
