"""Lays the clocks of all processes on the one of the run, and says how wrong that may be.

On one machine the monotonic clock is one and the same for all processes, unless a container gives
some another, which is a time namespace. Where those are known, they tell. Elsewhere the real clock
does, which all read beside the monotonic one: where the readings agree, the times are comparable as
they are, and where not, they are shifted by the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlox_opt.sampling.processes.format import Clock
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun

_SAME_NS = 1_000_000  # less than that, the real clock was corrected, or read late


class Alignment(NamedTuple):
    """`shift_ns` is added to a process's times; `error_ns` is how far off they may be then.

    `seen_ns` is by how much the two clocks seemed to differ; where that is little, or both
    are of one time namespace, they are the same one, and what remains is no error.
    """

    shift_ns: int
    error_ns: float
    seen_ns: float


def align(run: RecordedRun, process: RecordedProcess) -> Alignment:
    """How to lay a process's times on the run's clock."""
    of_run = [run.clock] if run.about.end is None else [run.clock, run.about.end]
    if not process.clocks:
        return Alignment(0, 0.0, 0.0)
    apart = np.array([_offset(of_run, clock) - clock.offset_ns for clock in process.clocks])
    seen = float(np.median(apart))
    namespace = process.header.time_namespace
    if namespace is not None and namespace == run.about.time_namespace:
        # One clock: if the readings differ all the same, the real clock was set meanwhile.
        return Alignment(0, 0.0, seen)
    reading = max(clock.error_ns for clock in (*of_run, *process.clocks))
    # The real clock may be corrected while they are read: that is what the differences vary by.
    error = 2 * reading + float(np.ptp(apart)) / 2
    if abs(seen) < _SAME_NS:
        return Alignment(0, 0.0, seen)
    return Alignment(-round(seen), error, seen)


def _offset(of_run: Sequence[Clock], at: Clock) -> int:
    """The run's own offset when the real clock showed `at`, between its first and last reading."""
    first = of_run[0]  # differences from it: a double does not hold nanoseconds since 1970
    real = [clock.real_ns - first.real_ns for clock in of_run]
    drift = [clock.offset_ns - first.offset_ns for clock in of_run]
    return first.offset_ns + round(float(np.interp(at.real_ns - first.real_ns, real, drift)))
