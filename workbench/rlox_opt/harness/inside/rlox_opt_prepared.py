"""A benchmark that is set up on one side, and what its calls take. The standard library alone, as
`rlox_opt_side` says."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rlox_opt_reached import reached
from rlox_opt_suite import Benchmark, told

# A benchmark changes what its setup made where its first call after it takes this much longer than
# its second, or less.
_CHANGED, _CHANGED_S = 1.5, 20e-6
_TRIALS, _TRIALS_S = 5, 0.5
_RAW = """import json, os, sys, timeit
answer = os.dup(1)
os.dup2(2, 1)
of = json.load(sys.stdin)
os.write(answer, repr(timeit.timeit(of["stmt"], of["setup"], number=of["number"])).encode())
"""
_OWN = os.getpid()
_now_ns = time.monotonic_ns  # a benchmark may put another clock in its place


class Skipped(Exception):
    """What a benchmark raises that is not to be run."""


class Prepared:
    """A benchmark that is set up on a side. `alone` tells how many of its calls one setup bears; 0
    is any number."""

    def __init__(
        self, side: AbstractContextManager[None], benchmark: Benchmark, alone: int | None
    ) -> None:
        self._side = side
        self._benchmark = benchmark
        with side:
            try:
                benchmark.set_up()
                self.call = functools.partial(benchmark.func, *benchmark.arguments())
                first = timed(self.call, 1)  # which also checks its results
                end_what_came_back()
            except NotImplementedError as error:  # as asv has it
                raise Skipped(told(error)) from None
            if benchmark.type == "timeraw":
                self.alone = 0
                self._raw(1)
                return
            self.alone = self._borne(first) if alone is None else alone
            self._warm_up()

    def time(self, calls: int, warm: int = 0) -> tuple[float, float]:
        """Seconds that `calls` calls take together, after `warm` others; and with their setups."""
        with self._side:
            start = time.perf_counter()
            if self._benchmark.type == "timeraw":
                seconds = self._raw(calls)
            elif not self.alone:
                if warm:
                    timed(self.call, warm)
                seconds = timed(self.call, calls, self._benchmark.timer)
            else:
                seconds = 0.0
                for done in range(0, calls, self.alone):
                    self._set_up_again()
                    few = min(self.alone, calls - done)
                    seconds += timed(self.call, few, self._benchmark.timer)
            end_what_came_back()
            return seconds, time.perf_counter() - start

    def value(self) -> float:
        """What it tells: a number, bytes of what it returns, or the most memory the process had."""
        kind = self._benchmark.type
        with self._side:
            returned = self.call()
            if kind == "peakmemory":
                return peak_memory()
            return size(returned) if kind == "memory" else float(returned)

    def reached(self, folder: str) -> list[tuple[str, int]]:
        """The functions in a folder that a call after a new setup enters."""
        with self._side:
            self._set_up_again()
            places: list[tuple[str, int]] = reached(self.call, folder)
            return places

    def tear_down(self) -> None:
        """Call its teardown, and let go of it."""
        with self._side:
            self._benchmark.tear_down()
            self._benchmark.forget()

    def _set_up_again(self) -> None:
        self._benchmark.tear_down()
        self._benchmark.set_up()

    def _borne(self, took: float) -> int:
        """How many calls a setup bears: as many as the suite says, or one where the second takes
        another time than the first, which `took` so long."""
        if self._benchmark.number or not self._benchmark.setups:
            return int(self._benchmark.number)
        first, second = [took], [self._again()]
        end = time.perf_counter() + _TRIALS_S
        while len(first) < _TRIALS and took < _TRIALS_S and time.perf_counter() < end:
            self._set_up_again()
            first.append(timed(self.call, 1))
            second.append(self._again())
        self._set_up_again()
        few, many = sorted((min(first), min(second)))
        return int(many > few * _CHANGED + _CHANGED_S)

    def _again(self) -> float:
        """Seconds of another call after the same setup; endless where the last one has left it
        nothing to do it with."""
        try:
            return timed(self.call, 1)
        except Exception:
            return math.inf

    def _warm_up(self) -> None:
        """As long as the suite asks for."""
        end = time.perf_counter() + self._benchmark.warmup_s
        while time.perf_counter() < end:
            if self.alone:
                self._set_up_again()
            self.call()

    def _raw(self, calls: int) -> float:
        """Seconds of statements, each time in an interpreter of its own."""
        said = self.call()
        stmt, setup = said if isinstance(said, tuple) else (said, "")
        number = self._benchmark.number or 1
        program = json.dumps({"stmt": stmt, "setup": setup, "number": number})
        path = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        env = {**os.environ, "PYTHONPATH": path, **self._benchmark.env}
        seconds = 0.0
        for _ in range(calls):
            done = subprocess.run(
                [sys.executable, "-c", _RAW], input=program, env=env, text=True, capture_output=True
            )
            if done.returncode:
                last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
                raise RuntimeError(f"its statement fails: {last[0]}")
            seconds += float(done.stdout) / number
        return seconds


def timed(call: Callable[[], object], calls: int, timer: Any = time.perf_counter) -> float:
    """Seconds that `calls` calls take together. Who looks on from outside knows by this function
    which stacks are of calls, and not of what is done between them."""
    was = gc.isenabled()
    gc.disable()
    began = _now_ns()
    start = timer()
    for _ in itertools.repeat(None, calls):
        call()
    seconds = timer() - start
    if _spans is not None:
        _spans.append((began, _now_ns()))
    if was:
        gc.enable()
    return float(seconds)


_spans: list[tuple[int, int]] | None = None


@contextmanager
def spans() -> Iterator[list[tuple[int, int]]]:
    """The beginnings and ends, by the monotonic clock in ns, of all that is `timed` meanwhile."""
    global _spans
    found: list[tuple[int, int]] = []
    _spans = found
    try:
        yield found
    finally:
        _spans = None


def end_what_came_back() -> None:
    """End a process that a benchmark has forked, and that returned as if it were the one that was
    called."""
    if os.getpid() != _OWN:
        os._exit(0)


def peak_memory() -> int:
    """The most memory that this process has held at once, in bytes.

    Not what getrusage says: Linux starts that from the peak of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def size(of: object) -> float:
    """Bytes of an object and of what it alone holds, as asv counts them."""
    from pympler.asizeof import asizeof

    return float(asizeof([of, copy.copy(of)]) - asizeof([of, of]))  # type: ignore[no-untyped-call]
