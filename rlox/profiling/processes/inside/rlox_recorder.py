"""Records what this process does, for a run of several processes (`rlox.profiling.processes`).

It lies in a folder of its own, which `PYTHONPATH` leads every Python process of the run to, so it
needs nothing but the standard library: the program's environment may have no rlox. `sitecustomize`
beside it starts it where `RLOX_RECORD` names a folder. The form of the files is told in `format`.

Recording costs the program an append of three integers a span. Four times a second a thread takes
what was appended, and writes it. No thread of ours lives through a fork: a lock that it held would
stay locked in the child.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER, OPTIONS, PARENT = "RLOX_RECORD", "RLOX_RECORD_OPTIONS", "RLOX_RECORD_PARENT"
SCHEMA = 1
_FLUSH_S = 0.25
_SLOW_FLUSHES = 20  # flushes between two clocks and totals


def read_clock() -> list[int]:
    """The real clock between two readings of the monotonic one: the closest of five, ns."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(5)]
    return list(min(readings, key=lambda reading: reading[2] - reading[0]))


class Segments:
    """Lines in files of at most `size` bytes or so, of which the `most` latest are kept.

    Each begins with the lines of `preamble`, so that it can be read without those before it.
    """

    def __init__(self, stem: str, size: int, most: int, preamble: Callable[[int], list[Any]]):
        self.stem, self.size, self.most, self.preamble = stem, size, most, preamble
        self.number = -1
        self._file = -1
        self._written = 0
        self._next()

    def write(self, entries: list[Any]) -> None:
        """Append entries as lines, in one write: a reader finds whole lines or none."""
        if self._written > self.size:
            self._next()
        self._append(entries)

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _next(self) -> None:
        self.close()
        self.number += 1
        if self.number >= self.most:
            Path(f"{self.stem}.{self.number - self.most}.jsonl").unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(f"{self.stem}.{self.number}.jsonl", flags, 0o644)
        self._written = 0
        self._append(self.preamble(self.number))

    def _append(self, entries: list[Any]) -> None:
        text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
        data = memoryview(text.encode())
        self._written += len(data)
        while data:
            data = data[os.write(self._file, data) :]


def encode(words: array[int]) -> str:
    """Integers as base64 of little-endian int64."""
    if sys.byteorder != "little":
        words = words[:]
        words.byteswap()
    return base64.b64encode(words.tobytes()).decode("ascii")
