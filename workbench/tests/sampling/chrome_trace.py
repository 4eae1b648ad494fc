"""Reads what `torch.profiler` exports as a Chrome trace, as far as tests of a device need it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from rlox_opt.sampling.device import Call, Kernel, PhaseAt


class Recorded(NamedTuple):
    """What a trace of torch.profiler holds; `annotations` are its named blocks, (thread, name,
    begin, end)."""

    calls: list[Call]
    kernels: list[Kernel]
    annotations: list[tuple[int, str, int, int]]


_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_OF_RUNTIME = ("cuda_runtime", "cuda_driver", "privateuse1_runtime")


def read_chrome(text: str) -> Recorded:
    """The text of a trace."""
    table: Any = json.loads(text)
    found = Recorded([], [], [])
    for event in table["traceEvents"]:
        if event.get("ph") != "X":
            continue
        begin = round(event["ts"] * 1e3)
        times = begin, begin + round(event.get("dur", 0) * 1e3)
        arguments = event.get("args", {})
        correlation = int(arguments.get("correlation", 0))
        kind, name = event.get("cat"), event["name"]
        if kind in _ON_DEVICE:
            stream = int(arguments.get("stream", event["tid"]))
            found.kernels.append(Kernel(name, stream, *times, correlation))
        elif kind in _OF_RUNTIME:
            found.calls.append(Call(name, event["tid"], *times, correlation))
        elif kind == "user_annotation":
            found.annotations.append((event["tid"], name, *times))
    return found


def annotated(recorded: Recorded) -> PhaseAt:
    """The innermost named block of a thread at a time."""
    blocks = sorted(recorded.annotations, key=lambda block: block[3] - block[2])

    def phase_at(thread: int, ns: int) -> str:
        inside = (name for of, name, begin, end in blocks if of == thread and begin <= ns < end)
        return next(inside, "")

    return phase_at
