"""Threads that hold the interpreter's lock, and one that releases it for its work."""

import hashlib
import json
import threading
import zlib

from _clock import Clock

DATA = [{"id": i, "name": f"entry {i}", "values": list(range(20))} for i in range(400)]
BLOCK = bytes(range(256)) * 4096
over = threading.Event()


def counts() -> int:
    total = 0
    for i in range(150_000):
        total += i % 13
    return total


def holds() -> None:
    clock = Clock()
    while not over.is_set():
        with clock.part("python"):
            json.loads(json.dumps(DATA))
        with clock.waiting(0.01):
            over.wait(0.01)
    clock.tell()


def releases() -> None:
    clock = Clock()
    while not over.is_set():
        with clock.part("native"):
            for _ in range(4):
                hashlib.sha256(BLOCK).digest()
            zlib.compress(BLOCK, 6)
        with clock.waiting(0.03):
            over.wait(0.03)
    clock.tell()


def main() -> None:
    threads = [
        threading.Thread(target=of, name=name)
        for name, of in (("holder", holds), ("releaser", releases))
    ]
    for thread in threads:
        thread.start()
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            counts()
        with clock.waiting(0.02):
            over.wait(0.02)
    over.set()
    for thread in threads:
        thread.join()
    clock.tell()


if __name__ == "__main__":
    main()
