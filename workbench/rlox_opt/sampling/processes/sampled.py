"""Turns the samplers' files into samples of each process, with phases and layers."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from rlox_opt.sampling import onlooker, perf, pyspy
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.perf import PerfEvent
from rlox_opt.sampling.processes import samplers
from rlox_opt.sampling.processes.components import titles
from rlox_opt.sampling.processes.format import PHASE
from rlox_opt.sampling.processes.lines import Beside, made_by
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun
from rlox_opt.sampling.processes.samples_file import path_of, write_samples
from rlox_opt.sampling.processes.watch import Watch
from rlox_opt.sampling.processes.weighed import weighed
from rlox_opt.sampling.samples import Sample
from rlox_opt.sampling.spans import SpanLog

_CONNECTION = "multiprocessing/connection.py"
_PASSING_S = 0.5  # of CPU time, or of life: processes with less are not mentioned
_MOST_NAMED = 8
_FULL = "size limit reached"  # what perf prints when it stops at its --max-size


def read_samplers(run: RecordedRun, classifier: Classifier) -> list[str]:
    """Write the samples of every process into the run's folder. Returns sentences on what is
    missing. What was read of the samplers' own files is noted in `run.spent`."""
    data = run.folder / perf.DATA
    if data.exists():
        return _read_perf(run, data, classifier)
    by_pyspy = run.about.sampler == samplers.PySpy.name
    young = _too_young(run) if by_pyspy else []
    watch = Watch.load(run.folder) if by_pyspy else Watch({})
    said = [_read_pyspy(run, process, classifier, watch) for process in run.processes]
    if run.about.sampler == samplers.Perf.name:
        return [onlooker.nothing("perf", run.folder / perf.LOG)]
    late = _late(run) if by_pyspy else []
    return [*(sentence for sentence in said if sentence), *young, *late]


def remove_spent(run: RecordedRun) -> None:
    """Remove what was read of the samplers' own files, as far as this user may."""
    for path in run.spent:
        with contextlib.suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _too_young(run: RecordedRun) -> list[str]:
    """A sentence on processes for which no py-spy was started although their spans were kept."""
    names = titles(run.processes)
    unseen = [
        names[process.key]
        for process in run.processes
        if process.recorded
        and (process.end_ns - process.begin_ns) * 1e-9 > _PASSING_S
        and not (run.folder / f"{process.key}.py-spy").exists()
    ]
    if not unseen:
        return []
    return [
        "py-spy looks at no process in its first seconds, which it would slow the most, so nothing "
        f"was sampled of {', '.join(unseen[:_MOST_NAMED])}."
    ]


def _late(run: RecordedRun) -> list[str]:
    """A sentence on the times in which spans were kept and py-spy had not begun."""
    names = titles(run.processes)
    late = []
    for process in run.processes:
        before_s = process.recorded_before(_begun_ns(run.folder / f"{process.key}.py-spy"))
        if before_s > _PASSING_S and path_of(run.folder, process.key).exists():
            late.append(f"{names[process.key]} ({before_s:.0f} of {process.recorded_s:.0f} s)")
    if not late:
        return []
    return [
        "py-spy began late, since it slows a process the most while that starts; of so much time "
        f"nothing was sampled: {', '.join(late[:_MOST_NAMED])}."
    ]


def _begun_ns(left: Path) -> int:
    """When the py-spy that leaves its files in this folder was started; 0 where nothing says so."""
    begun = left / samplers.BEGUN
    told = begun.read_text(encoding="utf-8") if begun.exists() else ""
    return int(told or 0)


def _read_perf(run: RecordedRun, data: Path, classifier: Classifier) -> list[str]:
    asked = json.loads((run.folder / perf.ASKED).read_text(encoding="utf-8"))
    rate = asked["rate"]
    events: dict[int, list[PerfEvent]] = {}
    lost = 0
    missing = []
    failed = False
    try:
        with perf.script(data) as lines:
            events, lost = perf.collect(lines, rate, asked.get("on_ns", 0))
    except ValueError as error:
        failed = True
        until = "layers are of what it read until then" if events else "layers are not known"
        missing.append(f"{error}; {until}. Its data is kept: {run.folder.name}/{data.name}.")
    if not events and not failed:
        missing.append("perf took no sample: the window lay outside the run.")
    last_ns = max((event.time_ns for event in chain(*events.values())), default=0)
    names = titles(run.processes)
    outside = []  # processes whose samples all lie outside the times kept
    by_pid: defaultdict[int, list[RecordedProcess]] = defaultdict(list)
    for process in run.processes:
        by_pid[process.header.pid].append(process)
    for pid, processes in by_pid.items():
        for process, own in _shared(events.pop(pid, []), processes):
            log = log_of(process)
            named = _all_threads(process, log)
            kept = [*_recorded(process, own)]
            samples = perf.place(kept, pid, classifier, named, rate, noted=Beside(process))
            if samples.samples:
                write_samples(run.folder, process.key, samples)
            elif process.recorded and _cpu_s(own) > _PASSING_S:
                outside.append(names[process.key])
    if _FULL in onlooker.said(run.folder / perf.LOG):
        seconds, size = (last_ns - run.clock.after_ns) * 1e-9, data.stat().st_size >> 20
        missing.append(
            f"perf stopped after {seconds:.0f} s of the run, when its data was {size} MiB: of what "
            "was kept after that nothing was sampled. Use --from and --for."
        )
    elif outside:
        missing.append(
            f"perf sampled none of the time that was kept of {', '.join(outside[:_MOST_NAMED])}, "
            "so that layers are not known there. Use --from and --for."
        )
    if lost:
        missing.append(f"perf lost samples {lost} times; the shares of busy moments are too small.")
    cpu_s: defaultdict[str, float] = defaultdict(float)
    for event in chain(*events.values()):
        if event.what == "cpu":
            cpu_s[event.comm] += event.weight
    if others := sorted(comm for comm, seconds in cpu_s.items() if seconds > _PASSING_S):
        missing.append(
            f"Processes that are not Python, or were started without this run's PYTHONPATH, are "
            f"not in the figures: {', '.join(others[:_MOST_NAMED])}."
        )
    if not failed:  # the maps name code that was compiled at run time, for perf alone
        run.spent += [data, *(Path(f"/tmp/perf-{pid}.map") for pid in by_pid)]
    return missing


def _cpu_s(events: Iterable[PerfEvent]) -> float:
    return sum(event.weight for event in events if event.what == "cpu")


def _shared(
    events: Iterable[PerfEvent], processes: list[RecordedProcess]
) -> Iterator[tuple[RecordedProcess, list[PerfEvent]]]:
    """The events of each of the processes that had one id, one after the other."""
    own: dict[str, list[PerfEvent]] = {process.key: [] for process in processes}
    for event in events:
        begun = [process for process in processes if process.begin_ns <= event.time_ns]
        own[(begun or processes)[-1 if begun else 0].key].append(event)
    for process in processes:
        yield process, own[process.key]


def _all_threads(process: RecordedProcess, log: SpanLog) -> SpanLog:
    """The log, with the names of threads without phases added."""
    there = {thread.native_id for thread in log.threads}
    for thread in process.threads.values():
        unnamed = thread.name == f"thread {thread.native_id}"  # perf has a better name
        if thread.native_id not in there and not unnamed:
            log.open_thread(thread.name, thread.native_id)
    return log


def _recorded(process: RecordedProcess, events: Iterable[PerfEvent]) -> Iterator[PerfEvent]:
    """The events from times in which spans were kept; the phase of others is not known. A wait
    counts for as long as it lies in such times."""
    for event in events:
        until_ns = event.time_ns + event.waited_ns
        for begin, end in process.recorded:
            first, last = max(begin, event.time_ns), min(end, until_ns)
            if event.what == "off" and first < last:
                yield replace(event, time_ns=first, weight=(last - first) * 1e-9)
            elif event.what != "off" and first <= last:
                yield event
                break


def _read_pyspy(
    run: RecordedRun, process: RecordedProcess, classifier: Classifier, watch: Watch
) -> str | None:
    left = run.folder / f"{process.key}.py-spy"
    if not left.exists():
        return None
    run.spent.append(left)
    rate, made, pid = samplers.PYSPY_RATE, made_by(process), process.header.pid
    # A name stands for blocks whose spans were not kept, too.
    phases = {name.path for name in process.names.values() if name.kind == PHASE}
    phases.update(log_of(process).paths)
    try:
        samples = pyspy.load(
            left, classifier, rate=rate, parts=True, made=made, pid=pid, phases=phases
        )
    except ValueError as error:
        return f"{process.title}: {error}"
    samples.since_ns = _begun_ns(left)
    names = {str(thread.native_id): thread.name for thread in process.threads.values()}
    samples.samples = [
        _told_from_work(sample)._replace(thread=names.get(sample.thread, sample.thread))
        for sample in samples.samples
    ]
    samples.samples = weighed(samples, process, watch, classifier)
    write_samples(run.folder, process.key, samples)
    return None


def _told_from_work(sample: Sample) -> Sample:
    """py-spy shows that a thread is in a system call, but not whether work is done there. A thread
    that receives from another process is counted as waiting for it."""
    received = any(
        frame.name.endswith("_recv") and frame.module.endswith(_CONNECTION)
        for frame in sample.frames
    )
    return sample._replace(layer="idle") if received and sample.layer == "kernel" else sample
