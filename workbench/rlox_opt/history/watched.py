"""The samples of one benchmark's calls, without samples of what is done between calls."""

from __future__ import annotations

import signal
import subprocess
import time
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from rlox_opt.harness.restarts import Worker
from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.system.process import end
from rlox_opt.system.scratch import scratch

PYTHON = "python"  # py-spy for Python functions only, which hardly slows the program
PYTHON_RATE = 200  # Hz; py-spy can keep this rate without native stacks
_OF_A_COMMAND = 500  # Hz, since commands are short
_BURST_S = 0.1  # of calls, after which the process is asked for more
_ATTACHED_S = 0.5  # the time within which perf has begun to sample
_WRITTEN_S = 60.0  # the time within which perf has written its samples
# The file and the function that calls a benchmark, and what it calls besides, to begin and to end
# its block without garbage collection.
_CALLS = "rlox_opt_prepared.py", ("timed",)
_AROUND = "contextlib.py", ("helper", "__enter__", "__exit__")


def unavailable(sampler: str) -> str | None:
    """Why a sampler cannot be used here, with the remedy; None: it can."""
    return perf.unavailable() if sampler == "perf" else pyspy.unavailable()


def window(ask: Worker, sampler: str, classifier: Classifier, seconds: float) -> Samples:
    """Sample the calls of the side prepared last, in the calling thread, for so many seconds.

    Raises:
        ContestError: a call fails.
        ValueError: the sampler left no samples.
    """
    start, calls = time.monotonic(), 1
    while time.monotonic() - start < _BURST_S:  # which also warms the process up
        start, calls = time.monotonic(), 2 * calls
        ask("call", calls)
    spans: list[Sequence[int]] = []
    with scratch() as folder:
        watching = _attached(ask.pid, sampler, folder, seconds)
        try:
            while watching.poll() is None:
                spans += ask("call", calls)
        finally:
            end(watching)
        if sampler == "perf":
            return _within(spans, perf.load(folder, classifier))
        rate = PYTHON_RATE if sampler == PYTHON else pyspy.RATE
        return called(pyspy.load(folder, classifier, rate=rate))


def _attached(pid: int, sampler: str, folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    if sampler == "perf":
        return perf.attach(pid, seconds, folder)
    if sampler == PYTHON:
        return pyspy.attach(pid, seconds, folder, PYTHON_RATE, native=False)
    return pyspy.attach(pid, seconds, folder)


def of_processes(ask: Worker, sampler: str, classifier: Classifier, seconds: float) -> Samples:
    """Sample whole runs of the prepared command, in the main threads of all processes that it
    starts: for so many seconds, and one run, at the least. Raises as `window` does."""
    run = _runs_by_perf if sampler == "perf" else _runs_by_pyspy
    return run(ask, classifier, seconds)


def _runs_by_perf(ask: Worker, classifier: Classifier, seconds: float) -> Samples:
    with scratch() as folder:
        watching = perf.record(ask.pid, folder, perf.RATE, [])
        try:
            time.sleep(_ATTACHED_S)
            _run(ask, seconds)
            watching.send_signal(signal.SIGINT)
            watching.wait(_WRITTEN_S)
        finally:
            end(watching)
        if not (folder / perf.DATA).exists():
            perf.load(folder, classifier)  # raises an error with the reason
        with perf.script(folder / perf.DATA) as lines:
            events, errors = perf.collect(lines, perf.RATE)
    seen = Samples("perf", period_s=1 / perf.RATE, errors=errors)
    for pid, of in events.items():
        if pid != ask.pid:
            found = perf.place(of, pid, classifier, SpanLog(), perf.RATE)
            seen.samples += [each for each in found.samples if each.thread == MAIN_THREAD]
    return seen


def _runs_by_pyspy(ask: Worker, classifier: Classifier, seconds: float) -> Samples:
    seen = Samples("py-spy", period_s=1 / _OF_A_COMMAND)
    with scratch() as folder:
        ask("under", pyspy.launching(folder, _OF_A_COMMAND))
        try:
            until = time.monotonic() + seconds
            while not seen.samples or time.monotonic() < until:
                ask("call", 1)
                found = pyspy.load(folder, classifier, rate=_OF_A_COMMAND)
                seen.samples += [each for each in found.samples if _is_main(each)]
                (folder / pyspy.RAW).unlink()
        finally:
            ask("under", [])
    return seen


def _is_main(sample: Sample) -> bool:
    """Whether a stack is a main thread's; py-spy's names of threads do not show that reliably."""
    return not sample.frames or not sample.frames[0].name.endswith("_bootstrap")


def _run(ask: Worker, seconds: float) -> None:
    until = time.monotonic() + seconds
    ask("call", 1)
    while time.monotonic() < until:
        ask("call", 1)


def _within(spans: Sequence[Sequence[int]], seen: Samples) -> Samples:
    """The samples from times at which calls ran, by the same clock."""
    begins = [begin for begin, _ in spans]

    def calls(time_ns: int | None) -> bool:
        at = bisect_right(begins, time_ns or 0) - 1
        return at >= 0 and (time_ns or 0) <= spans[at][1]

    own = [s for s in seen.samples if s.thread == MAIN_THREAD and calls(s.time_ns)]
    return replace(seen, samples=own)


def called(seen: Samples) -> Samples:
    """The samples in calls, by their Python stacks, without the frames around calls."""
    inside = []
    for sample in seen.samples:
        for at in range(len(sample.frames) - 1, -1, -1):
            if _is(sample.frames[at], _CALLS):
                frames = sample.frames[at + 1 :]
                if not (frames and _is(frames[0], _AROUND)):
                    inside.append(sample._replace(frames=frames))
                break
    return replace(seen, samples=inside)


def _is(frame: Frame, of: tuple[str, Collection[str]]) -> bool:
    return frame.module.endswith(of[0]) and frame.name in of[1]
