"""`span`: names a block or a function of the user's own program, for `rlox-opt profile`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar, overload

from rlox.timing.timing import Timing

P = ParamSpec("P")
R = TypeVar("R")

# Disabled unless the process is recorded, so that a span then costs next to nothing.
_timing = Timing("spans", enabled=False)


class _Open(threading.local):
    """One thread's open blocks of a name that it entered again before leaving it."""

    def __init__(self) -> None:
        self.blocks: list[AbstractContextManager[None]] = []


class Named:
    """The name of a block, as a context manager or as a decorator of functions.

    The context manager may be kept. It may be entered again while it is open, even by other
    threads.
    """

    __slots__ = ("_again", "_block", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._block: AbstractContextManager[None] | None = None
        self._again: _Open | None = None

    def __enter__(self) -> None:
        block = _timing.add_time(self.name)
        again = self._again
        # A thread that has open blocks in its own list adds to that list, since those are left
        # first. No function is called between reading `_block` and setting it, so no other thread
        # can run in between.
        if (again is None or not again.blocks) and self._block is None:
            self._block = block
        else:
            self._open_again().append(block)
        block.__enter__()

    def __exit__(self, *exc: object) -> None:
        again = self._again
        block: AbstractContextManager[None] | None
        if again is not None and again.blocks:
            block = again.blocks.pop()
        else:
            block, self._block = self._block, None
        block.__exit__(*exc)  # type: ignore[union-attr, arg-type]

    def _open_again(self) -> list[AbstractContextManager[None]]:
        made = _Open()
        if self._again is None:  # again no function is called in between
            self._again = made
        return self._again.blocks

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError(
                f"@span on {function.__qualname__}: a coroutine or generator does its work after "
                "the call; put `with span(…):` inside, around what does not await or yield"
            )

        @functools.wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            with _timing.add_time(self.name):
                return function(*args, **kwargs)

        return timed


@overload
def span(what: Callable[P, R]) -> Callable[P, R]: ...
@overload
def span(what: str) -> Named: ...
def span(what: Callable[P, R] | str) -> Callable[P, R] | Named:
    """Name a block or a function of the program, in whichever process and thread it runs.

        with span("load"): ...

        @span
        def load(): ...

        @span("read the file")
        def load(): ...

    Without `rlox-opt profile` nothing is recorded.

    Raises:
        TypeError: for a coroutine or a generator function.
    """
    return Named(what) if isinstance(what, str) else Named(what.__name__)(what)
