"""The threads of this process, and their numbers in its record."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable
from typing import Any


def start_deaf(function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Start a thread that takes none of the program's signals, not even those that all threads of
    the program block: they are for these."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _thread.start_new_thread(function, arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Threads:
    """Numbers by native id and name, as long as a thread runs."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may need a number while one is given
        self.by_number: dict[int, tuple[int, str]] = {}
        self.opened = 0  # the next number
        self._ended: set[int] = set()  # threads that had ended when `forget` was last called
        self._numbers: dict[tuple[int, str | None], int] = {}  # with the name None: the latest

    def number(self, native_id: int, name: str | None = None) -> int:
        """The number of a thread. Without a name it is the latest thread with that id."""
        with self.lock:
            number = self._numbers.get((native_id, name))
            if number is None:
                number = self.opened
                self.by_number[number] = (native_id, name or f"thread {native_id}")
                for known in (self.by_number[number][1], None):
                    self._numbers[native_id, known] = number
                self.opened = number + 1
            return number

    def known(self, native_id: int, name: str) -> int | None:
        """The thread's number, or None without one."""
        return self._numbers.get((native_id, name))

    def rename(self, number: int, native_id: int, name: str) -> None:
        """Make the thread known under another name as well."""
        self._numbers.setdefault((native_id, name), number)

    def items(self) -> list[tuple[int, tuple[int, str]]]:
        """The numbers, with native ids and names."""
        with self.lock:
            return list(self.by_number.items())

    def ended(self, among: list[tuple[int, tuple[int, str]]]) -> set[int]:
        """The numbers of the threads that have ended."""
        living = _living()
        if threading.get_native_id() not in living:  # there is no /proc, or it has other ids
            return set()
        return {number for number, (native_id, _) in among if native_id not in living}

    def forget(self, ended: set[int]) -> None:
        """Forget the threads that were in `ended` last time too. Those that ended just now are kept
        once more, since a segment that begins with their last data must still name them."""
        with self.lock:
            for number in self._ended & ended:
                native_id, name = self.by_number.pop(number)
                for known in (name, None):
                    if self._numbers.get((native_id, known)) == number:
                        del self._numbers[native_id, known]
            self._ended = ended - self._ended


def _living() -> set[int]:
    """The kernel's ids of this process's threads; none where there is no /proc."""
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208
    except OSError:
        return set()
