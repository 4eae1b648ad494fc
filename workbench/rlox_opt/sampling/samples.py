"""The form that every sampler's output is read into: stacks with a phase, layer, weight, thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

# The thread that trains. Its time alone is divided into layers.
MAIN_THREAD = "MainThread"
# How tables name the phase "", which is the time outside all phases.
OUTSIDE = "outside all phases"


class Frame(NamedTuple):
    """One function on a stack. `module` is its source file if known, otherwise its library's
    path."""

    name: str
    module: str
    line: int | None = None


class Sample(NamedTuple):
    """A stack (outermost first) that was sampled. `weight` is the seconds that it stands for, and
    `time_ns` is when it was sampled, by the monotonic clock, if the tool says so."""

    frames: tuple[Frame, ...]
    phase: str
    layer: str
    weight: float
    thread: str
    time_ns: int | None = None


@dataclass
class Samples:
    """All samples of one run under one tool. `errors` counts the stacks that could not be read.
    Sampling began at `since_ns` of the monotonic clock; 0: before anything else did."""

    tool: str
    samples: list[Sample] = field(default_factory=list)
    period_s: float = 0.01
    errors: int = 0
    since_ns: int = 0
