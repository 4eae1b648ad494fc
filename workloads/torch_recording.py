"""Runs torch.profiler in a profiling child and writes its events for `torch_profiler` to read."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

from rlox_opt.sampling.torch_profiler import FILE

from rlox.timing import SpanLog
from workloads.watch import Window, gradient_steps

UPDATES = 150
_DEVICE = 1_000_000  # more than a device has streams: each numbers its own


class Recording(Window):
    """Runs torch.profiler over `UPDATES` gradient steps, or as many as `seconds` hold."""

    def __init__(self, warmup_steps: int, seconds: float) -> None:
        super().__init__(warmup_steps)
        self.seconds = seconds
        self.start_ns = self.end_ns = self.updates = 0

    def begin(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if self.model.device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        self.model.timing.spans = SpanLog()
        self._before = gradient_steps(self.model)
        self._deadline = perf_counter() + self.seconds
        self._profile = profile(activities=activities)
        self._profile.start()
        self.start_ns = perf_counter_ns()

    def over(self) -> bool:
        self.updates = gradient_steps(self.model) - self._before
        return self.updates >= UPDATES or perf_counter() > self._deadline

    def end(self) -> None:
        self.end_ns = perf_counter_ns()
        self._profile.stop()

    def save(self, folder: Path) -> None:
        """Write the events, which `load` reads."""
        spans = self.model.timing.spans
        assert spans is not None
        offset = spans.monotonic_ns - spans.real_ns  # torch stamps its events by the real clock
        results: Any = self._profile.profiler.kineto_results  # type: ignore[union-attr]
        names: dict[str, int] = {}
        events = [
            (
                names.setdefault(event.name(), len(names)),
                event.start_ns() + offset,
                event.end_ns() + offset,
                event.start_thread_id(),
            )
            for event in results.events()
            if _is_operator(event)
        ]
        calls, kernels = _of_device(results, offset)
        found = {"names": list(names), "events": events, "updates": self.updates}
        found |= {"ended": self._ended()}
        found |= {"calls": calls, "kernels": kernels}
        folder.joinpath(FILE).write_text(json.dumps(found), encoding="utf-8")

    def _ended(self) -> str:
        """Why the recording ended."""
        if self.updates >= UPDATES:
            return f"{UPDATES} updates are enough"
        return f"its {self.seconds:g} s were over"


def _of_device(results: Any, offset: int) -> tuple[list[Any], list[Any]]:
    """Calls of the device's runtime, and what ran on it: the fields of `device.Call`, `.Kernel`."""
    calls, kernels = [], []
    for event in results.events():
        name, correlation = event.name(), event.correlation_id()
        times = event.start_ns() + offset, event.end_ns() + offset
        if event.device_type().name != "CPU":
            if event.is_user_annotation():  # a block of the program, mirrored on the device
                continue
            stream = event.device_index() * _DEVICE + event.device_resource_id()
            kernels.append((name, stream, *times, correlation))
        elif name.startswith(("cuda", "hip", "cu")):
            calls.append((name, event.start_thread_id(), *times, correlation))
    return calls, kernels


def _is_operator(event: Any) -> bool:
    return (
        event.device_type().name == "CPU"
        and not event.is_user_annotation()  # "Optimizer.step": Python as well as operators
        and not event.is_hidden_event()
    )
