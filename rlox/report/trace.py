"""The run on a time axis: Chrome's trace format, which Perfetto and chrome://tracing open.

Spans of the program's clock come thread by thread; torch's operations were recorded in a run of
their own, so they are a process with a time axis of its own. Samples carry no time, so they are not
here. A trace of a whole run would be too large to open: it holds the last seconds, and says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rlox.timing import SpanLog

if TYPE_CHECKING:
    from rlox.profiling.torch_profiler import Event as TorchEvent

WINDOW_S = 5.0
MOST_SPANS = 40_000
MOST_TORCH = 20_000
_TORCH_PID = 2_000_000_000  # beyond any process id of the kernel's

Event = dict[str, Any]


def trace(
    report: Mapping[str, Any], spans: SpanLog | None, torch_events: Iterable[TorchEvent] | None
) -> dict[str, Any]:
    """The trace as a dictionary for JSON; times in it are microseconds from its window's start."""
    title = f"{report.get('algo', '')} {report.get('env_id', '')}".strip()
    phases, held = _spans(spans, title) if spans is not None else ([], None)
    torch, recorded = _torch(torch_events or ())
    about = {
        "run": title,
        "commit": str(report.get("commit") or "unknown"),
        "spans": f"the last {held:.2f} s of the plain run" if held else "none were logged",
        "torch": f"the last {recorded:.2f} s of torch.profiler's own run, on a time axis of its own"
        if recorded
        else "none were recorded",
    }
    return {"displayTimeUnit": "ms", "otherData": about, "traceEvents": phases + torch}


def _spans(log: SpanLog, title: str) -> tuple[list[Event], float | None]:
    """Spans that lie in the log's last seconds, and how many seconds those are."""
    ends = sorted(span.end_ns for span in log)
    if not ends:
        return [], None
    # WINDOW_S before the end, or less where spans are many.
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
    """torch's last operations as a process of their own, and how many seconds they cover."""
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
