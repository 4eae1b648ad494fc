"""What each thread of a run did, in order: phases, waits, sends and locks, on one time axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rlox_opt.sampling.processes.alignment import align
from rlox_opt.sampling.processes.components import folded, groups, titles
from rlox_opt.sampling.processes.inside.rlox_opt_segments import EXEC
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun
from rlox_opt.sampling.samples import MAIN_THREAD

MAIN = MAIN_THREAD
SPANS = ("send", "wait", "poll", "hold")


class Exchange(NamedTuple):
    """A span that is no phase. `path` is the program's name for it. If only a part of a run is
    looked at, `inside` says whether the event lies in that part: a send's event is at its begin, a
    receive's or a meeting's at its end. Then nothing is received before it is sent, even where the
    receiver takes the sender's core and goes on before the sender's call ends."""

    kind: str  # of `SPANS`
    on: str
    channel: str
    path: str
    begin_ns: int
    end_ns: int
    inside: bool = True


class Block(NamedTuple):
    """A phase."""

    path: str
    begin_ns: int
    end_ns: int


@dataclass
class Track:
    """A thread. `process` is the title of its process, `role` that of all equal processes.
    `replaced` says that another program went on in its process (exec), so that the thread's end is
    not the process's."""

    pid: int
    tid: int
    process: str
    role: str
    thread: str
    begin_ns: int
    end_ns: int
    blocks: list[Block] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    replaced: bool = False

    @property
    def title(self) -> str:
        """As "rank 0" or "env worker 1: QueueFeederThread"."""
        return self.process if self.thread == MAIN else f"{self.process}: {self.thread}"

    @property
    def kind(self) -> str:
        """The name shared with equal threads, whose own names differ by a number."""
        return self.role if self.thread == MAIN else f"{self.role}: {folded(self.thread)}"

    @property
    def ends_process(self) -> bool:
        """Whether a thread that joins the process waits for the end of this thread."""
        return self.tid == self.pid and not self.replaced


def tracks(run: RecordedRun, from_ns: int = 0, until_ns: int = 1 << 62) -> list[Track]:
    """The threads that did something between two times of the run's clock, those of the earliest
    process first. Spans that reach beyond that time are cut."""
    names = titles(run.processes)
    kinds = {p.key: kind for kind, equal in groups(run.processes).items() for p in equal}
    threads: list[Track] = []
    leaving: dict[int, Track] = {}  # main threads that called exec, by their process's id
    for process in run.processes:
        reader = _Reader(run, process, names[process.key], kinds[process.key], from_ns, until_ns)
        own = reader.read()
        threads += own
        for main in (track for track in own if track.tid == track.pid):
            if main.pid in leaving:
                leaving.pop(main.pid).replaced = True
            if process.how == EXEC:
                leaving[main.pid] = main
    return threads


class _Reader:
    """Reads the threads of one process."""

    def __init__(
        self,
        run: RecordedRun,
        process: RecordedProcess,
        title: str,
        kind: str,
        from_ns: int,
        until_ns: int,
    ) -> None:
        self.run, self.process, self.title, self.kind = run, process, title, kind
        self.shift = align(run, process).shift_ns
        # Of time that was not kept nothing is known, neither work nor waits.
        kept = process.recorded or [(process.begin_ns, process.end_ns)]
        self.first = max(from_ns, kept[0][0] + self.shift)
        self.last = min(until_ns, kept[-1][1] + self.shift)
        self.own: dict[int, Track] = {}

    def read(self) -> list[Track]:
        """The threads that did something, the main one first."""
        log = log_of(self.process)
        for thread in log.threads:
            for index, begin, end in np.frombuffer(thread.data, np.int64).reshape(-1, 3).tolist():
                if cut := self._cut(begin, end):
                    track = self._track(thread.native_id, thread.name)
                    track.blocks.append(Block(log.paths[index], *cut))
        passing = {
            key: (name, self.run.channel(name))
            for key, name in self.process.names.items()
            if name.kind in SPANS
        }
        for batch in self.process.spans():
            who = self.process.threads[batch.thread]
            for index, begin, end in batch.data.tolist():
                known = passing.get((batch.source, index))
                if known is not None and (cut := self._cut(begin, end)):
                    name, channel = known
                    inside = cut[0] == begin + self.shift
                    if name.kind != "send":
                        inside = cut[1] == end + self.shift
                    exchange = Exchange(name.kind, name.on, channel, name.path, *cut, inside)
                    self._track(*who).exchanges.append(exchange)
        for track in self.own.values():
            if track.thread != MAIN:  # its life is known from its first span to its last
                spans: list[Block | Exchange] = [*track.blocks, *track.exchanges]
                track.begin_ns = min(span.begin_ns for span in spans)
                track.end_ns = max(span.end_ns for span in spans)
        equal = Counter(track.thread for track in self.own.values())
        for number, track in enumerate(self.own.values(), 1):
            if equal[track.thread] > 1:
                track.thread = f"{track.thread} ({number})"
        return sorted(self.own.values(), key=lambda track: track.thread != MAIN)

    def _cut(self, begin: int, end: int) -> tuple[int, int] | None:
        begin, end = max(begin + self.shift, self.first), min(end + self.shift, self.last)
        return (begin, end) if begin <= end else None

    def _track(self, native_id: int, thread: str) -> Track:
        if native_id not in self.own:
            name = MAIN if native_id == self.process.header.pid else thread
            who = self.process.header.pid, native_id, self.title, self.kind, name
            self.own[native_id] = Track(*who, self.first, self.last)
        return self.own[native_id]


def exclusive(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Waits, polls and sends of a thread in order, without those inside others, such as the pipe of
    a queue or the collectives that a collective consists of."""
    outer: list[Exchange] = []
    # A span without length is not inside one that begins at the same time.
    order = sorted(exchanges, key=lambda p: (p.begin_ns, p.end_ns > p.begin_ns, -p.end_ns))
    for exchange in order:
        if exchange.kind != "hold" and (not outer or exchange.begin_ns >= outer[-1].end_ns):
            outer.append(exchange)
    return outer
