"""Turns what threads did into programs that can be replayed: work, and the events between.

A thread's time is work unless it waits. What it waited for is an event; the length of the wait is
left out, since a replay finds its own. Two lengths are kept as recorded: the hand-over, which is
the time from the awaited event until the thread went on, and waits of which no end was recorded.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from rlox_opt.sampling.processes.replay import (
    ACQUIRE,
    END,
    MEET,
    RECEIVE,
    RELEASE,
    SEND,
    Program,
    Stretch,
)
from rlox_opt.sampling.processes.tracks import Block, Exchange, Track, exclusive
from rlox_opt.sampling.samples import OUTSIDE

BLOCKED_NS = 20_000  # a shorter wait did not block: the call itself takes as long
HAND_OVER, UNKNOWN, NOT_BEGUN = "hand-over", "waiting for what was not recorded", "not begun"
_NS = 1e-9


class WorkPart(NamedTuple):
    """What work is for: the thread's `track` and the name that equal threads share, its phase, and
    the lock that it held."""

    track: str
    kind: str
    path: str
    lock: str = ""


@dataclass(frozen=True)
class Spent:
    """How a thread spent its time outside waits. `cpu` is the share in which it ran, and `of` the
    same of some phases. `rest` is the share in which it neither ran nor waited for a core or the
    interpreter. `gil` says whether it waits for the interpreter."""

    cpu: float = 1.0
    rest: float = 0.0
    gil: bool = False
    of: Mapping[str, float] = field(default_factory=dict)

    def shares(self, path: str) -> tuple[float, float]:
        """Of a phase's time, the share on a CPU and the share that passed without one."""
        cpu = self.of.get(path, self.cpu)
        return cpu, self.rest * (1 - cpu) / (1 - self.cpu) if self.cpu < 1 else 0.0


@dataclass(frozen=True)
class Recorded:
    """The programs, and the number of messages in their channels at the beginning."""

    programs: list[Program]
    there: dict[str, int]


def programs(
    tracks: Sequence[Track],
    spent: Callable[[Track], Spent] = lambda _: Spent(),
    goal: Callable[[Track], bool] = lambda _: True,
) -> Recorded:
    """The programs of the threads. All of them begin when the first thread does."""
    known = _Channels(tracks)
    start = min((track.begin_ns for track in tracks), default=0)
    with_gil = {track.process for track in tracks if spent(track).gil}
    threads = []
    for track in tracks:
        of = spent(track)
        stretches = list(_stretches(track, known, of))
        if track.begin_ns > start and stretches:
            late = {WorkPart(track.title, track.kind, NOT_BEGUN): (track.begin_ns - start) * _NS}
            stretches.insert(0, Stretch({}, late, SEND, f"begin {track.pid}.{track.tid}"))
        shares = track.process if track.process in with_gil else ""
        threads.append(Program(track.title, stretches, shares, goal(track)))
    return Recorded(threads, known.there())


class _Channels:
    """What is known of each channel from all threads: the times of sends and of receives, and how
    long a message takes."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self.gifts: defaultdict[str, list[int]] = defaultdict(list)
        self._begun: defaultdict[str, list[int]] = defaultdict(list)  # when sends began
        self.gets: defaultdict[str, list[int]] = defaultdict(list)
        self.full: set[str] = set()  # queues in which senders had to wait for room
        meetings: defaultdict[str, list[tuple[Exchange, str]]] = defaultdict(list)
        blocked: list[Exchange] = []
        for track in tracks:
            holds = [exchange for exchange in track.exchanges if exchange.kind == "hold"]
            for exchange in (*exclusive(track.exchanges), *holds):
                if exchange.kind == "wait" and exchange.on == "collective":
                    meetings[exchange.channel].append((exchange, track.title))
                elif exchange.inside:
                    self._take(exchange, blocked)
            if track.ends_process:  # an event for threads that join the process
                self.gifts[str(track.pid)].append(track.end_ns)
        for times in (*self.gifts.values(), *self._begun.values(), *self.gets.values()):
            times.sort()
        self._latency = self._latencies(blocked)
        self._latency |= {channel: _own_time(waits) for channel, waits in meetings.items()}

    def _take(self, exchange: Exchange, blocked: list[Exchange]) -> None:
        channel, took = exchange.channel, exchange.end_ns - exchange.begin_ns
        if exchange.kind == "send":
            self.gifts[channel].append(exchange.end_ns)
            self._begun[channel].append(exchange.begin_ns)
            if took > BLOCKED_NS and exchange.on == "queue":
                self.full.add(channel)
        elif exchange.kind == "hold":
            self.gifts[channel].append(exchange.end_ns)
        elif exchange.kind == "wait" and channel:
            if exchange.on not in ("lock", "process"):
                self.gets[channel].append(exchange.end_ns)
            if took > BLOCKED_NS:
                blocked.append(exchange)

    def _latencies(self, blocked: Sequence[Exchange]) -> dict[str, float]:
        took: defaultdict[str, list[int]] = defaultdict(list)
        for wait in blocked:
            gifts = self.gifts.get(wait.channel, [])
            at = bisect_right(gifts, wait.end_ns) - 1
            if at >= 0 and gifts[at] >= wait.begin_ns:
                took[wait.channel].append(wait.end_ns - gifts[at])
        # The fastest tenth. Slower ones also waited for a core or for the interpreter, and a
        # replay computes those waits itself.
        return {channel: sorted(times)[len(times) // 10] * _NS for channel, times in took.items()}

    def latency(self, channel: str) -> float:
        """Seconds from a send until the waiting thread goes on; for a collective, its own time."""
        return self._latency.get(channel, 0.0)

    def event(self, wait: Exchange) -> str | None:
        """The event that ends a wait; None if no recorded thread ends it."""
        if wait.on == "collective":
            return MEET
        known = wait.kind == "wait" and wait.channel in self.gifts and wait.on != "lock"
        return RECEIVE if known else None

    def there(self) -> dict[str, int]:
        """The number of messages in each channel at the beginning: as many as were received before
        a send began. The receiver may go on before the sender's call ends, whose core it took."""
        at_start = {}
        for channel, gets in self.gets.items():
            gifts = self._begun.get(channel, [])
            missing = [n - bisect_right(gifts, at) for n, at in enumerate(gets, 1)]
            at_start[channel] = max(0, *missing)
        for channel in self.full:  # its room is the largest number of messages that it held
            gets = self.gets.get(channel, [])
            held = [n - bisect_right(gets, at) for n, at in enumerate(self.gifts[channel], 1)]
            at_start[_room(channel)] = max(1, *held)
        return at_start


def _own_time(waits: list[tuple[Exchange, str]]) -> float:
    """Mean seconds that a collective itself takes: from the arrival of its last member until the
    first one leaves. The others may wait for a core, and a replay computes that itself."""
    meetings: list[dict[str, Exchange]] = []
    over = 0
    for wait, member in sorted(waits, key=lambda pair: pair[0].begin_ns):
        if not meetings or member in meetings[-1] or wait.begin_ns >= over:
            meetings.append({})
            over = 0
        meetings[-1][member] = wait
        over = max(over, wait.end_ns)
    most = max(map(len, meetings))
    return fmean(
        max(0, min(w.end_ns for w in met.values()) - max(w.begin_ns for w in met.values())) * _NS
        for met in meetings
        if len(met) == most  # otherwise a member of it lies outside the time looked at
    )


def _room(channel: str) -> str:
    return f"room in {channel}"


def _stretches(track: Track, known: _Channels, of: Spent) -> Iterator[Stretch]:
    """The thread's work, cut at its events."""
    work = _Work(track, of)
    for at, event, exchange in _marks(track.exchanges):
        work.until(at)
        channel = exchange.channel
        waited = exchange.end_ns - exchange.begin_ns > BLOCKED_NS
        match event:
            case "acquire":
                yield work.cut(ACQUIRE, channel)
                work.locks.append(exchange.path)
            case "release":
                yield work.cut(RELEASE, channel)
                if exchange.path in work.locks:
                    work.locks.remove(exchange.path)
            case _ if not exchange.inside:
                work.skip(exchange.end_ns)
                work.pass_by(exchange)
            case "send":
                if channel in known.full:
                    yield work.cut(RECEIVE, _room(channel))
                if waited:
                    work.skip(exchange.end_ns)
                work.until(exchange.end_ns)
                yield work.cut(SEND, channel)
            case _ if not waited and known.event(exchange) is None:
                work.until(exchange.end_ns)
            case _:
                yield from _wait(work, exchange, known, waited)
    work.until(track.end_ns)
    yield work.cut(SEND, str(track.pid)) if track.ends_process else work.cut(END, "")


def _wait(work: _Work, exchange: Exchange, known: _Channels, waited: bool) -> Iterator[Stretch]:
    """A wait and its event. A wait for a lock has none here, since the hold of the lock has it; nor
    has a poll, since what the poll saw is received next."""
    event = known.event(exchange)
    takes = waited or event == MEET  # otherwise it is work, as any call
    if takes:
        work.skip(exchange.end_ns)
    else:
        work.until(exchange.end_ns)
    latency = known.latency(exchange.channel)
    if event is not None:
        yield work.cut(event, exchange.channel)
        if event == RECEIVE and exchange.channel in known.full:
            yield work.cut(SEND, _room(exchange.channel))
        if exchange.on == "process":  # another thread may join the ended process too
            yield work.cut(SEND, exchange.channel)
        if takes:
            work.rest(latency, exchange.path if event == MEET else HAND_OVER)
    elif exchange.on == "lock":
        work.owed = latency
    elif not (exchange.kind == "poll" and exchange.on == "pipe" and exchange.channel):
        work.pass_by(exchange)


def _marks(exchanges: Sequence[Exchange]) -> list[tuple[int, str, Exchange]]:
    """A thread's events in order of time. Those that lie within a wait or a send are part of it."""
    outer = exclusive(exchanges)
    marks = [(exchange.begin_ns, 2, exchange.kind, exchange) for exchange in outer]
    begins = [exchange.begin_ns for exchange in outer]
    for hold in exchanges:
        around = bisect_right(begins, hold.begin_ns) - 1
        if hold.kind == "hold" and (around < 0 or outer[around].end_ns <= hold.begin_ns):
            marks += [(hold.begin_ns, 1, ACQUIRE, hold), (hold.end_ns, 0, RELEASE, hold)]
    marks.sort(key=lambda mark: mark[:2])
    return [(at, event, exchange) for at, _, event, exchange in marks]


class _Work:
    """The work of a thread since its last event."""

    def __init__(self, track: Track, of: Spent) -> None:
        self.track, self.of = track, of
        self.at = track.begin_ns
        self.locks: list[str] = []
        self.owed = 0.0  # the hand-over of the lock that it acquires next
        self._changes = phases(track.blocks)
        self._next = 0
        self._path = OUTSIDE
        self._cpu: defaultdict[WorkPart, float] = defaultdict(float)
        self._rest: defaultdict[WorkPart, float] = defaultdict(float)

    def until(self, ns: int, works: bool = True) -> None:
        """Count the time until `ns` as work of the phases in it; without `works`, leave it out."""
        while self._next < len(self._changes) and self._changes[self._next][0] <= ns:
            at, path = self._changes[self._next]
            self._add(at, works)
            self._path = path
            self._next += 1
        self._add(ns, works)

    def skip(self, ns: int) -> None:
        """Leave out the time until `ns`."""
        self.until(ns, works=False)

    def rest(self, seconds: float, path: str | None) -> None:
        """Add seconds that pass without a CPU, for `path` or for the current phase."""
        if seconds > 0:
            self._rest[self._part(path)] += seconds

    def pass_by(self, exchange: Exchange) -> None:
        """An exchange without an event takes as long as it did in the record."""
        took = (exchange.end_ns - exchange.begin_ns) * _NS
        self.rest(took, None if exchange.on in ("sleep", "device") else UNKNOWN)

    def cut(self, event: str, channel: str) -> Stretch:
        """The work so far as a stretch that ends with an event; a new stretch begins."""
        stretch = Stretch(dict(self._cpu), dict(self._rest), event, channel)
        self._cpu.clear()
        self._rest.clear()
        if event == ACQUIRE:
            self.rest(self.owed, HAND_OVER)
            self.owed = 0.0
        return stretch

    def _add(self, ns: int, works: bool) -> None:
        if works and ns > self.at:
            seconds, part = (ns - self.at) * _NS, self._part(None)
            cpu, rest = self.of.shares(self._path)
            if cpu:
                self._cpu[part] += seconds * cpu
            if rest:
                self._rest[part] += seconds * rest
        self.at = max(self.at, ns)

    def _part(self, path: str | None) -> WorkPart:
        lock = self.locks[-1] if self.locks else ""
        return WorkPart(
            self.track.title, self.track.kind, self._path if path is None else path, lock
        )


def phases(blocks: Sequence[Block]) -> list[tuple[int, str]]:
    """The innermost phase from each of these times on."""
    changes: list[tuple[int, str]] = []
    open_: list[Block] = []

    def close(until: float) -> None:
        while open_ and open_[-1].end_ns <= until:
            ended = open_.pop()
            changes.append((ended.end_ns, open_[-1].path if open_ else OUTSIDE))

    for block in sorted(blocks, key=lambda block: (block.begin_ns, -block.end_ns)):
        close(block.begin_ns)
        open_.append(block)
        changes.append((block.begin_ns, block.path))
    close(math.inf)
    return changes
