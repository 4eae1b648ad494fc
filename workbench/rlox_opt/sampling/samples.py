"""What every sampler is read into: stacks with a phase, a layer, a weight and a thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

# The thread that trains; only its time is divided into layers.
MAIN_THREAD = "MainThread"
# What tables call the phase "", which is no phase.
OUTSIDE = "outside all phases"


class Frame(NamedTuple):
    """One function on a stack. `module` is a source file where known, else a library's path."""

    name: str
    module: str
    line: int | None = None


class Sample(NamedTuple):
    """A stack (outermost first) that was seen; `weight` is the seconds that it stands for, and
    `time_ns` when it was, by the monotonic clock, where the tool says."""

    frames: tuple[Frame, ...]
    phase: str
    layer: str
    weight: float
    thread: str
    time_ns: int | None = None


@dataclass
class Samples:
    """All samples of one run under one tool. `errors` counts stacks that could not be taken."""

    tool: str
    samples: list[Sample] = field(default_factory=list)
    period_s: float = 0.01
    errors: int = 0
