"""What each thread of a run did, in order: phases, waits, gifts and locks, on one time axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlox.profiling.processes.format import PHASE, Name
from rlox.profiling.processes.run import Process, Run

SPANS = ("send", "wait", "poll", "hold")
MAIN = "MainThread"
_NUMBER = re.compile(r"[-_ ]*\d+")


class Passage(NamedTuple):
    """A span that is no phase: `path` is what the program calls it."""

    kind: str  # of `SPANS`
    on: str
    channel: str
    path: str
    begin_ns: int
    end_ns: int


class Block(NamedTuple):
    """A phase."""

    path: str
    begin_ns: int
    end_ns: int


@dataclass
class Track:
    """A thread. `role` is what equal processes have in common, `process` the title of its own."""

    pid: int
    tid: int
    process: str
    role: str
    thread: str
    begin_ns: int
    end_ns: int
    blocks: list[Block] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    @property
    def title(self) -> str:
        """ "rank 0", "env worker 1: QueueFeederThread"."""
        return self.process if self.thread == MAIN else f"{self.process}: {self.thread}"

    @property
    def kind(self) -> str:
        """What it has in common with equal threads, whose names differ by a number."""
        if self.thread == MAIN:
            return self.role
        return f"{self.role}: {_NUMBER.sub('', self.thread) or self.thread}"


def tracks(run: Run, from_ns: int = 0, until_ns: int = 1 << 62) -> list[Track]:
    """The threads that did something between two times, of the earliest process first; spans that
    reach over an end of that time are cut there. Clocks of processes of one machine are one."""
    ends = {one: other for process in run.processes for one, other in process.pairs.items()}
    found = []
    for process in run.processes:
        own: dict[int, Track] = {}
        first, last = max(from_ns, process.begin_ns), min(until_ns, process.end_ns)
        for block in process.spans():
            for index, begin, end in block.data.tolist():
                name = process.names.get((block.source, index))
                if name is None or begin >= last or end <= first:
                    continue
                if block.thread not in own:
                    own[block.thread] = _track(process, block.thread, first, last)
                _add(own[block.thread], name, max(begin, first), min(end, last), ends)
        found += [own[thread] for thread in sorted(own)]
    return found


def exclusive(passages: Sequence[Passage]) -> list[Passage]:
    """Waits, polls and gifts of a thread in their order, without those that lie within another: a
    queue's pipe, a collective's collectives."""
    found: list[Passage] = []
    for passage in sorted(passages, key=lambda p: (p.begin_ns, -p.end_ns)):
        if passage.kind != "hold" and (not found or passage.begin_ns >= found[-1].end_ns):
            found.append(passage)
    return found


def _track(process: Process, thread: int, first: int, last: int) -> Track:
    known = process.threads.get(thread)
    tid, name = (known.native_id, known.name) if known else (0, str(thread))
    if tid == process.header.pid:
        name = MAIN
    return Track(process.header.pid, tid, process.title, process.role, name, first, last)


def _add(track: Track, name: Name, begin: int, end: int, ends: Mapping[str, str]) -> None:
    if name.kind == PHASE:
        track.blocks.append(Block(name.path, begin, end))
    elif name.kind in SPANS:
        # What is sent at one end of a connection is received at the other.
        channel = ends.get(name.channel, name.channel) if name.kind == "send" else name.channel
        track.passages.append(Passage(name.kind, name.on, channel, name.path, begin, end))
