"""What a watch (`watcher`) shows of a thread: for how long it ran, and in which state it was when
it did not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.processes.format import lines
from rlox_opt.sampling.processes.run import segments
from rlox_opt.sampling.processes.watcher import STATES, WATCH

_FEW = 5  # with fewer looks at a thread, nothing is said about it


@dataclass
class Seen:
    """The looks at one thread: their times, the nanoseconds that it had run and had been kept from
    running, its state as an index into `STATES`, and the nanoseconds that it had run in the kernel,
    which are counted in ticks."""

    at: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    kernel: list[int] = field(default_factory=list)

    def spent(self, what: Sequence[int], begin_ns: int, end_ns: int) -> float:
        """Seconds of `ran` or `kept` between two times. If only a part of the stretch was watched,
        the figure is scaled up to all of it."""
        first, last = max(begin_ns, self.at[0]), min(end_ns, self.at[-1])
        if last <= first:
            return 0.0
        low, high = np.interp([first, last], self.at, what)
        return float(high - low) * 1e-9 * (end_ns - begin_ns) / (last - first)

    def within(self, what: Sequence[int], begin_ns: int, end_ns: int) -> float:
        """The same, but only from looks between the two times, scaled up to the whole stretch; 0
        with fewer than two. Between a look outside and one inside, it is not known on which side
        the thread ran."""
        first, last = bisect_left(self.at, begin_ns), bisect_right(self.at, end_ns) - 1
        if last <= first:
            return 0.0
        rate = (what[last] - what[first]) / (self.at[last] - self.at[first])
        return rate * (end_ns - begin_ns) * 1e-9

    def states(
        self, without: Sequence[tuple[int, int]], begin_ns: int, end_ns: int
    ) -> Counter[str]:
        """How often it was seen in each state between two times, outside some intervals that are
        in order."""
        at = np.array(self.at, np.int64)
        counted = (at >= begin_ns) & (at <= end_ns) & ~within(without, at)
        return Counter(STATES[state] for state in np.array(self.state)[counted])


def within(intervals: Sequence[tuple[int, int]], times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which times lie in one of the intervals. These are in order and do not overlap."""
    edges = np.array(intervals, np.int64).ravel()
    inside: NDArray[np.bool_] = np.searchsorted(edges, times, side="right") % 2 == 1
    return inside


class Watch:
    """All threads that were watched, by process and thread id."""

    def __init__(self, seen: dict[tuple[int, int], Seen]) -> None:
        self._seen = seen

    @classmethod
    def load(cls, folder: Path) -> Watch:
        """The watch of a run; an empty one if there is none. An unfinished last line is left
        out."""
        seen: dict[tuple[int, int], Seen] = {}
        for path in segments(folder, WATCH):
            for _, (at, tasks) in lines(path):
                for pid, tid, ran, kept, state, kernel in tasks:
                    thread = seen.setdefault((pid, tid), Seen())
                    thread.at.append(at)
                    thread.ran.append(ran)
                    thread.kept.append(kept)
                    thread.state.append(state)
                    thread.kernel.append(kernel)
        return cls(seen)

    def of(self, pid: int, tid: int) -> Seen | None:
        """The looks at a thread; None if they are too few."""
        seen = self._seen.get((pid, tid))
        return seen if seen is not None and len(seen.at) >= _FEW else None

    def cpu_s(self, begin_ns: int, end_ns: int) -> float | None:
        """Seconds for which all threads together ran between two times; None if there were no looks
        then."""
        ran_s = [
            seen.spent(seen.ran, max(begin_ns, seen.at[0]), min(end_ns, seen.at[-1]))
            for seen in self._seen.values()
            if seen.at[0] < end_ns and seen.at[-1] > begin_ns
        ]
        return sum(ran_s) if ran_s else None
