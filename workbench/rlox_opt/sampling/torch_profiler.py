"""torch.profiler: the exact times of torch's own operators, and nothing about other code.

This reads what a child process recorded (`torch_recording`), and assigns each event to the phase
that was open at its time, so that an operator called in `update/backward` counts there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlox_opt.sampling import device
from rlox_opt.sampling.phases import phases_by_clock
from rlox_opt.sampling.samples import MAIN_THREAD
from rlox_opt.sampling.spans import SpanLog

FILE = "torch.json"
_TOP_OPS = 40


class Event(NamedTuple):
    """One call of an operator; times are nanoseconds of the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int
    thread: int


@dataclass
class TorchProfile:
    """What a recording showed.

    Attributes:
        events: every operator call.
        ops: the operators by self time: name, calls, self_us, share of torch's time.
        fractions: share of each phase's own time that torch's operators take.
        updates: gradient steps recorded.
        ended: why the recording ended then.
        waited, uses: what the host waited for on a device, as `device.attribute` has it; none
            where all is on the CPU.
    """

    events: list[Event]
    ops: list[dict[str, Any]]
    fractions: dict[str, float]
    updates: int
    ended: str
    waited: list[device.Waited] = field(default_factory=list)
    uses: list[device.Use] = field(default_factory=list)


def load(folder: Path, spans: SpanLog) -> TorchProfile:
    """Read a recording and join it with the spans of its process.

    Raises:
        ValueError: nothing was recorded.
    """
    raw = json.loads(folder.joinpath(FILE).read_text(encoding="utf-8"))
    names = raw["names"]
    events = [Event(names[i], start, end, thread) for i, start, end, thread in raw["events"]]
    if not events:
        raise ValueError("torch.profiler recorded no event")
    outermost, self_ns = nesting(events)
    calls: dict[str, int] = defaultdict(int)
    own: dict[str, int] = defaultdict(int)
    for event, ns in zip(events, self_ns, strict=True):
        calls[event.name] += 1
        own[event.name] += ns
    total = max(1, sum(own.values()))
    ops = [
        {
            "name": name,
            "calls": calls[name],
            "self_us": round(ns / 1e3, 1),
            "share": round(ns / total, 5),
        }
        for name, ns in sorted(own.items(), key=lambda item: -item[1])[:_TOP_OPS]
    ]
    asked = [device.Call(*call) for call in raw.get("calls", ())]
    kernels = [device.Kernel(*kernel) for kernel in raw.get("kernels", ())]
    on_device = (
        device.attribute(asked, kernels, device.by_span(asked, spans)) if kernels else ([], [])
    )
    return TorchProfile(
        events, ops, _fractions(outermost, spans), raw["updates"], raw["ended"], *on_device
    )


def nesting(events: Sequence[Event]) -> tuple[list[Event], list[int]]:
    """The events that lie in no other of their thread, and each event's ns without inner ones."""
    order = sorted(range(len(events)), key=lambda i: (events[i].start_ns, -events[i].end_ns))
    self_ns = [event.end_ns - event.start_ns for event in events]
    outermost = []
    open_: dict[int, list[int]] = defaultdict(list)
    for i in order:
        event, stack = events[i], open_[events[i].thread]
        while stack and events[stack[-1]].end_ns <= event.start_ns:
            stack.pop()
        if stack:
            self_ns[stack[-1]] -= event.end_ns - event.start_ns
        else:
            outermost.append(event)
        stack.append(i)
    return outermost, self_ns


def _fractions(outermost: Sequence[Event], spans: SpanLog) -> dict[str, float]:
    """Share of each phase's own time, in the training thread, that is spent in operators."""
    main = next(thread for thread in spans.threads if thread.name == MAIN_THREAD)
    own: dict[str, int] = defaultdict(int)
    for span in spans:
        if span.thread == MAIN_THREAD:
            own[span.path] += span.end_ns - span.start_ns
            own[span.path.rpartition("/")[0]] -= span.end_ns - span.start_ns
    starts = np.array([event.start_ns for event in outermost], np.int64)
    paths, index = phases_by_clock(spans, main.native_id, starts)
    in_torch: dict[str, int] = defaultdict(int)
    for event, i in zip(outermost, index, strict=True):
        in_torch[paths[i]] += event.end_ns - event.start_ns
    return {path: min(1.0, ns / own[path]) for path, ns in in_torch.items() if own[path] > 0}


def with_phases(events: Sequence[Event], spans: SpanLog) -> list[Event]:
    """The operators, with the phases around them as further events of the same thread."""
    thread = events[0].thread
    return [
        *events,
        *(
            Event(span.path, span.start_ns, span.end_ns, thread)
            for span in spans
            if span.thread == MAIN_THREAD
        ),
    ]
