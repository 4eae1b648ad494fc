"""Computes how a recorded program would run if some of its work were faster.

A thread is a list of stretches of work. Each stretch ends with an event: the thread sends to a
channel or receives from one, meets others, acquires a lock or releases it. A replay keeps what the
events mean and forgets when they happened. A receiver waits if nothing has been sent yet, a lock
has one holder, and the length of the whole follows from that. So a replay shows how a change of one
part would change the whole, where the part's share only says how long the part is. Threads share
the cores evenly, and the threads of one interpreter share its lock evenly.

Causal profiling (Curtsinger and Berger, Coz, SOSP 2015) answers the same question on a running
program, by slowing down all other parts. Critical paths of message-passing programs are older (Yang
and Miller, Critical path analysis for the execution of parallel and distributed programs, ICDCS
1988).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

SEND, RECEIVE, MEET, ACQUIRE, RELEASE, END = "send", "receive", "meet", "acquire", "release", "end"
Purpose = Any  # what work is for; any value that can be a dictionary's key
Scale = Callable[[Purpose], float]  # the fraction of a part's time that is left


class Stretch(NamedTuple):
    """A thread's work up to an event, in seconds: `cpu` needs a core, `rest` passes without one
    (sleep, a disk, a hand-over)."""

    cpu: Mapping[Purpose, float]
    rest: Mapping[Purpose, float]
    event: str = END
    channel: str = ""


@dataclass(frozen=True)
class Program:
    """A thread. `shares` names the interpreter whose lock all its work needs; "" for none. The run
    is over when all threads with `goal` are done."""

    name: str
    stretches: Sequence[Stretch]
    shares: str = ""
    goal: bool = True


@dataclass
class Replay:
    """The result, in seconds from the beginning: of each program and stretch when it `began`, when
    its work was `done`, and when the thread `left` its event. `by` is the (program, stretch) that
    ended a waiting event. `stuck` names threads that waited for an event that never came."""

    seconds: float
    began: list[list[float]]
    done: list[list[float]]
    left: list[list[float]]
    by: list[list[tuple[int, int] | None]]
    stuck: list[str]
    last: int


def unchanged(_: Purpose) -> float:
    """All work takes as long as it did."""
    return 1.0


def replay(
    programs: Sequence[Program],
    cores: int,
    scale: Scale = unchanged,
    there: Mapping[str, int] | None = None,
) -> Replay:
    """The programs from their beginning to their end.

    Args:
        cores: the number of cores that all threads share.
        scale: the fraction of a part's time that is left: 0.5 halves it, 0.0 removes the part.
        there: the number of messages in each channel at the beginning.

    Raises:
        ValueError: no program is a goal, or `cores` is less than 1.
    """
    if cores < 1 or not any(program.goal for program in programs):
        raise ValueError(f"{cores} cores and {len(programs)} programs: expected one and a goal")
    return _Run(programs, cores, scale, there or {}).run()


def path(programs: Sequence[Program], of: Replay) -> dict[Purpose, float]:
    """Seconds of each part on the critical path, the largest first. The path is followed backwards
    from the end: a thread's work since it last waited, then the work of the thread it waited
    for."""
    seconds_of: defaultdict[Purpose, float] = defaultdict(float)
    index, number = of.last, len(of.done[of.last]) - 1
    while number >= 0:
        stretch = programs[index].stretches[number]
        took = of.done[index][number] - of.began[index][number]
        parts = [*stretch.cpu.items(), *stretch.rest.items()]
        whole = sum(seconds for _, seconds in parts)
        for part, seconds in parts if whole else ():
            seconds_of[part] += took * seconds / whole
        number -= 1
        if number >= 0 and (ended := of.by[index][number]) is not None:
            index, number = ended
    return dict(sorted(seconds_of.items(), key=lambda item: -item[1]))


class _Thread:
    """The state of a program during the replay."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.number = -1  # of its current stretch
        self.cpu = self.rest = 0.0  # what is left of the stretch
        self.waits = self.ended = False
        self.began: list[float] = []
        self.done: list[float] = []
        self.left: list[float] = []
        self.by: list[tuple[int, int] | None] = []


class _Run:
    def __init__(
        self, programs: Sequence[Program], cores: int, scale: Scale, there: Mapping[str, int]
    ) -> None:
        self.threads = [_Thread(program) for program in programs]
        self.cores, self.scale = cores, scale
        self.now = 0.0
        self.sent = defaultdict(int, there)  # messages in a channel that were not received yet
        self.held: set[str] = set()
        self.queues: defaultdict[str, deque[int]] = defaultdict(deque)  # waiting threads, in order
        self.meets = _meets(programs)

    def run(self) -> Replay:
        threads = self.threads
        for index in range(len(threads)):
            self._next(index)
        while any(t.program.goal and not t.ended for t in threads):
            working = [i for i, t in enumerate(threads) if not t.waits and not t.ended]
            if not working:
                break
            for index in self._work(working):
                self._event(index)
        goals = [i for i, t in enumerate(threads) if t.program.goal]
        return Replay(
            self.now,
            [t.began for t in threads],
            [t.done for t in threads],
            [t.left for t in threads],
            [t.by for t in threads],
            stuck=[threads[i].program.name for i in goals if threads[i].waits],
            last=max(goals, key=lambda i: threads[i].done[-1] if threads[i].done else 0.0),
        )

    def _work(self, working: Sequence[int]) -> list[int]:
        """Go on until the work of some threads is done. Returns these threads."""
        threads = [self.threads[i] for i in working]
        sharing = Counter(t.program.shares for t in threads if not t.rest)
        sharing[""] = 1
        rates = [1.0 if t.rest else 1 / sharing[t.program.shares] for t in threads]
        wanted = sum(rate for t, rate in zip(threads, rates, strict=True) if not t.rest)
        if wanted > self.cores:
            rates = [rate * self.cores / wanted for rate in rates]
        # A stretch's rest comes before its work on a core: a hand-over before what follows it.
        needed = [t.rest or t.cpu / rate for t, rate in zip(threads, rates, strict=True)]
        step = min(needed)
        self.now += step
        ready = []
        for index, thread, rate, need in zip(working, threads, rates, needed, strict=True):
            if thread.rest:
                thread.rest = 0.0 if need <= step else thread.rest - step
            else:
                thread.cpu = 0.0 if need <= step else thread.cpu - step * rate
            if not thread.rest and not thread.cpu:
                ready.append(index)
        return ready

    def _event(self, index: int) -> None:
        """A thread has done its work up to its event."""
        thread = self.threads[index]
        stretch = thread.program.stretches[thread.number]
        channel, this = stretch.channel, (index, thread.number)
        thread.done.append(self.now)
        queue = self.queues[channel]
        match stretch.event:
            case "send":
                if queue:
                    self._leave(queue.popleft(), this)
                else:
                    self.sent[channel] += 1
            case "receive" if not self.sent[channel]:
                thread.waits = True
            case "receive":
                self.sent[channel] -= 1
            case "meet":
                members = self.meets[channel]
                thread.waits = len(queue) + 1 < members[0]
                if not thread.waits:
                    members.popleft()
                    while queue:
                        self._leave(queue.popleft(), this)
            case "acquire":
                thread.waits = channel in self.held
                self.held.add(channel)
            case "release" if queue:  # the next holder gets the lock directly
                self._leave(queue.popleft(), this)
            case "release":
                self.held.discard(channel)
        if thread.waits:
            queue.append(index)
        else:
            self._leave(index, None)

    def _leave(self, index: int, by: tuple[int, int] | None) -> None:
        thread = self.threads[index]
        thread.waits = False
        thread.left.append(self.now)
        thread.by.append(by)
        self._next(index)

    def _next(self, index: int) -> None:
        thread = self.threads[index]
        thread.number += 1
        if thread.number == len(thread.program.stretches):
            thread.ended = True
            return
        stretch = thread.program.stretches[thread.number]
        thread.cpu, thread.rest = (
            sum(seconds * self.scale(part) for part, seconds in of.items())
            for of in (stretch.cpu, stretch.rest)
        )
        thread.began.append(self.now)


def _meets(programs: Sequence[Program]) -> dict[str, deque[int]]:
    """The number of members of each meeting of a channel: the threads whose programs have it."""
    counts: defaultdict[str, list[int]] = defaultdict(list)
    for program in programs:
        own = Counter(s.channel for s in program.stretches if s.event == MEET)
        for channel, count in own.items():
            counts[channel].append(count)
    return {
        channel: deque(sum(own > number for own in numbers) for number in range(max(numbers)))
        for channel, numbers in counts.items()
    }
