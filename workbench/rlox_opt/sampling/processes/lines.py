"""What a process recorded beside its samples, by the same clock: the line of Python that each
thread was at, and the part of torch's work that it was in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.layers import GRAD, UNKNOWN
from rlox_opt.sampling.phases import BACKWARD, NO_GRAD, OPTIMIZER
from rlox_opt.sampling.processes.format import Batch
from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.samples import Frame

FRAME = "frame"  # the kind of a name that is a line
# Farther from a look than this nothing is known; looks are rare during imports, whose deep stacks
# make them expensive.
_FAR_NS = 500_000_000
_COMPILERS = frozenset({"numba", "jax"})  # libraries that make code at run time
_SWITCH_NS = 5_000_000  # after which a thread is asked to release the interpreter's lock
_TURN_NS = 1_000_000  # within which a thread in the interpreter may have been at another line

Times = NDArray[np.int64]


class Beside:
    """What one process recorded of its threads."""

    def __init__(self, process: RecordedProcess) -> None:
        self.lines, self.parts = Lines(process).at, Parts(process).at
        self.made = made_by(process)


def made_by(process: RecordedProcess) -> str:
    """The owner of code that a process made at run time, where nothing else shows it."""
    loaded = process.loaded.get("versions", {})
    return UNKNOWN if _COMPILERS.isdisjoint(loaded) else "native"


class Lines:
    """The lines at which the threads of one process were seen."""

    def __init__(self, process: RecordedProcess) -> None:
        names = {key: name for key, name in process.names.items() if name.kind == FRAME}
        self._parents = {i: int(name.on) if name.on else -1 for (_, i), name in names.items()}
        self._frames: dict[int, Frame] = {}
        for (_, index), name in names.items():
            file, line, function = name.path.rsplit("\n", 2)
            self._frames[index] = Frame(function, file, int(line))
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._looks = {
            tid: looks[np.argsort(looks[:, 2], kind="stable")]
            for tid, looks in by_thread(process, process.looks()).items()
        }

    def at(self, tid: int, times_ns: Times, called: NDArray[np.bool_]) -> list[tuple[Frame, ...]]:
        """The stack of Python functions at each time, outermost first; empty where none was seen
        near it.

        A look may be asked for before one of the times and come after it, since a call of the
        thread kept the interpreter's lock until then. Such a look shows that very call, so it is
        what the thread was doing at that time.
        """
        looks = self._looks.get(tid)
        if looks is None or not len(looks):
            return [()] * len(times_ns)
        index, wanted, had = looks.T
        after = np.searchsorted(had, times_ns, side="left")
        before = np.maximum(after - 1, 0)
        after = np.minimum(after, len(looks) - 1)
        asked = np.minimum(wanted[after] + _SWITCH_NS, had[after])
        from_ns = np.where(called, asked, np.maximum(wanted[after], had[after] - _TURN_NS))
        to_after = np.maximum(0, from_ns - times_ns)
        to_after = np.where(had[after] < times_ns, times_ns - had[after], to_after)
        to_before = np.abs(times_ns - had[before])
        nearer = np.where(to_after <= to_before, after, before)
        near = np.minimum(to_after, to_before) <= _FAR_NS
        chosen = np.where(near, index[nearer], -1)
        return [self._stack(node) for node in chosen.tolist()]

    def _stack(self, node: int) -> tuple[Frame, ...]:
        if node not in self._frames:
            return ()
        known = self._stacks.get(node)
        if known is None:
            found, at = [], node
            while at in self._frames:
                found.append(self._frames[at])
                at = self._parents[at]
            known = self._stacks[node] = tuple(reversed(found))
        return known


class Parts:
    """When each part of torch's work was done in a process. A thread without parts of its own, such
    as one of OpenMP's, counts as working for the thread with most of them."""

    def __init__(self, process: RecordedProcess) -> None:
        names = {key: name.path for key, name in process.names.items() if name.kind == "part"}
        intervals: defaultdict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for batch in process.parts():
            tid = process.threads[batch.thread].native_id
            for index, begin, end in batch.data.tolist():
                if (name := names.get((batch.source, index))) is not None:
                    intervals[tid, name].append((begin, end))
        self._edges = {key: _merged(spans) for key, spans in intervals.items()}
        self._trains = any(name == BACKWARD for _, name in intervals)
        counts = {tid: sum(map(len, (intervals[k] for k in intervals if k[0] == tid)))
                  for tid, _ in intervals}  # fmt: skip
        self._busiest = max(counts, key=counts.__getitem__, default=0)
        self._tids = set(counts)

    def at(self, tid: int, times_ns: Times) -> list[str]:
        """The part at each time: `GRAD` where gradients are recorded by a process that uses them,
        "" where nothing is known."""
        whose = tid if tid in self._tids else self._busiest
        told = np.full(len(times_ns), GRAD if self._trains else "", dtype=object)
        for part in (NO_GRAD, OPTIMIZER, BACKWARD):  # the later ones say more
            edges = self._edges.get((whose, part))
            if edges is not None:
                told[np.searchsorted(edges, times_ns, side="right") % 2 == 1] = part
        found: list[str] = told.tolist()
        return found


def by_thread(process: RecordedProcess, batches: Iterable[Batch]) -> dict[int, Times]:
    """int64 arrays of shape (n, 3), by the thread's native id."""
    found: defaultdict[int, list[Times]] = defaultdict(list)
    for batch in batches:
        found[process.threads[batch.thread].native_id].append(batch.data)
    return {tid: np.concatenate(data) for tid, data in found.items()}


def _merged(spans: Sequence[tuple[int, int]]) -> Times:
    """The edges of the union of the intervals: begin, end, begin, end, …"""
    edges: list[int] = []
    for begin, end in sorted(spans):
        if edges and begin <= edges[-1]:
            edges[-1] = max(edges[-1], end)
        else:
            edges += (begin, end)
    return np.array(edges, np.int64)
