"""Programs of several processes and threads whose composition is known: `known_programs.py NAME
SECONDS [PART=FACTOR …]`, which makes a part's work so many times as long.

Work is measured by the thread's own CPU clock, so it is known however the machine shares its cores.
At the end one line of JSON on stdout says how long a turn took.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from multiprocessing.connection import Connection

from rlox.timing import Timing

# Milliseconds of CPU of a turn. A rank, a worker or a thread that has a part of its own straggles.
PARTS = {
    "ranks": {"gradient 0": 4.0, "gradient 1": 8.0, "store": 1.0},
    "workers": {"step 0": 1.0, "step 1": 1.0, "step 2": 4.0, "step 3": 1.0, "learn": 3.0},
    "lock": {"outside": 1.5, "inside": 4.0},
    "gil": {"learn": 3.0, "log": 4.0},
}
_BLOCK = bytes(1 << 18)  # hashed without the interpreter's lock


class Work:
    """Does the work of its parts; the excess of one turn is subtracted from the next."""

    def __init__(self, parts: dict[str, float], timing: Timing) -> None:
        self.parts, self.timing = parts, timing
        self.owed: defaultdict[str, float] = defaultdict(float)

    def do(self, part: str, phase: str, free: bool = False) -> None:
        """A turn's work for `part`, in `phase`; `free` is without the interpreter's lock."""
        with self.timing.add_time(phase):
            until = time.thread_time() + self.parts[part] * 1e-3 - self.owed[part]
            while time.thread_time() < until:
                if free:
                    hashlib.sha256(_BLOCK).digest()
            self.owed[part] = time.thread_time() - until


class Until:
    """Turns until the time is over; their number, and the length of one."""

    def __init__(self, seconds: float) -> None:
        self.turns, self.begin = 0, time.monotonic()
        self.end = self.begin + seconds

    def go_on(self) -> bool:
        self.now = time.monotonic()
        over = self.now >= self.end
        self.turns += not over
        return not over

    def tell(self) -> None:
        turn = (self.now - self.begin) / self.turns
        print(json.dumps({"turn_s": turn, "turns": self.turns}), flush=True)


def ranks(work: Work, seconds: float) -> None:
    """Two ranks that sum their gradients, started as torchrun would start them."""
    import torch
    import torch.distributed as dist

    if "RANK" not in os.environ:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        env = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started = [
            subprocess.Popen([sys.executable, *sys.argv], env=env | {"RANK": str(rank)})
            for rank in range(2)
        ]
        assert [process.wait() for process in started] == [0, 0]
        return
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, grads = dist.get_rank(), torch.zeros(1000)
    over = torch.zeros(1)
    dist.all_reduce(over)
    turns = Until(seconds)
    while not over.item():
        work.do("store", "store")
        work.do(f"gradient {rank}", "gradient")
        with work.timing.add_time("reduce"):
            dist.all_reduce(grads)
            over[0] = not turns.go_on()
            dist.broadcast(over, 0)
    if rank == 0:
        turns.tell()
    dist.destroy_process_group()


def _worker(work: Work, index: int, pipe: Connection) -> None:
    while pipe.recv():
        work.do(f"step {index}", "step")
        pipe.send(index)


def workers(work: Work, seconds: float) -> None:
    """Four workers that step at the same time, then the learner, as in a vector environment."""
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for index in range(4):
        ours, theirs = context.Pipe()
        processes.append(
            context.Process(target=_worker, args=(work, index, theirs), name=f"worker-{index}")
        )
        processes[-1].start()
        pipes.append(ours)
    turns = Until(seconds)
    while turns.go_on():
        for pipe in pipes:
            pipe.send(True)
        for pipe in pipes:
            pipe.recv()
        work.do("learn", "learn")
    for pipe in pipes:
        pipe.send(False)
    for process in processes:
        process.join()
    turns.tell()


def lock(work: Work, seconds: float) -> None:
    """Three threads that need one lock; their work does not need the interpreter."""
    shared = threading.Lock()
    turns = Until(seconds)

    def thread() -> None:
        own = Work(work.parts, work.timing)
        while time.monotonic() < turns.end:
            own.do("outside", "outside", free=True)
            with shared:
                turns.turns += 1
                own.do("inside", "inside", free=True)

    threads = [threading.Thread(target=thread, name=f"worker-{i}") for i in range(3)]
    for started in threads:
        started.start()
    for started in threads:
        started.join()
    turns.now = time.monotonic()
    turns.tell()


def gil(work: Work, seconds: float) -> None:
    """A learner, and a thread that logs for it, both in Python, so that each delays the other."""
    turns = Until(seconds)
    logger = Work(work.parts, work.timing)
    todo: queue.Queue[bool] = queue.Queue(maxsize=4)

    def log() -> None:
        while todo.get():
            logger.do("log", "log")

    thread = threading.Thread(target=log, name="logger")
    thread.start()
    while turns.go_on():
        work.do("learn", "learn")
        todo.put(True)
    todo.put(False)
    thread.join()
    turns.tell()


def main(name: str, seconds: float, *factors: str) -> None:
    parts = dict(PARTS[name])
    for factor in factors:
        part, _, times = factor.partition("=")
        for known in parts:
            if known == part or known.rstrip(" 0123456789") == part:
                parts[known] *= float(times)
    {"ranks": ranks, "workers": workers, "lock": lock, "gil": gil}[name](
        Work(parts, Timing(name)), seconds
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
