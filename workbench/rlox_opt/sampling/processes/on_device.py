"""What the processes of a run waited for on a device, from their torch records (`--torch`)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rlox_opt.sampling.device import Call, Kernel, attribute, by_span, ranked, told
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun, torch_of

_RUNTIME = ("cuda", "hip", "cu")


def on_device(run: RecordedRun) -> dict[str, Any] | None:
    """`waited` and `phases` as `device.attribute` returns them, of all processes together; None if
    no kernel was recorded."""
    seconds: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    waits: defaultdict[str, float] = defaultdict(float)
    runs: defaultdict[str, float] = defaultdict(float)
    for process in run.processes:
        calls, kernels = _recorded(run, process)
        if not kernels:
            continue
        waited, uses = attribute(calls, kernels, by_span(calls, log_of(process)))
        for row in waited:
            seconds[row[:3]] += row.seconds
        for use in uses:
            waits[use.phase] += use.waits
            runs[use.phase] += use.kernels
    return told(*ranked(seconds, waits, runs)) if waits else None


def _recorded(run: RecordedRun, process: RecordedProcess) -> tuple[list[Call], list[Kernel]]:
    """Calls of the device's runtime, and the kernels. A flow with one number has a point where a
    kernel was launched and another where it ran."""
    calls, kernels = [], []
    for torch in torch_of(run.folder, process.key):
        numbers = {
            (batch.thread, index, begin): number
            for batch in torch.flows()
            for index, begin, number in batch.data.tolist()
        }
        for batch in torch.spans():
            for index, begin, end in batch.data.tolist():
                name = torch.names[batch.source, index]
                number = numbers.get((batch.thread, index, begin), 0)
                if name.kind == "device":
                    kernels.append(Kernel(name.path, batch.thread, begin, end, number))
                elif name.path.startswith(_RUNTIME):
                    calls.append(Call(name.path, batch.thread, begin, end, number))
    return calls, kernels
