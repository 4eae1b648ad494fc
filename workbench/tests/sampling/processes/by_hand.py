"""Threads whose past is written by hand, so that what a replay of it takes is known."""

from __future__ import annotations

from collections.abc import Sequence

from rlox_opt.sampling.processes.tracks import MAIN, Block, Exchange, Track

MS = 1_000_000


class Clocked:
    """A thread whose past is written by hand, in milliseconds from 0."""

    def __init__(self, process: str, role: str, pid: int, thread: str = MAIN, tid: int = 0) -> None:
        self.track = Track(pid, tid or pid, process, role, thread, 0, 0)
        self.at = 0.0

    def _until(self, seconds: float) -> tuple[int, int]:
        begin = round(self.at * MS)
        self.at = max(self.at, seconds)
        self.track.end_ns = round(self.at * MS)
        return begin, self.track.end_ns

    def work(self, path: str, ms: float) -> None:
        self.track.blocks.append(Block(path, *self._until(self.at + ms)))

    def send(self, channel: str, on: str = "pipe") -> float:
        self.track.exchanges.append(Exchange("send", on, channel, "send", *self._until(self.at)))
        return self.at

    def wait(self, channel: str, until: float, on: str = "pipe", path: str = "receive") -> None:
        self.track.exchanges.append(Exchange("wait", on, channel, path, *self._until(until)))

    def hold(self, channel: str, path: str, ms: float, part: str) -> None:
        begin = round(self.at * MS)
        self.work(part, ms)
        self.track.exchanges.append(
            Exchange("hold", "lock", channel, path, begin, self.track.end_ns)
        )


def ranks(rounds: int, own: Sequence[float], operations: Sequence[float] = (0.2,)) -> list[Track]:
    """Ranks that work for so many ms, and meet in operations that take so long in turn."""
    found = [Clocked(f"rank {i}", "rank", 10 + i) for i in range(len(own))]
    for number in range(rounds):
        for clocked, ms in zip(found, own, strict=True):
            clocked.work("gradient", ms)
        operation = operations[number % len(operations)]
        together = max(clocked.at for clocked in found) + operation
        for clocked in found:
            clocked.wait("world", together, "collective", "all_reduce")
    return [clocked.track for clocked in found]


def workers(steps: int, own: Sequence[float], learn: float, latency: float = 0.1) -> list[Track]:
    """A main thread that has workers step in turn with its own work."""
    main = Clocked("main", "main", 1)
    found = [Clocked(f"worker {i}", "worker", 10 + i) for i in range(len(own))]
    for _ in range(steps):
        for i, worker in enumerate(found):
            asked = main.send(f"to {i}")
            worker.wait(f"to {i}", asked + latency)
            worker.work("step", own[i])
            worker.send(f"from {i}")
        for i, worker in enumerate(found):
            main.wait(f"from {i}", max(main.at, worker.at + latency))
        main.work("learn", learn)
    return [main.track, *(worker.track for worker in found)]


def contended(turns: int, threads: int, held: float, else_: float) -> list[Track]:
    """Threads that take a lock in turn, first come, first served."""
    found = [Clocked("main", "main", 1, f"T{i}", 1 + i) for i in range(threads)]
    free = 0.0
    left = dict.fromkeys(range(threads), turns)
    ready = dict.fromkeys(range(threads), else_)
    while left:
        i = min(left, key=lambda i: ready[i])
        clocked = found[i]
        clocked.work("else", ready[i] - clocked.at)
        if free > clocked.at:
            clocked.wait("lock 1", free, "lock", "lock: train.py:7")
        clocked.hold("lock 1", "lock: train.py:7", held, "inside")
        free = clocked.at
        ready[i] = clocked.at + else_
        left[i] -= 1
        if not left[i]:
            del left[i]
    return [clocked.track for clocked in found]
