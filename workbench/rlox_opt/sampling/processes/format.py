"""What a run of several processes leaves behind: a folder, and how it is read.

    run.json                     the command, the run's clock and its time namespace, its options;
                                 at its end the status
    <key>.<segment>.jsonl        what a process recorded; <key> is "<pid>-<its first ns>"
    <key>.torch.<segment>.jsonl  torch's operators in it, in the same form
    <key>.samples.jsonl          what the sampler saw of it (`samples_file`)
    watch.seen.<segment>.jsonl   what its threads were at, seen from outside (`watcher`)

Processes only ever append whole lines, so a file is good up to its last line break whenever its
writer dies. Files are cut into segments; a long run drops the oldest, `totals` keep their sums.
Times are integers, nanoseconds of CLOCK_MONOTONIC of the process, unless it says real. Each line is
an object with one key:

    {"process": {…}}     first in every segment: the fields of `Header`
    {"clock": [before, real, after]}       the real clock, and the monotonic one around it
    {"role": [role, index, name]}          once the process knows better; the last one counts
    {"thread": [thread, native_id, name]}  `thread` numbers the threads of this process from 0
    {"source": [source, name]}             who records: a `Timing` by its name, "rust", "waits", …
    {"name": [source, index, path]}        a block: "outer/inner"
    {"name": [source, index, path, kind, on, channel]}   the same of another kind than "phase"
    {"spans": [source, thread, data]}      closed blocks: index, begin, end
    {"flows": [source, thread, data]}      where a flow passes: index, time, id of the flow
    {"frames": [source, thread, data]}     looks at the thread's line of Python: index, wanted, had
    {"parts": [source, thread, data]}      parts of torch's work: index, begin, end
    {"counter": [name, time, value]}
    {"totals": [[source, thread, index, calls, ns], …]}   sums so far of `Timing`s' living threads
    {"loaded": {"versions": {…}}}          of Python and of what is imported; of our extension also
                                           what it was "built" by, its "features"; the last counts
    {"pair": [channel, channel]}           two ends: what is sent at one is received at the other
    {"recorded": [from, until]}            spans that closed then are here; outside, only totals are
    {"end": [time, how]}                   "exit", or "exec" where another program took its place;
                                           absent where the process was killed

`data` is base64 of little-endian int64, three of them an entry, in the order of closing. Each
segment repeats the process, threads, sources and names that it needs.

Of a name of kind "frame" the path is a file, a line and a function, and `on` the index of the line
that called it; of kind "part" it is "backward", "optimizer" or "no_grad". Both are no spans.

Kinds of spans: "phase" (a block of the program), "rust", "torch", "device" (a kernel), and those
with a `channel`, which names what is shared: "wait" (`on` says for what: "queue", "pipe",
"collective", "lock", "gil", "process", "sleep", "device"), "poll" (it waits until there is
something, and leaves it there), "send" (it gives to the channel), "hold" (it has the lock). A
channel is first in, first out: the n-th send of all processes is what the n-th wait on it receives;
but one whose name begins with "unordered", such as a priority queue, of which only so much is known
as how many were sent. The n-th wait of each member of a collective is one and the same operation,
ended by the last to come.

In a process's torch files `thread` is the kernel's thread id, or 1,000,000,000, the number of a
device's stream, and 1,000,000 for each device before it; flows lead from the call that launched a
kernel to the kernel.
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
        """What is added to a monotonic time to make it real."""
        return self.real_ns - (self.before_ns + self.after_ns) // 2

    @property
    def error_ns(self) -> float:
        """How wrong the offset may be for the two clocks not being read at once."""
        return (self.after_ns - self.before_ns) / 2


@dataclass(frozen=True)
class Header:
    """Who a process is.

    Attributes:
        key: of its files; unlike a pid it is never used twice.
        parent: the parent's pid; `parent_key` its key, None where it is not recorded.
        role: what equal processes have in common, such as "rank", "env worker", "main".
        index: which of them it is; None where there is but one.
        name: as the program calls it.
        start: "exec", or "fork" where it is a copy of a process that was recorded.
        time_namespace: which monotonic clock it reads, and of which boot; None: unknown.
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
    """What a block is: its path, and for what is no phase its kind, what it is on, and which."""

    path: str
    kind: str = PHASE
    on: str = ""
    channel: str = ""


class Thread(NamedTuple):
    """A thread by the kernel's id and by Python's name."""

    native_id: int
    name: str


class Batch(NamedTuple):
    """Some closed spans, or passages of a flow, of one source and thread: `[n, 3]` of int64."""

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
    """Key and value of each whole line; what a dying process left of its last one is skipped."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:  # two halves of lines that a full disk has joined
                continue
            yield from entry.items()


def triples(data: str) -> Triples:
    """Base64 as `[n, 3]` of int64."""
    return np.frombuffer(base64.b64decode(data), "<i8").astype(np.int64, copy=False).reshape(-1, 3)
