"""All processes on one time axis: Chrome's trace format, which Perfetto opens.

Every thread has a track with its spans, calls into Rust and waits. torch's operators, the samples
and a device's streams have tracks of their own below it. Events are written as they are read, so
that the trace is never in memory as a whole. Perfetto cannot open a trace that is too large, so it
contains the last seconds in which there are at most `MOST` spans, and says which seconds.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlox_opt.sampling.processes.alignment import Alignment, align
from rlox_opt.sampling.processes.components import titles
from rlox_opt.sampling.processes.flows import Waypoint, arrows
from rlox_opt.sampling.processes.format import Name
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun, torch_of
from rlox_opt.sampling.processes.samples_file import read_samples
from rlox_opt.sampling.samples import MAIN_THREAD, Sample
from rlox_opt.system.files import writing

MOST = 500_000  # spans, and as many samples: some 60 MB
_BIN_NS = 100_000_000
_SAMPLES_TRACK = 2_000_000_000  # of a thread's samples: larger than any thread id of the kernel
_TORCH_TRACK = 3_000_000_000

Event = dict[str, Any]


def write_trace(path: Path, run: RecordedRun, most: int = MOST) -> dict[str, Any]:
    """Write the trace. Returns what it contains: `from_s`, `until_s`, `spans`, `events`,
    `clocks`."""
    alignments = {process.key: align(run, process) for process in run.processes}
    origin = run.clock.after_ns
    begin, spans = _window(run, alignments, most)
    end = max((p.end_ns + alignments[p.key].shift_ns for p in run.processes), default=origin)
    told: dict[str, Any] = {
        "from_s": max(0.0, (begin - origin) / 1e9),
        "until_s": max(0.0, (end - origin) / 1e9),
        "spans": spans,
        "clocks": clocks(run, alignments),
    }
    count = 0
    with writing(path) as file:
        about = json.dumps({"rlox-opt": told, "command": run.about.command})
        file.write(f'{{"displayTimeUnit":"ms","otherData":{about},"traceEvents":['.encode())
        for event in _events(run, alignments, origin, begin):
            line = ("," if count else "") + "\n" + json.dumps(event, separators=(",", ":"))
            file.write(line.encode())
            count += 1
        file.write(b"\n]}\n")
    return told | {"events": count}


def clocks(run: RecordedRun, alignments: Mapping[str, Alignment]) -> list[dict[str, Any]]:
    """How each process's clock was put on the run's, in microseconds."""
    names = titles(run.processes)
    return [
        {
            "process": names[key],
            "shift_us": alignment.shift_ns / 1e3,
            "error_us": alignment.error_ns / 1e3,
            "seen_us": alignment.seen_ns / 1e3,
        }
        for key, alignment in alignments.items()
    ]


def _window(run: RecordedRun, alignments: Mapping[str, Alignment], most: int) -> tuple[int, int]:
    """The earliest time from which at most `most` spans begin, and their number."""
    bins: defaultdict[int, int] = defaultdict(int)
    for process in run.processes:
        shift = alignments[process.key].shift_ns
        for file in (process, *torch_of(run.folder, process.key)):
            for batch in file.spans():
                numbers = (batch.data[:, 1] + shift) // _BIN_NS
                for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
                    bins[int(number)] += int(count)
    total = 0
    for number in sorted(bins, reverse=True):
        if total and total + bins[number] > most:
            return (number + 1) * _BIN_NS, total
        total += bins[number]
    return 0, total


def _events(
    run: RecordedRun, alignments: Mapping[str, Alignment], origin: int, begin: int
) -> Iterator[Event]:
    names, pids = titles(run.processes), _pids(run)
    for order, process in enumerate(run.processes):
        pid, shift = pids[process.key], alignments[process.key].shift_ns - origin
        yield _meta("process_name", pid, 0, name=f"{names[process.key]} ({process.header.pid})")
        yield _meta("process_sort_index", pid, 0, sort_index=order)
        for thread in process.threads.values():
            yield _meta("thread_name", pid, thread.native_id, name=thread.name)
        yield from _spans(process, pid, shift, begin - origin, 0)
        for torch in torch_of(run.folder, process.key):
            for number, thread in torch.threads.items():
                yield _meta("thread_name", pid, _TORCH_TRACK + number, name=f"torch {thread.name}")
            yield from _spans(torch, pid, shift, begin - origin, _TORCH_TRACK)
        for name, time_ns, value in process.counters():
            if time_ns + shift >= begin - origin:
                yield {
                    "ph": "C", "name": name, "pid": pid, "tid": 0,
                    "ts": (time_ns + shift) / 1e3, "args": {"value": value},
                }  # fmt: skip
        yield from _samples(run.folder, process, pid, shift, begin - origin)
    yield from _flows(arrows(run, alignments, begin), pids, origin)


def _pids(run: RecordedRun) -> dict[str, int]:
    """The id of each process by its key. If the kernel used an id twice, later processes get
    another."""
    used: Counter[int] = Counter()
    pids = {}
    for process in run.processes:
        pid = process.header.pid
        pids[process.key] = pid + 10_000_000 * used[pid]
        used[pid] += 1
    return pids


def _spans(
    process: RecordedProcess, pid: int, shift: int, begin: int, track: int
) -> Iterator[Event]:
    """Blocks that end after `begin`, cut there, so that an arrow may lead into an earlier block."""
    for batch in process.spans():
        tid = process.threads[batch.thread].native_id + track
        data = batch.data[batch.data[:, 2] + shift > begin]
        for index, whole, end in data.tolist():
            start = max(whole, begin - shift)
            name = process.names.get((batch.source, index)) or Name("?")
            event = {
                "ph": "X",
                "name": name.path.rsplit("/", 1)[-1],
                "cat": name.kind,
                "pid": pid,
                "tid": tid,
                "ts": (start + shift) / 1e3,
                "dur": (end - start) / 1e3,
            }
            if name.channel:
                event["args"] = {"on": name.on, "channel": name.channel}
            yield event


def _samples(
    folder: Path, process: RecordedProcess, pid: int, shift: int, begin: int
) -> Iterator[Event]:
    """Samples as blocks of the time that they stand for, on a track below their thread's."""
    samples = read_samples(folder, process.key)
    if samples is None:
        return
    tids = {thread.name: thread.native_id for thread in process.threads.values()}
    tids[MAIN_THREAD] = process.header.pid
    by_thread: defaultdict[str, list[tuple[int, Sample]]] = defaultdict(list)
    for sample in samples.samples[-MOST:]:
        if sample.time_ns is not None and sample.time_ns + shift >= begin:
            by_thread[sample.thread].append((sample.time_ns + shift, sample))
    for number, (name, timed) in enumerate(by_thread.items(), 1):
        tid = _SAMPLES_TRACK + tids.get(name, 1_000_000_000 + number)
        yield _meta("thread_name", pid, tid, name=f"{name}: samples by {samples.tool}")
        timed.sort(key=lambda pair: pair[0])
        nexts = [time_ns for time_ns, _ in timed[1:]]
        for (time_ns, sample), after in zip(timed, [*nexts, 1 << 62], strict=True):
            yield {
                "ph": "X",
                "name": sample.frames[-1].name if sample.frames else sample.layer,
                "cat": f"sample,{sample.layer}",
                "pid": pid,
                "tid": tid,
                "ts": time_ns / 1e3,
                "dur": min(round(sample.weight * 1e9), after - time_ns) / 1e3,
                "args": {"layer": sample.layer, "phase": sample.phase},
            }


def _flows(
    flows: Iterable[list[Waypoint]], pids: Mapping[str, int], origin: int
) -> Iterator[Event]:
    """Arrows from each point of a flow to the next; they begin and end within blocks."""
    for number, points in enumerate(flows, 1):
        for place, point in enumerate(points):
            last = place == len(points) - 1
            yield {
                "ph": "f" if last else "t" if place else "s",
                "bp": "e",
                "id": number,
                "name": point.name,
                "cat": "flow",
                "pid": pids[point.key],
                "tid": point.native_id,
                "ts": (point.time_ns - origin) / 1e3,
            }


def _meta(what: str, pid: int, tid: int, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}
