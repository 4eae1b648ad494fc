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
from rlox_opt.harness.restarts import ContestError
from rlox_opt.system.scratch import scratch

_CALLS_S = 0.002  # so many calls are counted as take this long outside valgrind
_MOST_CALLS = 1000
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
) -> None:
    """Count several sides, or parts of one side, at the same time: counts do not depend on what
    else runs. `hear` is called with the side, the benchmark and its counts. Benchmarks that have
    not begun by `time.monotonic() = until`, or before a KeyboardInterrupt, are left out."""
    stopped = threading.Event()

    def is_over() -> bool:
        return stopped.is_set() or time.monotonic() >= until

    def of(job: tuple[str, Mapping[str, float]]) -> None:
        for name, counts in _count(packages, *job, is_over):
            hear(job[0], name, counts)

    with ThreadPoolExecutor(len(jobs)) as pool:
        counting = [pool.submit(of, job) for job in jobs]
        try:
            for one in counting:
                one.result()
        finally:
            # A count that has begun runs to its end: valgrind that is killed while vgdb is attached
            # to it would never end.
            stopped.set()


def _count(
    packages: Packages,
    side: str,
    seconds: Mapping[str, float],
    is_over: Callable[[], bool],
) -> Iterator[tuple[str, Counts]]:
    """The counts of each benchmark in `seconds`, which holds the seconds of a call. A benchmark
    that fails or takes too long under valgrind is left out."""
    left = list(seconds)
    while left and not is_over():
        with scratch() as folder, _without_spaces(folder) as named:
            out = folder / "out"
            pipes = f"--vgdb-prefix={named / 'pipe'}"  # a killed valgrind leaves these files behind
            under = [*_UNDER, pipes, f"--callgrind-out-file={out}"]
            # One seed, so that the environment variables are as long on both sides.
            with packages.alone(side, random.Random(0), under) as ask:
                while left and not is_over():
                    name = left.pop()
                    calls = max(1, min(_MOST_CALLS, round(_CALLS_S / seconds[name])))
                    try:
                        there = packages.listed()[side].benchmarks[name]
                        if there.type == "timeraw" or packages.prepare(ask, side, name):
                            continue  # neither a process of its own nor its setup may be counted
                        ask("call", 2)
                        _control(ask.pid, pipes, "--instr=on")
                        # After it was switched off and on, callgrind's counters hold garbage.
                        _control(ask.pid, pipes, "--zero")
                        dumps = []
                        for n in (1, 1 + calls):  # the difference is free of the commands' own cost
                            ask("call", n)
                            _control(ask.pid, pipes, "--dump")
                            dumps.append(_newest(out))
                        _control(ask.pid, pipes, "--instr=off")
                        one, more = map(_read, dumps)
                    except (ContestError, subprocess.TimeoutExpired, OSError, ValueError):
                        break
                    yield (
                        name,
                        Counts(
                            instructions=(more[0] - one[0]) / calls,
                            allocations=(more[1] - one[1]) / calls,
                        ),
                    )


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
    done = subprocess.run(command, capture_output=True, timeout=60)
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
