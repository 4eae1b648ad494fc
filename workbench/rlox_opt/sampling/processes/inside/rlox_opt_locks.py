"""Notes who waits for a lock and who has it, of `threading.Lock` and `multiprocessing.Lock`.

A lock of threads that nobody ever waits for costs 0.2 µs more each time it is taken, and is not
noted. From the first wait on, each time that it is held is. Locks that the standard library and
torch make for themselves are left as they are.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from rlox_opt_hooks import on_import, replace

_THEIRS = frozenset(
    (
        *("threading", "queue", "multiprocessing", "concurrent", "asyncio", "logging", "importlib"),
        *("subprocess", "socketserver", "weakref", "functools", "tempfile", "torch", "numpy"),
    )
)


class Locks:
    """Has the program make locks that are noted, as source "waits"."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("waits")

    def install(self) -> None:
        """From here on; locks that were made before stay as they are."""
        original, locks = threading.Lock, self

        class Made:
            """A class, as `threading.Lock` is from Python 3.13 on: for `Lock | None`."""

            def __new__(cls) -> Any:
                made, frame = original(), sys._getframe(1)
                whose = str(frame.f_globals.get("__name__", "")).partition(".")[0]
                if whose in _THEIRS or whose.startswith("rlox_opt"):
                    return made
                return Lock(locks, made.acquire, made.release, _where(frame), made)

        vars(threading)["Lock"] = Made
        on_import("multiprocessing.synchronize", self._between_processes)

    def name(self) -> str:
        """A name that no other lock of the run has."""
        return f"{self.recorder.key} {next(self.recorder.made)}"

    def _between_processes(self, module: Any) -> None:
        """Their name is the same in all processes; that one of them waits, another cannot know."""

        def make(original: Any) -> Callable[[Any], None]:
            def make_methods(lock: Any) -> None:
                original(lock)
                if type(lock) is module.Lock:
                    inner = lock._semlock
                    own = Lock(self, inner.acquire, inner.release, _outside(), inner)
                    # One that only forks can share has no name; the forks have this one.
                    name = inner.name or self.name()
                    own.contended, own.channel = True, f"lock {name}"
                    lock.acquire, lock.release = own.acquire_shared, own.release

            return make_methods

        replace(module.SemLock, "_make_methods", make)
        replace(module.SemLock, "__enter__", lambda _: lambda lock: lock.acquire())
        replace(module.SemLock, "__exit__", lambda _: lambda lock, *error: lock.release())


class Lock:
    """In place of a lock, whose `take` and `give` are its own."""

    __slots__ = (
        "__weakref__",
        "channel",
        "contended",
        "give",
        "hold",
        "inner",
        "key",
        "locks",
        "since",
        "take",
        "wait",
        "where",
    )

    def __init__(
        self,
        locks: Locks,
        take: Callable[..., bool],
        give: Callable[[], None],
        where: str,
        inner: Any,
    ) -> None:
        self.locks, self.take, self.give, self.where, self.inner = locks, take, give, where, inner
        self.contended, self.since, self.channel, self.key = False, 0, "", ""

    def acquire(self, blocking: bool = True, timeout: float | None = -1) -> bool:
        """As the lock's own."""
        if self.take(False):
            self.since = monotonic_ns()
            return True
        if not blocking:
            return False
        begin = monotonic_ns()
        self.contended = True  # before it is waited for: who has it notes it as it gives it back
        taken = self.take() if timeout in (-1, None) else self.take(True, timeout)
        if taken:
            self.since = monotonic_ns()
            self._name()
            self.locks.source.here().extend((self.wait, begin, self.since))
        return taken

    def acquire_shared(self, block: bool = True, timeout: float | None = None) -> bool:
        """As that of a lock of multiprocessing, to which a negative time is none."""
        return self.acquire(block, None if timeout is None else max(0.0, timeout))

    def release(self) -> None:
        """As the lock's own."""
        if self.contended:
            self._name()
            self.locks.source.here().extend((self.hold, self.since, monotonic_ns()))
        self.give()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return bool(self.inner.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<noted {self.inner!r}>"

    def _at_fork_reinit(self) -> None:
        self.inner._at_fork_reinit()

    def _name(self) -> None:
        """Its numbers in this process: a fork's copy of it is another lock."""
        if self.key != self.locks.recorder.key:
            self.key = self.locks.recorder.key
            channel = self.channel or f"lock {self.locks.name()}"
            index = self.locks.source.index
            self.wait = index(f"lock: {self.where}", "wait", "lock", channel)
            self.hold = index(f"lock: {self.where}", "hold", "lock", channel)


def _where(frame: Any) -> str:
    """ "train.py:41"."""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"  # noqa: PTH119


def _outside() -> str:
    """Where in the program the library was called from that makes the lock."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        whose = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if whose not in _THEIRS and not whose.startswith("rlox_opt"):
            return _where(frame)
        frame = frame.f_back
    return "multiprocessing"
