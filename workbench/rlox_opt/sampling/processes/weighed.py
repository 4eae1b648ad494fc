"""py-spy's samples, with weights that follow what the watch saw of their threads.

py-spy begins late, samples rarely, sees nothing of the kernel, and cannot unwind some native code.
The watch looks all the time, and the kernel itself counts for how long a thread runs, in the kernel
and outside it. So four shares of a thread's time since py-spy began come from the watch: waiting,
waiting for the interpreter's lock, work in the kernel, and other work. Each of them is divided as
py-spy's samples are. Stacks that py-spy could not take are unknown. Time in which py-spy keeps the
program stopped does not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlox_opt.sampling.layers import UNKNOWN, Classifier
from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.processes.watch import Seen, Watch
from rlox_opt.sampling.samples import Sample, Samples

_FEW = 50  # with fewer looks at a thread, its samples keep their weights
_HARDLY_TOLD = {"running", "other", "stopped"}  # the only states if the kernel hides system calls


def weighed(
    samples: Samples, process: RecordedProcess, watch: Watch, classifier: Classifier
) -> list[Sample]:
    """The samples of a process. The sum of each thread's weights does not change."""
    tids: defaultdict[str, set[int | None]] = defaultdict(set)
    for thread in process.threads.values():  # a renamed main thread has several numbers
        tids[thread.name].add(thread.native_id)
    by_thread: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples.samples:
        by_thread[sample.thread].append(sample)
    looks = max(map(len, by_thread.values()), default=0) + samples.errors
    lost = samples.errors / looks if looks else 0.0
    found: list[Sample] = []
    for name, own in by_thread.items():
        (tid, *others) = tids.get(name, {None})
        seen = None if tid is None or others else watch.of(process.header.pid, tid)
        begin_ns = max(process.begin_ns, samples.since_ns)
        spent = None if seen is None else _spent(seen, begin_ns, process.end_ns)
        found += own if spent is None else _of_thread(own, spent, lost, classifier)
    return found


class _Spent(NamedTuple):
    """Shares of a thread's time; `gil` is None if it cannot be distinguished from other waits."""

    runs: float
    kernel: float
    gil: float | None


def _spent(seen: Seen, begin_ns: int, end_ns: int) -> _Spent | None:
    """How a thread spent its time; None if it was hardly looked at."""
    states = seen.states((), begin_ns, end_ns)
    waits = states.total() - states["stopped"] - states["running"]
    if waits + states["running"] < _FEW:
        return None
    ran, kept, kernel = (
        seen.within(what, begin_ns, end_ns) for what in (seen.ran, seen.kept, seen.kernel)
    )
    free = 1 - states["stopped"] / states.total()
    whole = (end_ns - begin_ns) * 1e-9 * free - kept  # time kept off a CPU does not count
    runs = min(1.0, ran / whole) if whole > 0 else 1.0
    told = waits and states.keys() - _HARDLY_TOLD
    gil = (1 - runs) * states["gil"] / waits if told else None
    return _Spent(runs, runs * min(1.0, kernel / ran) if ran else 0.0, gil)


def _of_thread(
    own: Sequence[Sample], spent: _Spent, lost: float, classifier: Classifier
) -> Iterator[Sample]:
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in own:
        group = _group(sample, classifier)
        groups["waits" if group == "gil" and spent.gil is None else group].append(sample)
    unseen = _by_phase(groups["work"] or own)
    whole = sum(sample.weight for sample in own)
    gil, work = spent.gil or 0.0, spent.runs - spent.kernel
    for group, layer, share in (
        ("waits", "idle", 1 - spent.runs - gil),
        ("gil", "gil", gil),
        ("kernel", "kernel", spent.kernel),
        ("work", UNKNOWN, work * (1 - lost)),
        ("lost", UNKNOWN, work * lost),
    ):
        samples = groups[group] or [sample._replace(layer=layer) for sample in unseen]
        factor = share * whole / sum(sample.weight for sample in samples)
        yield from (s._replace(weight=s.weight * factor) for s in samples if factor > 0)


def _group(sample: Sample, classifier: Classifier) -> str:
    if sample.layer in ("kernel", "gil"):
        return sample.layer
    waits = sample.layer == "idle" or classifier.wait_layer(sample.frames, sample.phase) is not None
    return "waits" if waits else "work"


def _by_phase(samples: Sequence[Sample]) -> list[Sample]:
    """One sample without a stack for each phase, with the weight of all samples in it."""
    weights: Counter[str] = Counter()
    for sample in samples:
        weights[sample.phase] += sample.weight  # type: ignore[assignment]
    return [Sample((), phase, "", of, samples[0].thread) for phase, of in weights.items()]
