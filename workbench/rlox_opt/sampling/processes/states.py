"""Divides a thread's time: busy, waiting and for whom, kept off the CPU, idle.

Waits that the program's own functions recorded are taken as they are. The remaining time is busy
for as long as the kernel says that the thread ran. What is left then is divided by the states in
which the thread was seen: waiting for the interpreter's lock, for other locks, for a pipe, asleep.
Without a watch all remaining time counts as busy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rlox_opt.sampling.processes.programs import BLOCKED_NS, Spent
from rlox_opt.sampling.processes.running import shares
from rlox_opt.sampling.processes.tracks import Exchange, Track, exclusive
from rlox_opt.sampling.processes.watch import Seen, Watch

_NS = 1e-9
_UNKNOWN = "unknown"
_SEEN_WAITING = ("gil", "lock", "pipe", "process")  # the other states count as idle
_GIL_BOUND = 0.02  # of the time of a process's threads outside waits
_WINDOW_NS = 100_000_000  # several looks, since the kernel's figures come in ticks
_TOGETHER = 0.1  # of the time that its threads ran
SEEN = "as seen from outside"
OPERATION = "nobody: the operation itself"


@dataclass(frozen=True)
class Wait:
    """Seconds that a thread waited `on` a kind of thing, described by `what`, for `whom`."""

    on: str
    what: str
    whom: str
    seconds: float


@dataclass(frozen=True)
class Division:
    """A thread's `wall` seconds are the sum of `busy`, `kept` (ready to run while others had the
    CPUs), those of `waits` (the longest first) and `idle`. Idle time is `asleep` if the thread
    chose to sleep; what it waited for otherwise is not known. `running` is the share of each phase,
    outside recorded waits, in which it ran. `gil` says whether the threads of its process run one
    at a time."""

    track: str
    kind: str
    wall: float
    busy: float
    kept: float
    idle: float
    waits: tuple[Wait, ...]
    watched: bool
    asleep: float = 0.0
    running: Mapping[str, float] = field(default_factory=dict)
    gil: bool = False

    @property
    def waiting(self) -> float:
        return sum(wait.seconds for wait in self.waits)

    def of(self, on: str) -> float:
        """Seconds waited on a kind of thing."""
        return sum(wait.seconds for wait in self.waits if wait.on == on)

    @property
    def outside(self) -> float:
        """Seconds outside recorded waits and sleep."""
        noted = sum(wait.seconds for wait in self.waits if wait.what != SEEN)
        return self.wall - noted - self.asleep

    @property
    def spent(self) -> Spent:
        """How it spent its time outside recorded waits and sleep, for a replay."""
        outside = self.outside
        if not self.watched or outside <= 0:
            return Spent()
        gil = self.of("gil") if self.gil else 0.0
        rest = max(0.0, outside - self.busy - self.kept - gil)
        return Spent(self.busy / outside, rest / outside, self.gil, self.running)


def divide(tracks: Sequence[Track], watch: Watch) -> list[Division]:
    """The division of each thread's time; its parts sum to `wall`."""
    whom = _Whom(tracks)
    waits = [list(_blocked(track)) for track in tracks]
    # Keyed by object: a program that took another's place has the same pid and tid.
    ran = {
        id(track): _outside(seen, seen.ran, track, own)
        for track, own in zip(tracks, waits, strict=True)
        if (seen := watch.of(track.pid, track.tid)) is not None
    }
    divisions = [
        _divided(track, own, tracks, watch, whom, ran)
        for track, own in zip(tracks, waits, strict=True)
    ]
    of_process: defaultdict[str, list[tuple[Track, Division]]] = defaultdict(list)
    for track, division in zip(tracks, divisions, strict=True):
        of_process[track.process].append((track, division))
    alternate = {who: _one_at_a_time(threads, watch) for who, threads in of_process.items()}
    return [
        replace(division, gil=alternate[track.process])
        for track, division in zip(tracks, divisions, strict=True)
    ]


def _one_at_a_time(threads: Sequence[tuple[Track, Division]], watch: Watch) -> bool:
    """Whether the threads of a process wait for the interpreter and hardly ever run together. They
    run together where the sum of their running time in a window exceeds the window's length."""
    watched = [
        (track, division, seen)
        for track, division in threads
        if (seen := watch.of(track.pid, track.tid)) is not None
    ]
    waited = sum(division.of("gil") for _, division, _ in watched)
    if waited <= _GIL_BOUND * sum(division.outside for _, division, _ in watched):
        return False
    begin, end = (side([s.at[i] for *_, s in watched]) for side, i in ((min, 0), (max, -1)))
    edges = np.arange(begin, end + _WINDOW_NS, _WINDOW_NS)
    ran = np.zeros(len(edges) - 1)
    for track, _, seen in watched:
        within = np.clip(edges, track.begin_ns, track.end_ns)
        ran += np.diff(np.interp(within, seen.at, seen.ran))
    return bool(np.maximum(0.0, ran - _WINDOW_NS).sum() <= _TOGETHER * ran.sum())


def _outside(seen: Seen, what: Sequence[int], track: Track, waits: Sequence[Exchange]) -> float:
    """Seconds of `what` (`Seen.spent`) outside recorded waits; within them a thread may spin. A
    wait with fewer than two looks in it is taken to be one without spinning."""
    seconds = seen.spent(what, track.begin_ns, track.end_ns)
    for wait in waits:
        if wait.on != "sleep":  # a sleeping thread does not spin
            seconds -= seen.within(what, wait.begin_ns, wait.end_ns)
    return max(0.0, seconds)


def _divided(
    track: Track,
    waits: Sequence[Exchange],
    tracks: Sequence[Track],
    watch: Watch,
    whom: _Whom,
    ran: Mapping[int, float],
) -> Division:
    noted: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    asleep = 0.0
    intervals: list[tuple[int, int]] = []
    for wait in waits:
        seconds = (wait.end_ns - wait.begin_ns) * _NS
        intervals.append((wait.begin_ns, wait.end_ns))
        if wait.on == "sleep":
            asleep += seconds
            continue
        for name, share in whom.of(track, wait).items():
            noted[wait.on, wait.path, name] += seconds * share
    wall = (track.end_ns - track.begin_ns) * _NS
    outside = max(0.0, wall - asleep - sum(noted.values()))
    busy, kept, idle = outside, 0.0, asleep
    seen = watch.of(track.pid, track.tid)
    if seen is not None:
        busy = min(outside, ran[id(track)])
        states = seen.states(intervals, track.begin_ns, track.end_ns)
        looks = sum(states.values())
        if looks:
            ready = outside * states["running"] / looks - busy
            most = _outside(seen, seen.kept, track, waits)
            kept = min(max(0.0, ready), most, outside - busy)
        left = outside - busy - kept
        away = looks - states["running"]
        for state in _SEEN_WAITING if away else ():
            if seconds := left * states[state] / away:
                for name, share in _others(state, track, tracks, ran).items():
                    noted[state, SEEN, name] += seconds * share
        waited = sum(states[state] for state in _SEEN_WAITING)
        idle += left * (1 - waited / away) if away else left
    told = [Wait(*what, seconds) for what, seconds in noted.items()]
    return Division(
        *(track.title, track.kind, wall, busy, kept, idle),
        tuple(sorted(told, key=lambda wait: -wait.seconds)),
        seen is not None,
        asleep,
        {} if seen is None else shares(track, seen, intervals),
    )


def _blocked(track: Track) -> Iterator[Exchange]:
    """The exchanges in which it may have waited: a send, too, waits for room."""
    for exchange in exclusive(track.exchanges):
        if exchange.end_ns - exchange.begin_ns > BLOCKED_NS:
            yield exchange


def _others(
    state: str, track: Track, tracks: Sequence[Track], ran: Mapping[int, float]
) -> dict[str, float]:
    """For whom a thread waited that was seen waiting. For the interpreter: its threads that ran, in
    proportion to their running time. For other things this is not known."""
    beside = {
        other.title: ran.get(id(other), 0.0)
        for other in tracks
        if other.process == track.process and other.tid != track.tid
    }
    return _fractions(beside if state == "gil" else {})


def _fractions(amounts: Mapping[str, float]) -> dict[str, float]:
    """Each amount's share of the sum; if the sum is 0, all of it is unknown."""
    total = sum(amounts.values())
    return {who: of / total for who, of in amounts.items() if of} if total else {_UNKNOWN: 1.0}


class _Whom:
    """Which threads end the waits of others."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self.givers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.takers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.shared: defaultdict[str, list[tuple[Exchange, str]]] = defaultdict(list)
        self.processes = {str(track.pid): track.process for track in tracks}
        for track in tracks:
            for exchange in track.exchanges:
                if exchange.kind == "send":
                    self.givers[exchange.channel][track.title] += 1
                elif exchange.kind == "wait":
                    self.takers[exchange.channel][track.title] += 1
                if exchange.kind == "hold" or exchange.on == "collective":
                    self.shared[exchange.channel].append((exchange, track.title))
        self._begins: dict[str, list[int]] = {}
        self._longest: dict[str, int] = {}
        for channel, spans in self.shared.items():
            spans.sort(key=lambda pair: pair[0].begin_ns)
            self._begins[channel] = [exchange.begin_ns for exchange, _ in spans]
            self._longest[channel] = max(p.end_ns - p.begin_ns for p, _ in spans)

    def of(self, track: Track, wait: Exchange) -> dict[str, float]:
        """The threads that a wait was for, with shares that sum to 1."""
        if wait.on == "process":
            return {self.processes.get(wait.channel, _UNKNOWN): 1.0}
        if wait.on == "lock":
            return self._held(track, wait)
        if wait.on == "collective":
            return self._last(wait)
        others_of = (self.takers if wait.kind == "send" else self.givers)[wait.channel]
        return _fractions({title: n for title, n in others_of.items() if title != track.title})

    def _beside(self, wait: Exchange) -> Iterator[tuple[Exchange, str]]:
        """Holds, or members of collectives, that overlap a wait."""
        begins = self._begins.get(wait.channel, [])
        longest = self._longest.get(wait.channel, 0)
        first = bisect_left(begins, wait.begin_ns - longest)
        for exchange, title in self.shared[wait.channel][first : bisect_right(begins, wait.end_ns)]:
            if exchange.end_ns > wait.begin_ns and exchange.begin_ns < wait.end_ns:
                yield exchange, title

    def _held(self, track: Track, wait: Exchange) -> dict[str, float]:
        held_ns = Counter[str]()
        for hold, title in self._beside(wait):
            if hold.kind == "hold" and title != track.title:
                held_ns[title] += min(hold.end_ns, wait.end_ns) - max(hold.begin_ns, wait.begin_ns)
        return _fractions(held_ns)

    def _last(self, wait: Exchange) -> dict[str, float]:
        """For a collective: until the last member arrives, the wait is for that member, and then
        for the operation itself. A member that has already left may be in the next collective."""
        same: dict[str, tuple[int, Exchange]] = {}
        for exchange, title in self._beside(wait):
            together = min(exchange.end_ns, wait.end_ns) - max(exchange.begin_ns, wait.begin_ns)
            same[title] = max(same.get(title, (0, exchange)), (together, exchange))
        title, (_, last) = max(same.items(), key=lambda item: item[1][1].begin_ns)
        before = max(0, last.begin_ns - wait.begin_ns) / (wait.end_ns - wait.begin_ns)
        return {title: before, OPERATION: 1 - before} if before else {OPERATION: 1.0}
