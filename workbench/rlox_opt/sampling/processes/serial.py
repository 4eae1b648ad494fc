"""What it costs to use several processes: the same training in one process, for comparison."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rlox_opt.sampling.processes.analysis import goals
from rlox_opt.sampling.processes.run import RecordedRun
from rlox_opt.sampling.processes.states import divide
from rlox_opt.sampling.processes.tracks import Track, tracks
from rlox_opt.sampling.processes.watch import Watch


def cost(several: RecordedRun, alone: RecordedRun) -> dict[str, Any] | None:
    """Compares two runs of the same work. None if one of them has no phases, so that the beginning
    of training is not known.

    `processes` and `serial` each have `train_s`, `cpu_s` (of all threads, with native code; None
    if nobody watched) and `waits`: the seconds that all threads waited, by what they waited for.
    `faster` is how many times as fast the several processes are, and `cpu` how many times as much
    CPU time they take.
    """
    sides = [_figures(run) for run in (several, alone)]
    if sides[0] is None or sides[1] is None:
        return None
    cpus = sides[0]["cpu_s"], sides[1]["cpu_s"]
    return {
        "processes": sides[0],
        "serial": sides[1],
        "faster": sides[1]["train_s"] / sides[0]["train_s"],
        "cpu": cpus[0] / cpus[1] if cpus[0] and cpus[1] else None,
    }


def _figures(run: RecordedRun) -> dict[str, Any] | None:
    window = _training(tracks(run))
    if window is None:
        return None
    watch = Watch.load(run.folder)
    waits: defaultdict[str, float] = defaultdict(float)
    for division in divide(tracks(run, *window), watch):
        for wait in division.waits:
            waits[wait.on] += wait.seconds
    return {
        "train_s": (window[1] - window[0]) * 1e-9,
        "cpu_s": watch.cpu_s(*window),
        "waits": dict(sorted(waits.items(), key=lambda item: -item[1])),
    }


def _training(every: list[Track]) -> tuple[int, int] | None:
    """From the first phase of the threads that end the run to their last."""
    blocks = [block for track in goals(every) for block in track.blocks]
    if not blocks:
        return None
    begin, end = min(b.begin_ns for b in blocks), max(b.end_ns for b in blocks)
    return (begin, end) if begin < end else None
