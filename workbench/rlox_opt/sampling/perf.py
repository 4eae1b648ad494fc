"""perf: the precise sampler, where it is available. It sees the kernel and all threads, and slows
the program by 0-7 %.

It samples on-CPU time and stamps each sample with the monotonic clock, which joins the samples with
the program's spans. It also records every switch of a thread off and onto a CPU. The time between
counts as waiting if the thread gave up the CPU itself. If the thread was preempted the time does
not count, so that a busy neighbour does not make the program look idle.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rlox_opt.sampling import addresses, onlooker, owners
from rlox_opt.sampling.layers import UNKNOWN, Classifier
from rlox_opt.sampling.owners import Noted, Stack
from rlox_opt.sampling.phases import phases_by_clock
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog

RATE = 997  # Hz, at most; a prime, so that samples do not fall in step with the program's loops
SAMPLES = 20_000  # more are not worth their cost: 8 KiB each on disk, and 1 ms to read
STACK_BYTES = 8192  # of each stack; layers would need a quarter of them, flamegraphs need all
SETTLE_S = 0.0  # it samples from its first moment on
SWITCH_RATE = 99  # stacks per second of threads that leave the CPU, to see what they wait for

DATA, LOG, ASKED = "perf.data", "perf.log", "perf.json"
CPU, SWITCH = "cpu-clock", "context-switches"
_LEVEL = Path("/proc/sys/kernel/perf_event_paranoid")
_STATUS = Path("/proc/self/status")
_USER_ALONE = 2  # from this level on, the kernel shows itself only to who has a capability
_CAPABILITIES = 1 << 21 | 1 << 38  # CAP_SYS_ADMIN, CAP_PERFMON
_CAPABLE = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
_HEADER = re.compile(
    r"^\s*(?P<comm>.*?)\s+(?:(?P<pid>\d+)/)?(?P<tid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d+):\s+(?P<event>.*?)\s*$"
)
# The thread that began, and not the one that is named before it, which made it.
_BEGUN = re.compile(r"PERF_RECORD_FORK\((?P<pid>\d+):(?P<tid>\d+)\)")
_FRAME = re.compile(rf"^\s*(?P<ip>[0-9a-f]+) {onlooker.FRAME}\)$")


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why perf cannot be used here, with the remedy; None: it can."""
    if shutil.which("perf") is None:
        return "perf is not installed; install linux-perf (Debian) or linux-tools (Ubuntu)"
    try:
        probe = subprocess.run(
            ["perf", "record", "-q", "-e", CPU, "-k", "CLOCK_MONOTONIC", "-o", "-", "--", "true"],
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"perf fails here ({error})"
    if probe.returncode == 0:
        return None
    said = probe.stderr.decode(errors="replace")
    if "paranoid" in said or "ermission" in said or "not permitted" in said:
        return (
            "perf may not sample here; `sysctl kernel.perf_event_paranoid=1` or lower "
            "(in a container also `--cap-add=PERFMON`)"
        )
    return f"perf fails here ({said.strip().splitlines()[0] if said.strip() else 'no message'})"


def unseen() -> str | None:
    """What perf does not see here where it can be used, with the remedy; None: it sees all."""
    try:
        level, status = int(_LEVEL.read_text()), _STATUS.read_text()
    except (OSError, ValueError):  # no such kernel
        return None
    capable = _CAPABLE.search(status)
    if level < _USER_ALONE or (capable and int(capable[1], 16) & _CAPABILITIES) or _lent():
        return None
    return (
        f"kernel.perf_event_paranoid is {level}: time in the kernel, and what threads wait for, "
        "are not seen; `sysctl kernel.perf_event_paranoid=1` shows them"
    )


def _lent() -> bool:
    """Whether perf's own file lends it capabilities."""
    with contextlib.suppress(OSError):
        return bool(os.getxattr(shutil.which("perf") or "perf", "security.capability"))
    return False


def attach(
    pid: int, seconds: float, folder: Path, rate: int | None = None
) -> subprocess.Popen[bytes]:
    """Sample a running process for `seconds`; `load(folder, spans)` reads the files it leaves.

    Without a rate in Hz, long recordings get a lower one, so that there are about 20,000 samples at
    most.
    """
    rate = rate or min(RATE, max(99, round(SAMPLES / seconds)))
    return record(pid, folder, rate, ["--", "sleep", f"{seconds:.3f}"])


def record(
    pid: int, folder: Path, rate: int, words: Sequence[str], **options: Any
) -> subprocess.Popen[bytes]:
    """`perf record` of a process, with further `words` for perf, and `options` of `Popen`."""
    (folder / ASKED).write_text(json.dumps({"pid": pid, "rate": rate}))
    command = [
        *("perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "--switch-events"),
        *("--call-graph", f"dwarf,{STACK_BYTES}", "-e", f"{CPU}/freq={rate}/"),
        *("-e", f"{SWITCH}/freq={SWITCH_RATE}/"),
        *("-p", str(pid), "-o", str(folder / DATA), *words),
    ]
    return onlooker.start(command, folder / LOG, **options)


def switched_on(folder: Path) -> None:
    """Note that a recording which began without sampling samples from now on."""
    asked = json.loads((folder / ASKED).read_text())
    (folder / ASKED).write_text(json.dumps(asked | {"on_ns": time.monotonic_ns()}))


def load(folder: Path, classifier: Classifier, spans: SpanLog | None = None) -> Samples:
    """Read what `attach` left in the folder; `spans` of the same run give the phases.

    Raises:
        ValueError: there is no profile; the message ends with what perf printed.
    """
    if not (folder / DATA).exists():
        raise ValueError(onlooker.nothing("perf", folder / LOG))
    asked = json.loads((folder / ASKED).read_text())
    with script(folder / DATA) as lines:
        return read(lines, asked["pid"], classifier, spans, asked["rate"])


@contextlib.contextmanager
def script(data: Path) -> Iterator[Iterable[str]]:
    """The lines of `perf script` about a recording.

    Raises:
        ValueError: after the last line, since perf failed; lines may be missing, perhaps all.
    """
    fields = "comm,pid,tid,time,event,ip,sym,dso"
    with tempfile.TemporaryFile() as log:
        with subprocess.Popen(
            [
                *("perf", "script", "--ns", "--no-inline", "-F", fields, "-i", str(data)),
                *("--show-switch-events", "--show-task-events", "--show-lost-events"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            yield process.stdout
        if process.returncode:
            log.seek(0)
            said = log.read().decode(errors="replace").strip()[-300:] or "it said nothing"
            raise ValueError(f"perf script failed with status {process.returncode}: {said}")


def read(
    lines: Iterable[str], pid: int, classifier: Classifier, spans: SpanLog | None, rate: float
) -> Samples:
    """Samples of one process from the text of `perf script`, with phases and layers filled in."""
    events, errors = collect(lines, rate)
    every = [*chain.from_iterable(events.values())]
    log = SpanLog() if spans is None else spans
    return place(every, pid, classifier, log, rate, errors)


def collect(
    lines: Iterable[str], rate: float, on_ns: int = 0
) -> tuple[dict[int, list[PerfEvent]], int]:
    """The samples and waits of each process in the text of `perf script`, and the number of lost
    records. The process is 0 where the text does not name it. Sampling began at `on_ns`, or (0)
    with the first record."""
    events: defaultdict[int, list[PerfEvent]] = defaultdict(list)
    lost = 0
    for event in _intervals(_events(lines), 1 / rate, on_ns):
        if event.what == "lost":
            lost += 1
        else:
            events[event.pid].append(event)
    return dict(events), lost


def place(
    events: Sequence[PerfEvent],
    pid: int,
    classifier: Classifier,
    log: SpanLog,
    rate: float,
    errors: int = 0,
    noted: Noted | None = None,
) -> Samples:
    """The events of one process, each with its phase and layer. `noted` is what the process
    recorded about its threads, by the same clock."""
    samples = Samples("perf", period_s=1 / rate, errors=errors)
    ours = {f for e in events for f in e.frames if classifier.is_extension(f.module)}
    resolved = addresses.resolver(ours, places=True)
    names = {thread.native_id: thread.name for thread in log.threads}
    by_thread: defaultdict[int, list[PerfEvent]] = defaultdict(list)
    for event in events:
        by_thread[event.tid].append(event)
    stacks: list[Stack] = []
    for tid, own in by_thread.items():
        times = np.array([event.time_ns for event in own], np.int64)
        paths, index = phases_by_clock(log, tid, times)
        # A wait is looked up at its middle: at its begin, the thread may not be at that line yet.
        within = times + np.array([event.waited_ns // 2 for event in own], np.int64)
        called = np.array([classifier.calls(event.frames) for event in own], bool)
        lines = [()] * len(own) if noted is None else noted.lines(tid, within, called)
        parts = [""] * len(own) if noted is None else noted.parts(tid, times)
        for event, phase, python, part in zip(
            own, (paths[i] for i in index), lines, parts, strict=True
        ):
            native = tuple(frame for raw in event.frames for frame in resolved(raw))
            off = event.what == "off"
            stacks.append(Stack(native, python, phase, part, off, event.weight, tid))
    layers = owners.layers_of(stacks, classifier, UNKNOWN if noted is None else noted.made)
    every = [(tid, event) for tid, own in by_thread.items() for event in own]
    for (tid, event), stack, layer in zip(every, stacks, layers, strict=True):
        thread = MAIN_THREAD if tid == pid else names.get(tid, f"{event.comm} {tid}")
        frames = classifier.shown(stack.frames)
        whose = stack.phase, layer, event.weight, thread, event.time_ns
        samples.samples.append(Sample(frames, *whose))
    return samples


@dataclass
class PerfEvent:
    """One record of perf. `what` is cpu (a sample), switch (a stack), out, preempted, in, begun (a
    thread) or lost; off is made of an out and the next in, and stands for the time between."""

    what: str
    comm: str
    pid: int
    tid: int
    time_ns: int
    frames: tuple[Frame, ...]
    weight: float = 0.0

    @property
    def waited_ns(self) -> int:
        return round(self.weight * 1e9) if self.what == "off" else 0


def _events(lines: Iterable[str]) -> Iterator[PerfEvent]:
    """The records in order of time. perf prints innermost frames first; they are reversed here."""
    event: PerfEvent | None = None
    stack: list[Frame] = []
    for line in chain(lines, [""]):
        if line.startswith("\t"):
            if frame := _frame(line.rstrip("\n")):
                stack.append(frame)
            continue
        if event is not None:
            event.frames = tuple(reversed(stack))
            yield event
        event, stack = None, []
        if (header := _HEADER.match(line)) and (what := _what(header["event"])):
            ns = int(header["s"]) * 1_000_000_000 + int(header["ns"].ljust(9, "0")[:9])
            of = _BEGUN.match(header["event"]) or header
            pid, tid = int(of["pid"] or 0), int(of["tid"])
            event = PerfEvent(what, header["comm"], pid, tid, ns, ())


def _what(event: str) -> str | None:
    if event.startswith(CPU):
        return "cpu"
    if event.startswith(SWITCH):
        return "switch"
    if event.startswith("PERF_RECORD_LOST"):
        return "lost"
    if event.startswith("PERF_RECORD_FORK"):
        return "begun"
    if event.startswith("PERF_RECORD_SWITCH"):
        return "in" if " IN" in event else "preempted" if "preempt" in event else "out"
    return None


def _intervals(events: Iterable[PerfEvent], period_s: float, on_ns: int) -> Iterator[PerfEvent]:
    """The samples with the CPU time that they stand for, and the waits ("off") with their length. A
    wait that had begun before sampling lasts from `on_ns`, or (0) from the first record; one that
    had not ended lasts to the end of the recording."""
    left: dict[int, PerfEvent] = {}  # threads that gave up the CPU, and are not back
    stacks: dict[int, tuple[Frame, ...]] = {}  # where each thread was when it last left the CPU
    known: set[int] = set()  # threads that had a record, or did not exist before sampling
    last_ns = 0
    for event in events:
        last_ns = event.time_ns
        on_ns = on_ns or last_ns
        match event.what:
            case "cpu":
                event.weight = period_s
                yield event
            case "switch":
                stacks[event.tid] = event.frames
            case "out":
                event.frames = stacks.pop(event.tid, ())
                left[event.tid] = event
            case "preempted":
                stacks.pop(event.tid, None)
            case "in":
                if out := left.pop(event.tid, None):
                    yield _off(out, last_ns)
                elif event.tid not in known and on_ns < last_ns:
                    event.time_ns = on_ns
                    yield _off(event, last_ns)
            case "begun":
                if not last_ns:  # perf's own account of a thread that was there before
                    continue
            case _:
                yield event
                continue
        known.add(event.tid)
    for out in left.values():
        yield _off(out, last_ns)


def _off(out: PerfEvent, until_ns: int) -> PerfEvent:
    out.what, out.weight = "off", (until_ns - out.time_ns) * 1e-9
    return out


@lru_cache(maxsize=262144)
def _frame(line: str) -> Frame | None:
    """One frame. Its `line` is its address, until the address is turned into a line."""
    match = _FRAME.match(line)
    if match is None or match["ip"] == "f" * 16:
        return None  # the unwinder stopped here
    name, module = match["name"].partition("@")[0], match["module"]
    if match["ip"].startswith("ffffffff") and len(match["ip"]) == 16 and module == "[unknown]":
        module = "[kernel]"  # an address in the kernel whose symbol is hidden
    return Frame(name, module, int(match["ip"], 16))
