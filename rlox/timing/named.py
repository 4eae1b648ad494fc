"""`span`: names a block or a function of the user's own, for `rlox-opt profile` to show."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar, overload

from rlox.timing.timing import Timing

P = ParamSpec("P")
R = TypeVar("R")

# Disabled, so that a span costs next to nothing, unless the process is recorded.
_timing = Timing("spans", enabled=False)


class Named:
    """A block's name: a context, or a decorator of the functions that are such blocks."""

    __slots__ = ("_block", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._block: AbstractContextManager[None]

    def __enter__(self) -> None:
        self._block = _timing.add_time(self.name)
        self._block.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._block.__exit__(*exc)  # type: ignore[arg-type]

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
    """A span of the program's own, in whichever process and thread it runs.

        with span("load"): ...

        @span
        def load(): ...

        @span("read the file")
        def load(): ...

    Without `rlox-opt profile` it records nothing.

    Raises:
        TypeError: on a coroutine or a generator function.
    """
    return Named(what) if isinstance(what, str) else Named(what.__name__)(what)
