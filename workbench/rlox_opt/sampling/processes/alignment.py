"""Puts the clocks of all processes on the clock of the run, and says how wrong that may be.

On one machine all processes have the same monotonic clock, unless a container has a time namespace,
which gives it another. Known time namespaces decide the question. Where they are unknown, the real
clock does, which every process reads together with the monotonic one: if the offsets between the
two agree, times can be compared as they are; if not, they are shifted by the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlox_opt.sampling.processes.format import Clock
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun

_SAME_NS = 1_000_000  # a smaller difference comes from correcting the real clock, or a late reading


class Alignment(NamedTuple):
    """`shift_ns` is to be added to a process's times, which may be wrong by `error_ns` afterwards.

    `seen_ns` is the observed difference of the two clocks. If it is small, or both have the same
    time namespace, they are one clock, and the difference is not counted as an error.
    """

    shift_ns: int
    error_ns: float
    seen_ns: float


def align(run: RecordedRun, process: RecordedProcess) -> Alignment:
    """How to put a process's times on the run's clock."""
    of_run = [run.clock] if run.about.end is None else [run.clock, run.about.end]
    if not process.clocks:
        return Alignment(0, 0.0, 0.0)
    apart = np.array([_offset(of_run, clock) - clock.offset_ns for clock in process.clocks])
    seen = float(np.median(apart))
    namespace = process.header.time_namespace
    if namespace is not None and namespace == run.about.time_namespace:
        # One clock. If the readings differ all the same, somebody set the real clock meanwhile.
        return Alignment(0, 0.0, seen)
    reading = max(clock.error_ns for clock in (*of_run, *process.clocks))
    # The real clock may be corrected between readings, which makes the differences vary.
    error = 2 * reading + float(np.ptp(apart)) / 2
    if abs(seen) < _SAME_NS:
        return Alignment(0, 0.0, seen)
    return Alignment(-round(seen), error, seen)


def _offset(of_run: Sequence[Clock], at: Clock) -> int:
    """The run's offset when the real clock showed `at`, interpolated between the run's readings."""
    first = of_run[0]  # subtracted, since a double cannot hold nanoseconds since 1970 exactly
    real = [clock.real_ns - first.real_ns for clock in of_run]
    drift = [clock.offset_ns - first.offset_ns for clock in of_run]
    return first.offset_ns + round(float(np.interp(at.real_ns - first.real_ns, real, drift)))
