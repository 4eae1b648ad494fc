"""The threads of one process: how long each existed, its tree of phases, its layers.

Seconds are those of the time in which spans were kept. That is the whole run, unless the user chose
otherwise or the run was too long to keep all of it. What lies before the sampler began is told as
not sampled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.attribution import nearest
from rlox_opt.sampling.processes.inside.rlox_opt_segments import RECORDER
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.samples import MAIN_THREAD, Sample, Samples
from rlox_opt.sampling.spans import Phase, ThreadSpans
from rlox_opt.stats import rate

# The standard deviation of a layer's share that comes from attribution itself, however many samples
# there are. With it, 95 % intervals contained the true shares of programs of known composition.
_MISATTRIBUTED = {"perf": 0.008, "py-spy": 0.04}
UNSAMPLED = "unsampled"  # the layer of time without samples

# Nanoseconds of the time in which spans were kept, from the beginning up to given times.
Kept = Callable[[NDArray[np.int64]], NDArray[np.float64]]


@dataclass
class ThreadUse:
    """How a thread spent its time.

    Attributes:
        seconds: how long it existed, as far as its blocks or samples show.
        phases: its tree, outer phases before inner ones.
        cells: seconds by phase (without inner phases) and layer; they sum to `seconds`.
        samples: the number of its samples.
        halves: half the width, in seconds, of each layer's 95 % interval.
    """

    name: str
    native_id: int | None
    seconds: float
    phases: list[Phase] = field(default_factory=list)
    cells: dict[tuple[str, str], float] = field(default_factory=dict)
    samples: int = 0
    halves: dict[str, float] = field(default_factory=dict)

    def layers(self) -> dict[str, float]:
        """Seconds of each layer."""
        by_layer: defaultdict[str, float] = defaultdict(float)
        for (_, layer), seconds in self.cells.items():
            by_layer[layer] += seconds
        return dict(by_layer)

    def interval(self, layer: str, seconds: float) -> tuple[float, float]:
        """The 95 % interval of a layer's share, which covers the error of sampling alone."""
        half = self.halves.get(layer, 0.0)
        low, high = max(0.0, seconds - half), min(self.seconds, seconds + half)
        return low / self.seconds, high / self.seconds


def threads_of(process: RecordedProcess, samples: Samples | None) -> list[ThreadUse]:
    """The threads of a process, the main one first, then those that existed longest."""
    log = log_of(process)
    spans: defaultdict[str, list[ThreadSpans]] = defaultdict(list)
    for thread in log.threads:
        spans[thread.name].append(thread)
    sampled: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples.samples if samples is not None else ():
        sampled[sample.thread].append(sample)
    kept = _kept(process)
    since_ns = samples.since_ns if samples is not None else 0

    def before(times: NDArray[np.int64]) -> NDArray[np.float64]:
        return kept(np.minimum(times, since_ns))

    uses = []
    for name in dict.fromkeys([MAIN_THREAD, *spans, *sampled]):
        if name == RECORDER:  # not a part of the program
            continue
        own = sampled.get(name, [])
        phases, between = _tree(log.paths, spans.get(name, ()), kept)
        earlier, unseen_s = _tree(log.paths, spans.get(name, ()), before) if since_ns else ([], 0.0)
        native_id = next((t.native_id for t in process.threads.values() if t.name == name), None)
        use = ThreadUse(name, native_id, process.recorded_s, phases, samples=len(own))
        if name == MAIN_THREAD:
            unseen_s = process.recorded_before(since_ns)
        else:
            # The life of another thread is known from its first to its last block, or for as long
            # as its samples stand for.
            use.seconds = max(between, unseen_s + sum(sample.weight for sample in own))
        tool, period_s = (samples.tool, samples.period_s) if samples else ("", 0.0)
        unseen = {phase.name: phase.self_seconds for phase in earlier}
        unseen[""] = max(0.0, unseen_s - sum(unseen.values()))
        use.cells, use.halves = _cells(use, own, unseen, period_s, tool)
        if use.seconds:
            uses.append(use)
    return sorted(uses, key=lambda use: (use.name != MAIN_THREAD, -use.seconds))


def _kept(process: RecordedProcess) -> Kept:
    """How many ns of the time in which spans were kept lie before given times.

    A span is kept whole if it closes in that time, however long before it began. Nothing else is
    known of the time outside, so that time must not count.
    """
    if not process.recorded:
        return lambda times: (times - process.begin_ns).astype(np.float64)
    edges = np.array(process.recorded, np.int64).ravel()
    first = edges[0]  # subtracted, since a double cannot hold nanoseconds since boot exactly
    lengths = np.diff(edges, prepend=first)
    lengths[::2] = 0  # the gaps
    sums = np.cumsum(lengths)
    return lambda times: np.interp(times - first, edges - first, sums)


def _tree(
    paths: list[str], threads: Iterable[ThreadSpans], kept: Kept
) -> tuple[list[Phase], float]:
    """The phases of the threads of one name, and the seconds from each thread's first begin to its
    last end. Both count only time that was `kept`."""
    calls: defaultdict[str, int] = defaultdict(int)
    total: defaultdict[str, int] = defaultdict(int)
    between = 0
    for thread in threads:
        if not len(thread):
            continue
        index, *times = np.frombuffer(thread.data, np.int64).reshape(-1, 3).T
        begin, end = map(kept, times)
        between += int(end.max() - begin.min())
        for number in np.unique(index).tolist():
            mine = index == number
            calls[paths[number]] += int(mine.sum())
            total[paths[number]] += int((end[mine] - begin[mine]).sum())
    # An outer block that never closed took at least as long as the blocks inside it.
    for depth in range(max((path.count("/") for path in total), default=0), 0, -1):
        for path in [path for path in total if path.count("/") == depth]:
            outer = path.rpartition("/")[0]
            if outer not in calls:
                total[outer] += total[path]
    inner: defaultdict[str, int] = defaultdict(int)
    for path, ns in total.items():
        inner[path.rpartition("/")[0]] += ns
    phases = [
        Phase(path, total[path] / 1e9, max(0, total[path] - inner[path]) / 1e9, calls.get(path, 0))
        for path in in_order(total)
    ]
    return phases, between / 1e9


def in_order(total: Mapping[str, float]) -> list[str]:
    """Paths by their seconds: outer before inner ones, and among neighbours the longest first."""

    def rank(path: str) -> list[tuple[float, str]]:
        parts = path.split("/")
        outers = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        return [(-total.get(outer, 0), outer) for outer in outers]

    return sorted(total, key=rank)


def _cells(
    use: ThreadUse,
    samples: Sequence[Sample],
    unseen: Mapping[str, float],
    period_s: float,
    tool: str,
) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """The thread's seconds by phase and layer, and half the width of each layer's interval. A phase
    is divided as its samples are, but for the seconds that are `unseen` since sampling had not
    begun; without samples, it is divided as the phase around it, or the whole (`attribution`).
    perf's samples that stand for more or less than a period were timed and not sampled, so they add
    nothing to the width.
    """
    own = {phase.name: phase.self_seconds for phase in use.phases}
    own[""] = max(0.0, use.seconds - sum(own.values()))
    strata: defaultdict[str, _Stratum] = defaultdict(_Stratum)
    whole = _Stratum()
    for sample in samples:
        if sample.weight > 0:
            sampled = tool != "perf" or abs(sample.weight - period_s) < 1e-9
            strata[sample.phase].add(sample, sampled)
            whole.add(sample, sampled)
    cells: defaultdict[tuple[str, str], float] = defaultdict(float)
    variances: defaultdict[str, float] = defaultdict(float)
    borrowed: defaultdict[str | None, float] = defaultdict(float)
    for phase, seconds in own.items():
        if before := min(seconds, unseen.get(phase, 0.0)):
            cells[phase, UNSAMPLED] += before
            seconds -= before
        around = nearest(phase, strata)
        stratum = whole if around is None else strata[around]
        if seconds:
            borrowed[around] += seconds
            for layer, share in stratum.shares().items():
                cells[phase, layer] += seconds * share
    for around, seconds in borrowed.items():
        stratum = whole if around is None else strata[around]
        for layer in whole.layers:
            variances[layer] += seconds**2 * stratum.variance(layer)
    seen_s = sum(borrowed.values())
    for layer in whole.layers:
        variances[layer] += (seen_s * _MISATTRIBUTED.get(tool, 0.0)) ** 2
    halves = {layer: rate.Z95 * sqrt(variance) for layer, variance in variances.items()}
    return dict(cells), halves


class _Stratum:
    """The samples of one phase."""

    def __init__(self) -> None:
        self.layers: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self.sampled = 0.0

    def add(self, sample: Sample, sampled: bool) -> None:
        self.layers[sample.layer] += sample.weight
        if sampled:
            self.counts[sample.layer] += 1
            self.sampled += sample.weight

    def shares(self) -> dict[str, float]:
        total = sum(self.layers.values())
        return {layer: of / total for layer, of in self.layers.items()} or {UNSAMPLED: 1.0}

    def variance(self, layer: str) -> float:
        """The variance of the layer's share, from its sampled part."""
        n = self.counts.total()
        sampled = self.sampled / sum(self.layers.values()) if n else 0.0
        return sampled**2 * rate.variance(self.counts[layer], n)
