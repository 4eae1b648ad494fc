"""The files of the recorder: lines of JSON, cut into segments of which the last are kept. Also
functions that both the recorder and the workbench need."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterable
from typing import Any

# The environment variables by which a process knows that it belongs to a run.
FOLDER, OPTIONS, GATE = "RLOX_OPT_RECORD", "RLOX_OPT_RECORD_OPTIONS", "RLOX_OPT_RECORD_GATE"
RECORDER = "rlox-opt recorder"  # the thread of each process that writes
EXEC = "exec"  # how a process ended in whose place another program runs


def allow_ptrace() -> None:
    """Let any process of the same user trace this one, where Linux asks for that."""
    if sys.platform == "linux":
        import ctypes

        set_ptracer, anybody = 0x59616D61, ctypes.c_ulong(-1)
        ctypes.CDLL(None).prctl(set_ptracer, anybody, 0, 0, 0)


def read_clock() -> list[int]:
    """The real clock between two readings of the monotonic one, in ns: the closest of five."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(5)]
    before, real, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return [before, real, after]


def time_namespace() -> str | None:
    """An identifier of the monotonic clock that this process reads: processes with the same one
    have the same clock. None if it is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123  # pathlib is slow
            boot = file.read().strip()
        return f"{os.readlink('/proc/self/ns/time')} {boot}"  # noqa: PTH115
    except OSError:
        return None


def encode(integers: Iterable[int]) -> str:
    """Integers as base64 of little-endian int64."""
    words = array("q", integers)
    if sys.byteorder != "little":
        words.byteswap()
    return base64.b64encode(words.tobytes()).decode("ascii")


class Segments:
    """Lines in files of little more than `size` bytes, of which the `most` latest are kept.

    Each file begins with the lines of `preamble(its number)`, so that it can be read alone. They do
    not count towards the size, since a program with many names may have more of them than would
    fit. A program may close descriptors that it did not open, as daemons do, and open a file of its
    own with the same number. Such a file is not touched, and the segment is opened again.
    """

    def __init__(
        self, stem: str, size: int, most: int, preamble: Callable[[int], list[Any]]
    ) -> None:
        self.stem, self.size, self.most, self.preamble = stem, size, most, preamble
        self.number = self._file = -1
        self._identity: tuple[int, ...] = ()
        self._written = 0
        self._next()

    def write(self, entries: list[Any]) -> None:
        """Append entries as lines."""
        if self._written > self.size:
            self._next()
        self._append(entries)

    def close(self) -> None:
        """Close the file, unless the program has taken its descriptor."""
        if self._is_ours():
            os.close(self._file)
        self._file = -1

    def _is_ours(self) -> bool:
        try:
            return os.fstat(self._file)[1:3] == self._identity
        except OSError:  # closed
            return False

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path(self.number), flags, 0o644)
        self._identity = os.fstat(self._file)[1:3]  # inode and device

    def _next(self) -> None:
        self.close()
        self.number += 1
        if self.number >= self.most:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(self.number - self.most))  # noqa: PTH108  # pathlib is slow
        self._open()
        self._append(self.preamble(self.number))
        self._written = 0

    def _path(self, number: int) -> str:
        return f"{self.stem}.{number}.jsonl"

    def _append(self, entries: list[Any]) -> None:
        text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
        data = memoryview(text.encode())
        self._written += len(data)
        if not self._is_ours():
            self._open()
        while data:
            data = data[os.write(self._file, data) :]
