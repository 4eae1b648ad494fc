"""The processes in which the sides of a comparison run: base, head, and base once more (A/A).

The sides have a process each, whose calls alternate over pipes, or one process together.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rlox_opt.harness.restarts import (
    SAME_ORDER,
    ContestError,
    ProcessEndedError,
    SkippedError,
    Worker,
)
from rlox_opt.system.scratch import scratch

_INSIDE = Path(__file__).with_name("inside")
# Slices are short, since what disturbs a machine comes and goes. A process that was asleep finds
# the caches filled by others, so each slice begins with `calls // _WARM` calls that do not count.
_SLICE_S = 0.00025
_WARM = 4
_LONG_S = 0.25
# The least number of rounds, by the seconds that a slice takes: of slices that take longer than all
# of these there is one. Restarts say more than rounds, and in a minute a call that takes seconds
# leaves time for few of either.
_LEAST_ROUNDS = ((_LONG_S, 5), (1.0, 2))
_ONE_THREAD = 1.1  # cores that a benchmark without threads of its own keeps busy at the most
_OF_ANOTHER_PYTHON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Side:
    """A build to run: the `folder` that holds its `packages`, and the interpreter and environment
    variables to run it with."""

    folder: Path
    packages: tuple[str, ...]
    python: Path | str = sys.executable
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """The benchmarks of a comparison: a folder, or a file.

    Sides that share a process take their inputs from the suite's modules `shared`. `program` is the
    file of `inside` that runs the suite, and `settings` are its further settings, for JSON.
    """

    folder: Path
    shared: tuple[str, ...] = ()
    program: str = "rlox_opt_side.py"
    settings: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False
    """Whether each call runs in a process of its own, so in other memory than the last."""


_REMEDY = "; --bench can leave it out, and a longer `timeout` (asv, commands) waits for it"


class SideError(ContestError):
    """An error on one side: None as `side` means that nobody can tell which one. `ended` says
    whether the process ended with it, `skipped` whether the benchmark only asked to be skipped."""

    def __init__(self, side: str | None, error: ContestError) -> None:
        super().__init__(str(error))
        self.side = side
        self.ended = isinstance(error, ProcessEndedError)
        self.skipped = isinstance(error, SkippedError)


class SideProcesses(Protocol):
    """The running processes of all sides. Errors are raised as SideError."""

    def load(self, name: str, seed: int) -> None:
        """Import a benchmark's module on all sides. Sides with processes of their own do so at the
        same time, since some modules take half a minute to make what their benchmarks need."""

    def prepare(
        self, side: str, name: str, seed: int, alone: int | None, cache: Path | None
    ) -> int:
        """Set a benchmark up on a side. Returns how many calls may follow one setup; 0: any number.

        `alone` is that number where it is known from an earlier call, and None otherwise.
        """

    def contest(self, seconds: float, rng: random.Random) -> Mapping[str, Sequence[float]]:
        """Seconds of a call of the prepared benchmark, by side and round."""

    def value(self, side: str) -> float:
        """The value of the benchmark that was prepared last, on this side."""

    def forget(self, rng: random.Random) -> str:
        """Release the prepared benchmark, so that the next one gets other memory. Returns a note
        about its timing for the user, or an empty text."""

    def allow(self, seconds: float) -> None:
        """Set how many seconds an answer may take."""


@contextlib.contextmanager
def started(
    sides: Mapping[str, Side],
    suite: Suite,
    rng: random.Random,
    limit_s: float,
    under: Sequence[str] = (),
) -> Iterator[Worker]:
    """One process that has these sides, numbered in the order of the mapping. It works in an empty
    folder, and ends with the block."""
    first = next(iter(sides.values()))
    settings = {
        "suite": str(suite.folder),
        "shared": suite.shared,
        "sides": [{"folder": str(s.folder), "packages": s.packages} for s in sides.values()],
        **suite.settings,
    }
    # A setting of the user's own Python could lead this one to packages of another interpreter.
    own = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_PYTHON}
    # The suite may lie in the user's checkout, where nothing is to be written.
    env = {**own, **SAME_ORDER, "PYTHONDONTWRITEBYTECODE": "1", **first.env}
    with scratch() as folder:
        program = _INSIDE / suite.program
        worker = Worker(
            program, [json.dumps(settings)], rng, limit_s, under, first.python, env, folder
        )
        worker.remedy = _REMEDY
        with contextlib.closing(worker):
            yield worker


class OneProcess:
    """All sides in one process, so that no side has another core or another clock speed."""

    def __init__(self, ask: Worker, sides: Sequence[str]) -> None:
        self._ask = ask
        self._sides = [*sides]

    def load(self, name: str, seed: int) -> None:
        for number, side in enumerate(self._sides):
            self._do(side, "load", number, name, seed)

    def prepare(
        self, side: str, name: str, seed: int, alone: int | None, cache: Path | None
    ) -> int:
        answer: int = self._do(
            side, "prepare", self._sides.index(side), name, seed, alone, cache and str(cache)
        )
        return answer

    def contest(self, seconds: float, rng: random.Random) -> Mapping[str, Sequence[float]]:
        times = self._do(None, "contest", seconds, rng.getrandbits(63), _LEAST_ROUNDS)
        return dict(zip(self._sides, times, strict=True))

    def value(self, side: str) -> float:
        return float(self._do(side, "value"))

    def forget(self, rng: random.Random) -> str:
        return self._do(None, "forget", rng.getrandbits(63)) or ""

    def allow(self, seconds: float) -> None:
        self._ask.limit_s = seconds

    def _do(self, side: str | None, *command: Any) -> Any:
        try:
            return self._ask(*command)
        except ContestError as error:
            raise SideError(side, error) from None


class ProcessEach:
    """A process for each side, so that what one side loads cannot affect another side."""

    def __init__(self, asks: Mapping[str, Worker]) -> None:
        self._asks = asks
        self._bears = 0  # calls after one setup of the benchmark that is prepared; 0 is any number

    def load(self, name: str, seed: int) -> None:
        for ask in self._asks.values():
            ask.send("load", 0, name, seed)
        errors = []
        for side, ask in self._asks.items():
            try:
                ask.answer()
            except ContestError as error:
                errors.append(SideError(side, error))
        if errors:  # first the error of a side whose process has ended
            raise max(errors, key=lambda error: error.ended)

    def prepare(
        self, side: str, name: str, seed: int, alone: int | None, cache: Path | None
    ) -> int:
        answer: int = self._do(side, "prepare", 0, name, seed, alone, cache and str(cache))
        self._bears = answer
        return answer

    def contest(self, seconds: float, rng: random.Random) -> Mapping[str, Sequence[float]]:
        sides = [*self._asks]
        calls, took, cores = self._slice(sides[0])
        # Threads of one side alone count, too; of long calls there is no time to find out.
        for side in sides[1:] if took < _LONG_S else ():
            _, whole, busy = self._time(side, calls)
            cores = max(cores, busy / whole)
        least = next((rounds for below, rounds in _LEAST_ROUNDS if took < below), 1)
        with self._on_one_core(cores, rng):
            for side in rng.sample(sides, len(sides)) if took < _LONG_S else ():
                self._time(side, calls)  # warms up the new core's caches
            times: dict[str, list[float]] = {side: [] for side in sides}
            end = time.monotonic() + seconds
            while len(times[sides[0]]) < least or time.monotonic() < end:
                for side in rng.sample(sides, len(sides)):
                    times[side].append(self._time(side, calls)[0] / calls)
        return times

    @contextlib.contextmanager
    def _on_one_core(self, busy: float, rng: random.Random) -> Iterator[None]:
        """Run all sides on one core, drawn anew each time, and this process on the others.

        Other programs load each core differently, so sides on two cores would differ by that. A
        benchmark that keeps more than one core `busy` has threads of its own; it is not moved.
        """
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
        if len(cores) < 2 or busy > _ONE_THREAD:
            yield
            return
        core = rng.choice(sorted(cores))
        os.sched_setaffinity(0, cores - {core})
        try:
            self._pin(core)
            yield
            self._pin(None)
        except SideError as error:
            if not error.ended:  # the same processes run the next benchmark
                self._pin(None)
            raise
        finally:
            os.sched_setaffinity(0, cores)

    def _pin(self, core: int | None) -> None:
        for side in self._asks:
            self._do(side, "pin", core)

    def value(self, side: str) -> float:
        return float(self._do(side, "value"))

    def forget(self, rng: random.Random) -> str:
        told, errors = [], []
        for side in self._asks:  # all of them: none must keep what fails for the next benchmark
            try:
                told.append(self._do(side, "forget", rng.getrandbits(63)))
            except SideError as error:
                errors.append(error)
        if errors:
            raise max(errors, key=lambda error: error.ended)
        return next(filter(None, told), "")

    def allow(self, seconds: float) -> None:
        for ask in self._asks.values():
            ask.limit_s = seconds

    def _slice(self, side: str) -> tuple[int, float, float]:
        """The calls in a slice, the seconds that the slice takes, and the cores it keeps busy. With
        fewer calls than one setup bears, only the calls themselves make it long enough."""
        calls = 1
        while True:
            alone, whole, busy = self._time(side, calls)
            if (alone if calls < self._bears else max(alone, whole)) >= _SLICE_S:
                return calls, whole, busy / whole
            calls = self._bears if calls < self._bears < 2 * calls else 2 * calls

    def _time(self, side: str, calls: int) -> tuple[float, float, float]:
        alone, whole, busy = self._do(side, "time", 0, calls, calls // _WARM)
        return alone, whole, busy

    def _do(self, side: str, *command: Any) -> Any:
        try:
            return self._asks[side](*command)
        except ContestError as error:
            raise SideError(side, error) from None
