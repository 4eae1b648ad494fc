"""Records who waits for a lock and who holds it, for `threading.Lock` and `multiprocessing.Lock`.

A threads' lock that nobody ever waits for costs 0.2 µs more each time it is acquired, and is not
recorded. After the first wait, each time that it is held is recorded. Locks that the standard
library and torch make for themselves are not replaced.
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
    """Makes the program's locks record themselves, as source "waits"."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("waits")

    def install(self) -> None:
        """Replace the constructors of locks. Locks that exist already are not recorded."""
        original, locks = threading.Lock, self
        theirs = type(original())

        class Kind(type):
            """Takes for an instance what a program takes for a lock, noted or not."""

            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, (Lock, theirs))

        class Made(metaclass=Kind):
            """A class, since from Python 3.13 `threading.Lock` is one: a program may write
            `Lock | None`, or ask whether something is an instance of it."""

            def __new__(cls) -> Any:
                made, frame = original(), sys._getframe(1)
                whose = str(frame.f_globals.get("__name__", "")).partition(".")[0]
                if whose in _THEIRS or whose.startswith("rlox_opt"):
                    return made
                return Lock(locks, made.acquire, made.release, _where(frame), made)

        # Under the name of what it stands for, a reference to it can be pickled.
        Made.__module__, Made.__name__, Made.__qualname__ = "threading", "Lock", "Lock"
        vars(threading)["Lock"] = Made
        on_import("multiprocessing.synchronize", self._between_processes)

    def name(self) -> str:
        """A name that no other lock of the run has."""
        return f"{self.recorder.key} {next(self.recorder.made)}"

    def _between_processes(self, module: Any) -> None:
        """Record multiprocessing's locks at each use: their name is the same in all processes, but
        no process knows whether another one waits."""

        def make(original: Any) -> Callable[[Any], None]:
            def make_methods(lock: Any) -> None:
                original(lock)
                if type(lock) is module.Lock:
                    inner = lock._semlock
                    own = Lock(self, inner.acquire, inner.release, _outside(), inner)
                    # A lock that only forks can share has no name; forks inherit this one.
                    name = inner.name or self.name()
                    own.contended, own.channel = True, f"lock {name}"
                    lock.acquire, lock.release = own.acquire_shared, own.release

            return make_methods

        replace(module.SemLock, "_make_methods", make)
        replace(module.SemLock, "__enter__", lambda _: lambda lock: lock.acquire())
        replace(module.SemLock, "__exit__", lambda _: lambda lock, *error: lock.release())


class Lock:
    """Stands in for a lock, whose own methods are `take` and `give`."""

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
        """As the lock's own method."""
        if self.take(False):
            self.since = monotonic_ns()
            return True
        if not blocking:
            return False
        begin = monotonic_ns()
        self.contended = True  # set before waiting, so that the holder records its hold at release
        taken = self.take() if timeout in (-1, None) else self.take(True, timeout)
        if taken:
            self.since = monotonic_ns()
            self._name()
            self.locks.source.here().extend((self.wait, begin, self.since))
        return taken

    def acquire_shared(self, block: bool = True, timeout: float | None = None) -> bool:
        """As the method of a multiprocessing lock, which takes a negative time as 0."""
        return self.acquire(block, None if timeout is None else max(0.0, timeout))

    def release(self) -> None:
        """As the lock's own method."""
        if self.contended:
            self._name()
            self.locks.source.here().extend((self.hold, self.since, monotonic_ns()))
        self.give()

    def locked(self) -> bool:
        """Whether somebody holds it."""
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
        """Give it its numbers in this process. A fork's copy is another lock."""
        if self.key != self.locks.recorder.key:
            self.key = self.locks.recorder.key
            channel = self.channel or f"lock {self.locks.name()}"
            index = self.locks.source.index
            self.wait = index(f"lock: {self.where}", "wait", "lock", channel)
            self.hold = index(f"lock: {self.where}", "hold", "lock", channel)


def _where(frame: Any) -> str:
    """The place in the program as "train.py:41"."""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"  # noqa: PTH119


def _outside() -> str:
    """The place in the program that called the library which makes the lock."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        whose = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if whose not in _THEIRS and not whose.startswith("rlox_opt"):
            return _where(frame)
        frame = frame.f_back
    return "multiprocessing"
