"""A benchmark that is set up on one side, and the times of its calls. This file needs the standard
library alone, as `rlox_opt_side` does."""

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
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rlox_opt_reached import reached
from rlox_opt_suite import Benchmark, told

# A benchmark changes what its setup made if the first call after a setup and the second call differ
# by this factor and by this many seconds more.
_CHANGED, _CHANGED_S = 1.5, 20e-6
_TRIALS, _TRIALS_S = 5, 0.5
_RAW = """import json, os, sys, timeit
answer = os.dup(1)
os.dup2(2, 1)
of = json.load(sys.stdin)
os.write(answer, repr(timeit.timeit(of["stmt"], of["setup"], number=of["number"])).encode())
"""
_OWN = os.getpid()
_times, _process_time = os.times, time.process_time
_now_ns = time.monotonic_ns  # kept here, since a benchmark may replace time's clock


class Skipped(Exception):
    """A benchmark asks to be skipped."""


@contextmanager
def _skipping() -> Iterator[None]:
    """Raises Skipped where a benchmark raises NotImplementedError, which is asv's way to skip."""
    try:
        yield
    except NotImplementedError as error:
        raise Skipped(told(error)) from None


class Prepared:
    """A benchmark that is set up on a side. `alone` is the number of calls that may follow one
    setup; 0 is any number."""

    def __init__(
        self, side: AbstractContextManager[None], benchmark: Benchmark, alone: int | None
    ) -> None:
        self._side = side
        self._benchmark = benchmark
        self.alone = 0
        with side:
            with _skipping():
                benchmark.set_up()
                self.call = functools.partial(benchmark.func, *benchmark.arguments())
                if benchmark.type not in ("time", "timeraw"):
                    return  # `value` calls it, once, as asv does
                first = timed(self.call, 1)  # shows as well whether the call fails
                end_what_came_back()
            if benchmark.type == "timeraw":
                self._raw(1)
                return
            self.alone = self._borne(first) if alone is None else alone
            self._warm_up()

    def time(self, calls: int, warm: int = 0) -> tuple[float, float]:
        """Seconds of the calls together, after `warm` untimed ones; and the same with setups."""
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
        """Its value: the number it returns, the bytes of what it returns, or the peak memory."""
        kind = self._benchmark.type
        with self._side, _skipping():
            returned = self.call()
            if kind == "peakmemory":
                return peak_memory()
            return size(returned) if kind == "memory" else float(returned)

    def reached(self, folder: str) -> list[tuple[str, int]]:
        """The functions of a folder that a call enters after a new setup."""
        with self._side:
            self._set_up_again()
            places: list[tuple[str, int]] = reached(self.call, folder)
            return places

    def tear_down(self) -> None:
        """Call the benchmark's teardown, and release what its setup made."""
        with self._side:
            self._benchmark.tear_down()
            self._benchmark.forget()

    def _set_up_again(self) -> None:
        self._benchmark.tear_down()
        self._benchmark.set_up()

    def _borne(self, took: float) -> int:
        """How many calls may follow one setup: the suite's `number`, or 1 where the second call
        takes another time than the first. The first call took `took` seconds; 0 is any number."""
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
        """Seconds of another call after the same setup; infinite if it fails, since the call before
        may have used up what the setup made."""
        try:
            return timed(self.call, 1)
        except Exception:
            return math.inf

    def _warm_up(self) -> None:
        """Call the benchmark for as long as the suite asks for."""
        end = time.perf_counter() + self._benchmark.warmup_s
        while time.perf_counter() < end:
            if self.alone:
                self._set_up_again()
            self.call()

    def _raw(self, calls: int) -> float:
        """Seconds of a timeraw statement, each time in a new interpreter."""
        said = self.call()
        stmt, setup = map(textwrap.dedent, said if isinstance(said, tuple) else (said, ""))
        number = self._benchmark.number or 1
        program = json.dumps({"stmt": stmt, "setup": setup, "number": number})
        env = {**os.environ, **self._benchmark.env}
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


def busy_s() -> float:
    """Processor seconds so far, of all threads and of the child processes that have ended."""
    *_, user, system, _ = _times()
    return _process_time() + user + system


def timed(call: Callable[[], object], calls: int, timer: Any = time.perf_counter) -> float:
    """Seconds that the calls take together. Samplers recognise calls by this function in the stack,
    and leave out what is done between calls."""
    with without_gc():
        began = _now_ns()
        start = timer()
        for _ in itertools.repeat(None, calls):
            call()
        seconds = timer() - start
        if _spans is not None:
            _spans.append((began, _now_ns()))
    return float(seconds)


@contextmanager
def without_gc() -> Iterator[None]:
    """In this block Python collects no garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_spans: list[tuple[int, int]] | None = None


@contextmanager
def spans() -> Iterator[list[tuple[int, int]]]:
    """The beginning and end of each `timed` stretch, in nanoseconds of the monotonic clock."""
    global _spans
    found: list[tuple[int, int]] = []
    _spans = found
    try:
        yield found
    finally:
        _spans = None


def end_what_came_back() -> None:
    """End this process if it is a child that a benchmark has forked and that returned here."""
    if os.getpid() != _OWN:
        os._exit(0)


def peak_memory() -> int:
    """The most memory that this process has held at once, in bytes.

    Not getrusage's, which on Linux begins at the peak of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def size(of: object) -> float:
    """Bytes of an object without what it shares with its copies, as asv counts them."""
    from pympler.asizeof import asizeof

    return float(asizeof([of, copy.copy(of)]) - asizeof([of, of]))  # type: ignore[no-untyped-call]
