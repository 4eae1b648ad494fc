"""What the processes of a run waited for on a device, from torch's records of each (`--torch`)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rlox_opt.sampling.device import Call, Kernel, attribute, by_span
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun, torch_of

_RUNTIME = ("cuda", "hip", "cu")


def on_device(run: RecordedRun) -> dict[str, Any] | None:
    """`waited` and `phases` as of `device.attribute`, of all processes together; None where no
    kernel was recorded."""
    waited: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    uses: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for process in run.processes:
        calls, kernels = _recorded(run, process)
        if not kernels:
            continue
        rows, phases = attribute(calls, kernels, by_span(calls, log_of(process)))
        for row in rows:
            waited[row.waits, row.launched, row.name] += row.seconds
        for use in phases:
            uses[use.phase][0] += use.waits
            uses[use.phase][1] += use.kernels
    if not uses:
        return None
    ranked = sorted(waited.items(), key=lambda item: -item[1])
    return {
        "waited": [
            {"waits": waits, "launched": launched, "name": name, "seconds": seconds}
            for (waits, launched, name), seconds in ranked
        ],
        "phases": [
            {"phase": phase, "waits": waits, "kernels": kernels}
            for phase, (waits, kernels) in sorted(uses.items(), key=lambda item: -sum(item[1]))
        ],
    }


def _recorded(run: RecordedRun, process: RecordedProcess) -> tuple[list[Call], list[Kernel]]:
    """Calls of the device's runtime, and what ran on it. A flow with the same number passes where
    a kernel was launched and where it ran."""
    torch = torch_of(run.folder, process.key)
    if torch is None:
        return [], []
    numbers = {
        (batch.thread, index, begin): number
        for batch in torch.flows()
        for index, begin, number in batch.data.tolist()
    }
    calls, kernels = [], []
    for batch in torch.spans():
        for index, begin, end in batch.data.tolist():
            name = torch.names[batch.source, index]
            number = numbers.get((batch.thread, index, begin), 0)
            if name.kind == "device":
                kernels.append(Kernel(name.path, batch.thread, begin, end, number))
            elif name.path.startswith(_RUNTIME):
                calls.append(Call(name.path, batch.thread, begin, end, number))
    return calls, kernels
