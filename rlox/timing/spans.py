"""The log of closed spans: when each named block of each thread began and ended.

A log has three integers for each span, in one `array` per thread. So the garbage collector has no
objects to visit, a span takes 24 bytes, and no lock is needed, since each thread has its own array.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Span(NamedTuple):
    """One closed block: `path` is "outer/inner", the times are of the monotonic clock."""

    path: str
    start_ns: int
    end_ns: int
    thread: str


@dataclass
class ThreadSpans:
    """The spans of one thread: `data` is path index, start, end, repeated, in order of closing."""

    name: str
    native_id: int  # the kernel's thread id, by which perf knows the thread
    data: array[int]

    def __len__(self) -> int:
        return len(self.data) // 3


class SpanLog:
    """Closed spans of all threads, with one reading of the monotonic and the real clock.

    The pair of readings allows the logs of several processes to be put on one time axis.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.threads: list[ThreadSpans] = []
        self.pid = os.getpid()
        self.monotonic_ns, self.real_ns = time.perf_counter_ns(), time.time_ns()

    def open_thread(self, name: str, native_id: int) -> ThreadSpans:
        """A new, empty list of spans for one thread."""
        spans = ThreadSpans(name, native_id, array("q"))
        self.threads.append(spans)
        return spans

    def __len__(self) -> int:
        return sum(map(len, self.threads))

    def __iter__(self) -> Iterator[Span]:
        """The spans of one thread after the other, each in the order in which they closed."""
        for thread in self.threads:
            words = iter(thread.data)
            for index, start, end in zip(words, words, words, strict=True):
                yield Span(self.paths[index], start, end, thread.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log: a line of JSON, then each thread's integers (64 bits, little-endian)."""
        header = {
            "schema": 1,
            "pid": self.pid,
            "monotonic_ns": self.monotonic_ns,
            "real_ns": self.real_ns,
            "paths": self.paths,
            "threads": [
                {"name": t.name, "native_id": t.native_id, "spans": len(t)} for t in self.threads
            ],
        }
        with Path(path).open("wb") as file:
            file.write(json.dumps(header).encode() + b"\n")
            for thread, entry in zip(self.threads, header["threads"], strict=True):  # type: ignore[call-overload]
                # Cut to the announced length, since another thread may have appended meanwhile.
                file.write(_little_endian(thread.data[: 3 * entry["spans"]]).tobytes())


def _little_endian(words: array[int]) -> array[int]:
    """The array in the file's byte order (a swapped copy on a big-endian machine)."""
    if sys.byteorder == "little":
        return words
    swapped = words[:]
    swapped.byteswap()
    return swapped
