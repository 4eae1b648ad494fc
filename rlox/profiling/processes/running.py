"""For how much of each phase a thread ran, from looks at it that are coarser than the phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlox.profiling.processes.programs import phases
from rlox.profiling.processes.tracks import Track
from rlox.profiling.processes.watch import Seen
from rlox.profiling.samples import OUTSIDE

_LEAST_LOOKS = 20
_PRIOR = 0.05  # weight of the mean of all phases, as a share of the looks


def shares(track: Track, seen: Seen, waits: Sequence[tuple[int, int]]) -> dict[str, float]:
    """The share of each phase, outside `waits`, for which the thread ran; none with too few looks.

    Between two looks it ran for the sum over phases of what it spent in each times the share
    sought: least squares, drawn a little towards the mean of all, and cut to 0 to 1.
    """
    at = np.array(seen.at, np.int64)
    inside = (at >= track.begin_ns) & (at <= track.end_ns)
    at, ran = at[inside], np.array(seen.ran, np.float64)[inside]
    if len(at) < _LEAST_LOOKS:
        return {}
    paths, spent = _spent(track, waits, at)
    took = np.diff(ran)
    total = spent.sum()
    if total <= 0:
        return {}
    # Who waits may run as well, but that is no phase's.
    mean = min(1.0, float(took[spent.any(axis=1)].sum() / total))
    scale = np.sqrt(_PRIOR * len(took)) * spent.mean(axis=0)
    left = np.vstack([spent, np.diag(scale)])
    right = np.concatenate([took, scale * mean])
    found = np.clip(np.linalg.lstsq(left, right, rcond=None)[0], 0.0, 1.0)
    return dict(zip(paths, found.tolist(), strict=True))


def _spent(
    track: Track, waits: Sequence[tuple[int, int]], at: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64]]:
    """Nanoseconds in each phase between two looks: `[looks - 1, paths]`."""
    edges = {track.begin_ns, track.end_ns}
    changes = phases(track.blocks)
    edges |= {when for when, _ in changes} | {edge for wait in waits for edge in wait}
    times = np.array(sorted(edges), np.int64)
    when = np.array([when for when, _ in changes], np.int64)
    names = [OUTSIDE, *(path for _, path in changes)]
    paths = list(dict.fromkeys(names))
    known = {path: index for index, path in enumerate(paths)}
    number = np.array([known[name] for name in names])
    # The phase of each piece between two edges, and whether it lies in a wait.
    piece = number[np.searchsorted(when, times[:-1], side="right")]
    begins, ends = (np.array([wait[side] for wait in waits], np.int64) for side in (0, 1))
    before = np.searchsorted(begins, times[:-1], side="right") - 1
    waiting = np.zeros(len(piece), bool)
    if len(waits):
        waiting = (before >= 0) & (ends[before] > times[:-1])
    length = np.where(waiting, 0, np.diff(times))
    columns = []
    for index in range(len(paths)):
        sums = np.concatenate([[0], np.cumsum(np.where(piece == index, length, 0))])
        columns.append(np.diff(np.interp(at, times, sums)))
    return paths, np.stack(columns, axis=1)
