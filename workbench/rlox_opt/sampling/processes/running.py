"""For how much of each phase a thread ran, computed from looks that are coarser than the phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.processes.programs import phases
from rlox_opt.sampling.processes.tracks import Track
from rlox_opt.sampling.processes.watch import Seen, within
from rlox_opt.sampling.samples import OUTSIDE

_LEAST = 20  # windows
_LOOKS = 5  # in a window at most: a phase that lies across its edge is divided between two windows
_PRIOR = 0.02  # weight of the mean of all phases, as a share of the number of windows


def shares(track: Track, seen: Seen, waits: Sequence[tuple[int, int]]) -> dict[str, float]:
    """The share of each phase, outside `waits`, in which the thread ran; empty with too few looks.

    The time that the thread ran in a window is fitted by least squares, drawn a little towards the
    mean of all phases. Each phase adds a share of its time in the window, and a fixed time for each
    of its pieces. The fixed time is there because a piece in which the thread was kept from running
    is longer without more running. A piece ends where an inner phase or a wait begins.
    """
    at = np.array(seen.at, np.int64)
    inside = (at >= track.begin_ns) & (at <= track.end_ns)
    at, ran = at[inside], np.array(seen.ran, np.float64)[inside]
    if len(at) <= _LEAST:
        return {}
    every = min(_LOOKS, (len(at) - 1) // _LEAST)
    at, took = at[::every], np.diff(ran[::every])
    paths, spent, pieces = _spent(track, waits, at)
    total = spent.sum()
    if total <= 0:
        return {}
    # A thread may also run while it waits, which belongs to no phase.
    mean = min(1.0, float(took[spent.any(axis=1)].sum() / total))
    scale = np.sqrt(_PRIOR * len(took)) * np.tile(spent.mean(axis=0), 2)
    left = np.vstack([np.hstack([spent, pieces]), np.diag(scale)])
    right = np.concatenate([took, scale * mean / 2])
    ran_of = _least_squares(left, right).reshape(2, -1).sum(axis=0).clip(0.0, 1.0)
    known = np.flatnonzero(spent.sum(axis=0) > 0).tolist()
    return {paths[index]: float(ran_of[index]) for index in known}


def _least_squares(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x between 0 and 1 for which `left` x is nearest to `right`. Values outside are set to the
    bound, and the others are computed again."""
    x, free = np.zeros(left.shape[1]), np.ones(left.shape[1], bool)
    while free.any():
        rest = right - left[:, ~free] @ x[~free]
        x[free] = np.linalg.lstsq(left[:, free], rest, rcond=None)[0]
        inside = (x >= 0) & (x <= 1)
        if inside.all():
            break
        free &= inside
        x = x.clip(0.0, 1.0)
    return x


def _spent(
    track: Track, waits: Sequence[tuple[int, int]], at: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Nanoseconds in each phase in each window between the times `at`, and what they would be if
    all pieces of a phase had the same length; each of shape (windows, paths)."""
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
    waiting = within(waits, times[:-1])
    length = np.where(waiting, 0, np.diff(times))
    spent: list[NDArray[np.float64]] = []
    pieces: list[NDArray[np.float64]] = []
    for index in range(len(paths)):
        own = (piece == index) & ~waiting
        mean = length[own].mean() if own.any() else 0.0
        for columns, of in ((spent, length), (pieces, mean)):
            sums = np.concatenate([[0], np.cumsum(np.where(own, of, 0))])
            columns.append(np.diff(np.interp(at, times, sums)))
    return paths, np.stack(spent, axis=1), np.stack(pieces, axis=1)
