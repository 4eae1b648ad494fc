"""What the host waited for on a device, and which phase had launched it.

A device works asynchronously: a kernel is launched in one phase, and the host waits for it in a
later phase that needs its result. A clock on the host would put the kernel's time into the wrong
phase. An optimiser's step, for example, would seem long that only waits for the backward pass. So
two things are counted apart. A kernel counts for the phase that launched it, which the correlation
id of launch and kernel shows. A wait of the host counts for the phase that waits, and is described
by the kernels that ran meanwhile.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlox_opt.sampling.phases import phases_by_clock
from rlox_opt.sampling.samples import MAIN_THREAD
from rlox_opt.sampling.spans import SpanLog

# Functions of the device's runtime and driver that return when the device has finished its work.
WAITS = re.compile(r"^(cuda|hip|cu)(Device|Stream|Event|Ctx)Synchronize|^(cuda|hip)Memcpy$")
NOTHING = "nothing: the device had no work"
UNKNOWN = "unknown"
_NS = 1e-9


class Call(NamedTuple):
    """A call of the device's runtime on the host. `correlation` is the id of what it launched, 0 if
    that was nothing. Times are nanoseconds of the host's clock."""

    name: str
    thread: int
    begin_ns: int
    end_ns: int
    correlation: int


class Kernel(NamedTuple):
    """A kernel, or a copy, on a stream of the device. Times are of the same clock."""

    name: str
    stream: int
    begin_ns: int
    end_ns: int
    correlation: int


class Waited(NamedTuple):
    """Seconds that the host waited in phase `waits` for kernels `name`, which phase `launched` had
    launched."""

    waits: str
    launched: str
    name: str
    seconds: float


class Use(NamedTuple):
    """A phase's seconds: those in which it waited for the device, and those of the kernels that it
    launched, whenever these ran."""

    phase: str
    waits: float
    kernels: float


PhaseAt = Callable[[int, int], str]  # the phase of a thread at a time


def attribute(
    calls: Sequence[Call], kernels: Sequence[Kernel], phase_at: PhaseAt
) -> tuple[list[Waited], list[Use]]:
    """What the host waited for, and the seconds of each phase; the longest first.

    If several kernels run at once, the host waits for the one that ends last. A wait counts for the
    kernel's launcher even if another thread waits.
    """
    launched = {
        call.correlation: phase_at(call.thread, call.begin_ns) for call in calls if call.correlation
    }
    waited: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    waits: defaultdict[str, float] = defaultdict(float)
    runs: defaultdict[str, float] = defaultdict(float)
    ordered = sorted(kernels, key=lambda kernel: kernel.begin_ns)
    begins = [kernel.begin_ns for kernel in ordered]
    longest = max((kernel.end_ns - kernel.begin_ns for kernel in kernels), default=0)
    ended = {kernel.correlation: kernel.end_ns for kernel in kernels if kernel.correlation}
    for kernel in kernels:
        owner = launched.get(kernel.correlation, UNKNOWN)
        runs[owner] += (kernel.end_ns - kernel.begin_ns) * _NS
    for call in calls:
        if not _waits(call, ended):
            continue
        phase = phase_at(call.thread, call.begin_ns)
        waits[phase] += (call.end_ns - call.begin_ns) * _NS
        first = bisect_left(begins, call.begin_ns - longest)
        beside = ordered[first : bisect_left(begins, call.end_ns)]
        for waited_for, ns in _parts(call, beside):
            owner, name = "", NOTHING
            if waited_for is not None:
                owner, name = launched.get(waited_for.correlation, UNKNOWN), waited_for.name
            waited[phase, owner, name] += ns * _NS
    return ranked(waited, waits, runs)


def ranked(
    waited: Mapping[tuple[str, str, str], float],
    waits: Mapping[str, float],
    kernels: Mapping[str, float],
) -> tuple[list[Waited], list[Use]]:
    """The seconds of waits and of phases as rows, the longest first."""
    rows = [Waited(*what, seconds) for what, seconds in waited.items()]
    phases = dict.fromkeys((*waits, *kernels))
    uses = [Use(phase, waits.get(phase, 0.0), kernels.get(phase, 0.0)) for phase in phases]
    return (
        sorted(rows, key=lambda row: -row.seconds),
        sorted(uses, key=lambda use: -(use.waits + use.kernels)),
    )


def told(waited: Sequence[Waited], uses: Sequence[Use]) -> dict[str, Any]:
    """Both lists as a report stores them."""
    return {
        "waited": [row._asdict() for row in waited],
        "phases": [use._asdict() for use in uses],
    }


def _waits(call: Call, ended: Mapping[int, int]) -> bool:
    """Whether a call waited until the device had finished. An asynchronous copy waits too if the
    host's memory is not pinned, as for `tensor.item()`: such a call returns only after the copy had
    `ended`."""
    if WAITS.match(call.name):
        return True
    copied_ns = ended.get(call.correlation) if "Memcpy" in call.name else None
    return copied_ns is not None and call.end_ns >= copied_ns


def _parts(call: Call, kernels: Iterable[Kernel]) -> Iterable[tuple[Kernel | None, int]]:
    """Cuts a wait into parts, each with the kernel waited for (None where none ran). `kernels` are
    in order of their begin."""
    inside = [k for k in kernels if k.end_ns > call.begin_ns and k.begin_ns < call.end_ns]
    edges = {call.begin_ns, call.end_ns}
    for kernel in inside:
        edges |= {max(kernel.begin_ns, call.begin_ns), min(kernel.end_ns, call.end_ns)}
    begun = deque(inside)
    last: Kernel | None = None  # the one that ends last of those that have begun
    for begin, end in itertools.pairwise(sorted(edges)):
        while begun and begun[0].begin_ns <= begin:
            kernel = begun.popleft()
            last = kernel if last is None or kernel.end_ns > last.end_ns else last
        yield (last if last is not None and last.end_ns > begin else None), end - begin


def by_span(calls: Sequence[Call], spans: SpanLog) -> PhaseAt:
    """The training thread's phase when a call began. Calls of autograd's thread count there too."""
    main = [thread for thread in spans.threads if thread.name == MAIN_THREAD]
    times = np.array([call.begin_ns for call in calls], np.int64)
    paths, index = phases_by_clock(spans, main[0].native_id if main else 0, times)
    known = {int(ns): paths[i] for ns, i in zip(times, index, strict=True)}
    return lambda _, ns: known[ns]
