"""The files that a run of several processes writes into a folder, and the reading of them.

    run.json                     the command, the run's clock and its time namespace, its options;
                                 the status once the run has ended
    <key>.<segment>.jsonl        what a process recorded; <key> is "<pid>-<its first ns>"
    <key>.torch.<segment>.jsonl  torch's operators in that process, in the same form
    <key>.samples.jsonl          the samples taken of it (`samples_file`)
    watch.seen.<segment>.jsonl   the states of all threads, seen from outside (`watcher`)

Processes only append whole lines, so a file is valid up to its last line break, even if its process
was killed. Files are cut into segments. A long run drops the oldest ones, and `totals` keep their
sums. Times are integers: nanoseconds of the process's CLOCK_MONOTONIC, unless marked as real. Each
line is an object with one key:

    {"process": {…}}     first in every segment: the fields of `Header`
    {"clock": [before, real, after]}       the real clock, and the monotonic one around it
    {"role": [role, index, name]}          when the process learns it; the last one counts
    {"thread": [thread, native_id, name]}  `thread` numbers the threads of this process from 0
    {"source": [source, name]}             what records: a `Timing` by its name, "rust", "waits", …
    {"name": [source, index, path]}        a block: "outer/inner"
    {"name": [source, index, path, kind, on, channel]}   a span of another kind than "phase"
    {"spans": [source, thread, data]}      closed blocks: index, begin, end
    {"flows": [source, thread, data]}      points of flows: index, time, id of the flow
    {"frames": [source, thread, data]}     the thread's lines of Python: index, wanted, had
    {"parts": [source, thread, data]}      parts of torch's work: index, begin, end
    {"counter": [name, time, value]}
    {"totals": [[source, thread, index, calls, ns], …]}   `Timing`s' sums so far, of living threads
    {"loaded": {"versions": {…}}}          of Python and imported packages; for the extension also
                                           its "built" and "features"; the last one counts
    {"pair": [channel, channel]}           two ends: what is sent at one is received at the other
    {"recorded": [from, until]}            spans that closed in this time are kept; of others only
                                           totals are
    {"end": [time, how]}                   "exit", or "exec" where another program took its place;
                                           absent where the process was killed

`data` is base64 of little-endian int64, three of them an entry, in the order of closing. Each
segment repeats the process, threads, sources and names that it needs.

In a name of kind "frame" the path is a file, a line and a function, and `on` is the index of the
line that called it. In a name of kind "part" the path is "backward", "optimizer" or "no_grad".
Neither is a span.

Kinds of spans: "phase" (a block of the program), "rust", "torch", "device" (a kernel), and those
with a `channel`, which names the shared object: "wait" (`on` says for what: "queue", "pipe",
"collective", "lock", "gil", "process", "sleep", "device"), "poll" (a wait until something is there,
which is not taken), "send" (something is put into the channel), "hold" (the lock is held). A
channel is first in, first out: the n-th send of all processes is what the n-th wait receives. A
channel whose name begins with "unordered", such as a priority queue, is not: only the number of
sends is known. The n-th waits of all members of a collective are one operation, which the last
member to arrive ends.

In a process's torch files `thread` is the kernel's thread id. For a device's stream it is
1,000,000,000, plus the number of the stream, plus 1,000,000 for each device before it. Flows lead
from the call that launched a kernel to the kernel.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SCHEMA = 1
RUN = "run.json"
PHASE = "phase"
UNORDERED = "unordered "  # begins the names of channels that are not first in, first out
Triples = NDArray[np.int64]  # [n, 3]


class Clock(NamedTuple):
    """The real clock, read between two readings of the monotonic one; all in nanoseconds."""

    before_ns: int
    real_ns: int
    after_ns: int

    @property
    def offset_ns(self) -> int:
        """What has to be added to a monotonic time to get the real time."""
        return self.real_ns - (self.before_ns + self.after_ns) // 2

    @property
    def error_ns(self) -> float:
        """How wrong the offset may be, since the two clocks were not read at the same moment."""
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class Header:
    """The identity of a process.

    Attributes:
        key: the key of its files; unlike a pid it is never used twice.
        parent: the parent's pid; `parent_key` is its key, None if the parent was not recorded.
        role: what equal processes have in common, such as "rank", "env worker", "main".
        index: its number among equal processes; None where there is only one.
        name: the program's own name for it.
        start: "exec", or "fork" if it is a copy of a recorded process.
        time_namespace: identifies its monotonic clock, and the boot of the machine; None: unknown.
    """

    key: str
    pid: int
    parent: int
    parent_key: str | None
    role: str
    index: int | None
    name: str
    start: str
    argv: Sequence[str]
    segment: int = 0
    time_namespace: str | None = None
    schema: int = SCHEMA


class Name(NamedTuple):
    """A block's path; for a span that is no phase also its kind, what it is `on`, its channel."""

    path: str
    kind: str = PHASE
    on: str = ""
    channel: str = ""


class Thread(NamedTuple):
    """A thread by the kernel's id and by Python's name."""

    native_id: int
    name: str


class Batch(NamedTuple):
    """Closed spans, or points of a flow, of one source and thread: int64, shape (n, 3)."""

    source: int
    thread: int
    data: Triples


class Total(NamedTuple):
    """All closed blocks of one name (its index) in one thread."""

    source: int
    thread: int
    name: int
    calls: int
    ns: int


def lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Key and value of each whole line. A last line that a killed process left unfinished is
    skipped."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:  # two halves of lines that a full disk has put together
                continue
            yield from entry.items()


def triples(data: str) -> Triples:
    """Base64 as `[n, 3]` of int64."""
    return np.frombuffer(base64.b64decode(data), "<i8").astype(np.int64, copy=False).reshape(-1, 3)
