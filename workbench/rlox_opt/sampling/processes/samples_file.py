"""The samples of one process as a file of JSON lines, with each distinct stack once.

{"samples": {"tool": …, "period_s": …, "errors": …, "since_ns": …}}
{"stack": [number, [[name, module, line], …]]}      outermost first
{"sample": [stack, phase, layer, weight_s, thread, time_ns or null]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rlox_opt.sampling.processes.format import lines
from rlox_opt.sampling.samples import Frame, Sample, Samples


def path_of(folder: Path, key: str) -> Path:
    """The file with the samples of a process."""
    return folder / f"{key}.samples.jsonl"


def write_samples(folder: Path, key: str, samples: Samples) -> None:
    """Write the samples of the process `key`."""
    with path_of(folder, key).open("w", encoding="utf-8") as file:
        for entry in _entries(samples):
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")


def _entries(samples: Samples) -> Iterator[dict[str, object]]:
    about = {"tool": samples.tool, "period_s": samples.period_s, "errors": samples.errors}
    about |= {"since_ns": samples.since_ns}
    yield {"samples": about}
    stacks: dict[tuple[Frame, ...], int] = {}
    for frames, phase, layer, weight, thread, time_ns in samples.samples:
        if frames not in stacks:
            stacks[frames] = len(stacks)
            yield {"stack": [stacks[frames], frames]}
        yield {"sample": [stacks[frames], phase, layer, round(weight, 9), thread, time_ns]}


def read_samples(folder: Path, key: str) -> Samples | None:
    """The samples of the process `key`; None where there are none."""
    path = path_of(folder, key)
    if not path.exists():
        return None
    samples = Samples("", [])
    stacks: dict[int, tuple[Frame, ...]] = {}
    for kind, value in lines(path):
        if kind == "samples":
            since_ns = value.get("since_ns", 0)
            samples = Samples(value["tool"], [], value["period_s"], value["errors"], since_ns)
        elif kind == "stack":
            stacks[value[0]] = tuple(Frame(*frame) for frame in value[1])
        elif kind == "sample":
            stack, phase, layer, weight, thread, time_ns = value
            sample = Sample(stacks[stack], phase, layer, weight, thread, time_ns)
            samples.samples.append(sample)
    return samples
