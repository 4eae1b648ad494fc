"""The log of spans that a `Timing` wrote: when each named block of each thread began and ended. The
blocks make a tree of seconds."""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_WORD = 8  # bytes of one integer in the file, little-endian


class Phase(NamedTuple):
    """One block of the tree. `name` is its path, "outer/inner"; `seconds` include inner blocks."""

    name: str
    seconds: float
    self_seconds: float
    calls: int


class Span(NamedTuple):
    """One closed block. `path` is "outer/inner"; the times are of the monotonic clock."""

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


@dataclass
class SpanLog:
    """The closed spans of all threads of a process. One reading of the monotonic and the real clock
    at the same moment allows the logs of several processes to be put on one time axis."""

    paths: list[str] = field(default_factory=list)
    threads: list[ThreadSpans] = field(default_factory=list)
    pid: int = 0
    monotonic_ns: int = 0
    real_ns: int = 0

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

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SpanLog:
        """Read a log that `Timing.spans.save` wrote.

        Raises:
            ValueError: the file is not a span log, or was cut short.
        """
        log = cls()
        with Path(path).open("rb") as file:
            try:
                header = json.loads(file.readline())
                log.pid, log.paths = header["pid"], header["paths"]
                log.monotonic_ns, log.real_ns = header["monotonic_ns"], header["real_ns"]
                entries = header["threads"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{path} is not a span log: its first line has no header"
                ) from error
            for entry in entries:
                raw = file.read(3 * _WORD * entry["spans"])
                if len(raw) != 3 * _WORD * entry["spans"]:
                    raise ValueError(
                        f"{path} was cut short in the spans of thread {entry['name']!r}"
                    )
                words = array("q", raw)
                if sys.byteorder == "big":
                    words.byteswap()
                log.threads.append(ThreadSpans(entry["name"], entry["native_id"], words))
        return log
