"""The run on a time axis: Chrome's trace format, which Perfetto and chrome://tracing open.

Spans come thread by thread, by the program's clock. torch's operations, and a tool's samples if
they have times, were recorded in runs of their own; each is a process whose time begins anew. A
trace of a whole run would be too large to open. So it contains the last seconds, and says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rlox_opt.sampling.samples import Sample, Samples
from rlox_opt.sampling.spans import SpanLog

if TYPE_CHECKING:
    from rlox_opt.sampling.torch_profiler import Event as TorchEvent

WINDOW_S = 5.0
MOST_SPANS = 40_000
MOST_TORCH = 20_000
MOST_SAMPLES = 10_000
_TORCH_PID = 2_000_000_000  # larger than any process id of the kernel
_SAMPLES_PID = _TORCH_PID + 1

Event = dict[str, Any]


def trace(
    report: Mapping[str, Any],
    samples: Mapping[str, Samples],
    spans: SpanLog | None,
    torch_events: Iterable[TorchEvent] | None,
) -> dict[str, Any]:
    """The trace as a dictionary for JSON; times in it are microseconds from its window's start."""
    title = f"{report.get('algo', '')} {report.get('env_id', '')}".strip()
    events, held = _spans(spans, title) if spans is not None else ([], None)
    about = {
        "run": title,
        "commit": str(report.get("commit") or "unknown"),
        "spans": f"the last {held:.2f} s of the plain run" if held else "none were logged",
    }
    parts = [("torch.profiler", *_torch(torch_events or ()))]
    parts += [
        (tool, *_samples(tool, found.samples, _SAMPLES_PID + number))
        for number, (tool, found) in enumerate(samples.items())
    ]
    for tool, more, held in parts:
        events += more
        about[tool] = (
            f"the last {held:.2f} s of a run of its own, on a time axis of its own"
            if held is not None
            else "nothing that carries a time"
        )
    return {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}


def _spans(log: SpanLog, title: str) -> tuple[list[Event], float | None]:
    """The spans in the log's last seconds, and the number of these seconds."""
    ends = sorted(span.end_ns for span in log)
    if not ends:
        return [], None
    # WINDOW_S before the end, or less if there are many spans.
    start = max(ends[-1] - int(WINDOW_S * 1e9), ends[-min(MOST_SPANS, len(ends))])
    events = [_named("process_name", log.pid, 0, f"{title} (plain run)")]
    for thread in log.threads:
        events.append(_named("thread_name", log.pid, thread.native_id, thread.name))
        words = iter(thread.data)
        events += [
            _block(log.paths[index], "phase", log.pid, thread.native_id, begin - start, end - begin)
            for index, begin, end in zip(words, words, words, strict=True)
            if begin >= start
        ]
    return events, (ends[-1] - start) / 1e9


def _torch(found: Iterable[TorchEvent]) -> tuple[list[Event], float | None]:
    """torch's last operations as a process of their own, and the seconds that they cover."""
    last = sorted(found, key=lambda event: event.start_ns)[-MOST_TORCH:]
    if not last:
        return [], None
    start = last[0].start_ns
    events = [_named("process_name", _TORCH_PID, 0, "torch.profiler (a run of its own)")]
    events += [
        _named("thread_name", _TORCH_PID, thread, f"torch thread {thread}")
        for thread in sorted({event.thread for event in last})
    ]
    events += [
        _block(e.name, "torch", _TORCH_PID, e.thread, e.start_ns - start, e.end_ns - e.start_ns)
        for e in last
    ]
    return events, (max(event.end_ns for event in last) - start) / 1e9


def _samples(tool: str, found: Iterable[Sample], pid: int) -> tuple[list[Event], float | None]:
    """A tool's last samples as instants, with a track for each thread; none without times."""
    timed = [(sample.time_ns, sample) for sample in found if sample.time_ns is not None]
    last = sorted(timed, key=lambda pair: pair[0])[-MOST_SAMPLES:]
    if not last:
        return [], None
    start, end = last[0][0], last[-1][0]
    tids = {name: tid for tid, name in enumerate(sorted({s.thread for _, s in last}), 1)}
    events = [_named("process_name", pid, 0, f"{tool}: samples (a run of its own)")]
    events += [_named("thread_name", pid, tid, name) for name, tid in tids.items()]
    events += [
        {
            "ph": "i",
            "s": "t",
            "name": sample.frames[-1].name if sample.frames else "(unknown)",
            "cat": sample.layer,
            "pid": pid,
            "tid": tids[sample.thread],
            "ts": (time_ns - start) / 1e3,
            "args": {"layer": sample.layer, "phase": sample.phase},
        }
        for time_ns, sample in last
    ]
    return events, (end - start) / 1e9


def _block(path: str, kind: str, pid: int, tid: int, start_ns: int, length_ns: int) -> Event:
    name = path.rsplit("/", 1)[-1] if kind == "phase" else path
    return {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": pid,
        "tid": tid,
        "ts": start_ns / 1e3,
        "dur": length_ns / 1e3,
    }


def _named(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}
