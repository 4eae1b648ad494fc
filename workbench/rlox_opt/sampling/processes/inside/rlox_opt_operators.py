"""Records torch's operators by torch.profiler, in files of their own that have the usual form.

Kernels on a device are of kind "device", with a thread for each of its streams. A flow leads from
the call that launched a kernel to the kernel.
"""

from __future__ import annotations

import re
from array import array
from typing import Any

from rlox_opt_segments import Segments, encode, read_clock

_LINE = 30_000  # integers in one line
_STREAMS = 1_000_000_000  # the thread of stream n of the first device is this plus n
_DEVICE = 1_000_000  # added for each further device
_LAUNCHES = re.compile(r"(cuda|cu|hip)[A-Z]")  # of the runtime; Triton calls the driver


class Operators:
    """A recording of all threads. It begins when the object is made, in the recorder's thread."""

    def __init__(self, recorder: Any) -> None:
        import torch
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity, profile

        self.recorder = recorder
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            activities.append(ProfilerActivity.CUDA)
        everywhere = _ExperimentalConfig(profile_all_threads=True)
        self.profiler: Any = profile(activities=activities, experimental_config=everywhere)
        self.profiler.start()

    def write(self) -> None:
        """End the recording and write it; further calls do nothing."""
        if self.profiler is None:
            return
        profiler, self.profiler = self.profiler, None
        profiler.stop()
        clock = read_clock()
        offset = (clock[0] + clock[2]) // 2 - clock[1]  # torch's times are of the real clock
        names: dict[tuple[str, str], int] = {}
        spans: dict[int, array[int]] = {}
        flows: dict[int, array[int]] = {}
        for event in profiler.profiler.kineto_results.events():
            on_cpu = event.device_type().name == "CPU"
            # Blocks that the program names also appear beside a device's kernels; they are none.
            if event.is_hidden_event() or (not on_cpu and event.is_user_annotation()):
                continue
            thread = event.device_resource_id()
            if not on_cpu:
                thread += _STREAMS + _DEVICE * event.device_index()
            name = event.name(), "torch" if on_cpu else "device"
            index = names.setdefault(name, len(names))
            begin, end = event.start_ns() + offset, event.end_ns() + offset
            spans.setdefault(thread, array("q")).extend((index, begin, end))
            launch = event.correlation_id()
            if launch and (not on_cpu or _LAUNCHES.match(name[0])):
                flows.setdefault(thread, array("q")).extend((index, begin, launch))

        recorder = self.recorder

        def preamble(number: int) -> list[Any]:
            role, index, name = recorder.role
            who = {"role": role, "index": index, "name": name, "segment": number}
            return [
                {"process": {**recorder.header, **who}},
                {"clock": clock},
                {"source": [0, "torch"]},
                *({"thread": [thread, thread, _title(thread)]} for thread in spans),
                *({"name": [0, at, *name, "", ""]} for name, at in names.items()),
            ]

        size = recorder.options["segment_bytes"]
        files = Segments(f"{recorder.folder}/{recorder.key}.torch", size, 1 << 30, preamble)
        for what, by_thread in (("spans", spans), ("flows", flows)):
            for thread, data in by_thread.items():
                for at in range(0, len(data), _LINE):
                    files.write([{what: [0, thread, encode(data[at : at + _LINE])]}])
        files.close()


def _title(thread: int) -> str:
    if thread < _STREAMS:
        return f"thread {thread}"
    device, stream = divmod(thread - _STREAMS, _DEVICE)
    return f"device {device}, stream {stream}" if device else f"stream {stream}"
