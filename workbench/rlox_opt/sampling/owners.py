"""Finds the owner of a stack that the sampler could not unwind out of native code.

Where a function has no unwind information, a sampler sees that function alone: a kernel that was
compiled at run time, one of MKL's, a helper of libc. Its time belongs to what its line of Python
called. Complete stacks of the same line show what that is, if they are not too few beside those
that were cut off; then those of the same Python function; then the package that contains the line.
If the process has loaded a compiler, the compiler takes the place of an owner that compiles
nothing. What none of these decides is unknown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rlox_opt.sampling.layers import STARTUP, UNKNOWN, Classifier, enters_python
from rlox_opt.sampling.samples import Frame

_TINY = 1e-9  # seconds, so that the logarithm exists
_ALIKE = log(3)  # two waits whose lengths differ by less are taken to be for the same thing
_UNLIKE = log(30)  # two waits whose lengths differ by more are not
# A line's complete stacks decide if they have this part of the time of its cut-off ones. A line is
# seen only near a sample, so now and then it is the line before or after.
_TELLING = 0.1
# Owners that make no code at run time, unlike a loaded compiler.
# What makes no code at run time, as a compiler that is loaded does.
_MAKES_NONE = (UNKNOWN, "numpy")


class Noted(Protocol):
    """What a process recorded about itself, and about its threads at times of the monotonic
    clock."""

    made: str  # the owner of code made at run time, where nothing else shows it

    def lines(
        self, tid: int, times_ns: NDArray[np.int64], called: NDArray[np.bool_]
    ) -> Sequence[tuple[Frame, ...]]:
        """The Python functions at each time, outermost first; empty where they are not known.
        `called` says whether the thread was in native code that its line of Python called."""

    def parts(self, tid: int, times_ns: NDArray[np.int64]) -> Sequence[str]:
        """The part of torch's work at each time; "" where it is not known."""


class Stack(NamedTuple):
    """A stack as it was sampled, with what is known of its moment. `python` was recorded near the
    moment and not at it. So it is used only to see whether the thread imports, and what a cut-off
    stack worked for."""

    native: tuple[Frame, ...]
    python: tuple[Frame, ...]
    phase: str
    part: str
    off: bool
    weight: float
    thread: int

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The Python functions, and the native functions that the innermost of them called."""
        if not self.python:
            return self.native
        for at in range(len(self.native) - 1, -1, -1):
            if enters_python(self.native[at]):
                return self.python + self.native[at + 1 :]
        return self.python + self.native


def layers_of(stacks: Sequence[Stack], classifier: Classifier, made: str = UNKNOWN) -> list[str]:
    """The layer of each stack of one process; `made` is that of `Noted`."""
    layers: list[str | None] = []
    known, waits = _Known(), _Waits()
    for stack in stacks:
        layer: str | None = None
        if classifier.is_startup(stack.frames):
            layer = STARTUP
        elif stack.off:
            if stack.native:
                waited = classifier.wait_layer(
                    stack.native, stack.phase, stack.part, of_python=bool(stack.python)
                )
                layer = waited or "idle"
                waits.add(stack, layer)
        else:
            owner = classifier.innermost_owner(stack.native)
            layer = classifier.classify(stack.native, stack.phase, part=stack.part)
            if stack.python and layer == UNKNOWN:
                layer = None
                known.cut(stack.python[-1], stack.weight)
            elif stack.python and owner not in ("python", UNKNOWN):
                known.add(stack.python[-1], owner, stack.weight)
        layers.append(layer)
    return [
        layer or (waits.like(stack) if stack.off else _called(stack, known, classifier, made))
        for stack, layer in zip(stacks, layers, strict=True)
    ]


def _called(stack: Stack, known: _Known, classifier: Classifier, made: str) -> str:
    """The layer of what the stack's line of Python called."""
    line = stack.python[-1]
    compiler = made != UNKNOWN
    owner = known.owner(line, 1.0 if compiler else _TELLING)
    owner = owner or classifier.package_owner(line.module)
    if compiler and owner in _MAKES_NONE:
        owner = made
    return classifier.role(owner, stack.native, stack.phase, stack.part)


class _Waits:
    """Waits with a known stack, for those without one. A wait without a stack gets the layer of the
    known wait of about the same length on the same line of Python, or else in the same phase. The
    length matters: a thread may sleep at a line and then wait there for the interpreter's lock,
    which takes much less time."""

    def __init__(self) -> None:
        self._of: defaultdict[tuple[object, ...], list[tuple[float, str]]] = defaultdict(list)
        self._sorted = False

    def add(self, stack: Stack, layer: str) -> None:
        for key in self._keys(stack):
            self._of[key].append((log(stack.weight + _TINY), layer))

    def like(self, stack: Stack) -> str:
        """The layer of a wait without a stack. All waits with a stack have been added."""
        if not self._sorted:
            for known in self._of.values():
                known.sort()
            self._sorted = True
        took = log(stack.weight + _TINY)
        layer, far = "idle", _UNLIKE
        for key in self._keys(stack):
            known = self._of.get(key, [])
            at = bisect_left(known, (took, ""))
            for length, of in known[max(0, at - 1) : at + 1]:  # the nearest on either side
                if abs(length - took) < far:
                    layer, far = of, abs(length - took)
            if far < _ALIKE:
                break
        return layer

    def _keys(self, stack: Stack) -> Iterable[tuple[object, ...]]:
        line = stack.python[-1] if stack.python else None
        return (stack.thread, line), (stack.thread, stack.phase, "")


class _Known:
    """What lines of Python were seen to call, in seconds."""

    def __init__(self) -> None:
        self._by_line: defaultdict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
        self._cut: Counter[tuple[object, ...]] = Counter()

    def add(self, line: Frame, owner: str, seconds: float) -> None:
        for key in self._keys(line):
            self._by_line[key][owner] += seconds  # type: ignore[assignment]

    def cut(self, line: Frame, seconds: float) -> None:
        for key in self._keys(line):
            self._cut[key] += seconds  # type: ignore[assignment]

    def owner(self, line: Frame, telling: float) -> str | None:
        """The owner of most of what the line called, or else of most of what its function
        called."""
        for key in self._keys(line):
            for owner, seconds in self._by_line[key].most_common(1):
                if seconds >= telling * self._cut[key]:
                    return owner
        return None

    def _keys(self, line: Frame) -> Iterable[tuple[object, ...]]:
        return (line.module, line.line), (line.module, line.name, "")
