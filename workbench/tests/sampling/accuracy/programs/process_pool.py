"""A pool of processes: workers in Python, NumPy and a library, and who waits for them."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import hashlib
import multiprocessing
import time

import numpy as np
from _clock import SECONDS, Clock

BLOCK = bytes(1 << 20)
table = np.random.default_rng(0).normal(size=(300, 500))
buffer = np.empty_like(table)  # new memory at every call would be the kernel's work


def work(index: int) -> int:
    """One worker's life, which is one task of the pool, so that it can tell its composition."""
    clock, total = Clock(), 0
    while clock.go_on():
        with clock.part("python"):
            for i in range((200_000, 90_000)[index]):
                total += i * i % 7
        with clock.part("numpy"):
            for _ in range((1, 3)[index]):
                np.tanh(table, out=buffer)
                buffer.sort()
                total += int(buffer.sum())
        with clock.part("native"):
            for _ in range(8):
                total += hashlib.sha256(BLOCK).digest()[0]
        with clock.waiting(0.01):
            time.sleep(0.01)
    clock.tell()
    return total


def main() -> None:
    clock = Clock()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map_async(work, range(2), chunksize=1)
        while not results.ready():
            with clock.part("python"):
                sum(i * i % 7 for i in range(50_000))
            with clock.waiting(0.05):
                results.wait(0.05)
    clock.tell()


if __name__ == "__main__":
    assert SECONDS > 0
    main()
