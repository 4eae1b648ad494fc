"""Contests between builds: base, head, and base once more, on the same benchmarks.

A restart runs a process for each of them, or one process for all (see `side_processes`). A
benchmark that fails, crashes or hangs loses its own result and no other's.
"""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt.harness.restarts import ContestError, SkippedError, Worker
from rlox_opt.harness.side_processes import (
    OneProcess,
    ProcessEach,
    Side,
    SideError,
    SideProcesses,
    Suite,
    started,
)

# In one restart a benchmark is timed this often, each time in other memory, since most of the
# difference between two processes comes from where their data lie. A benchmark whose preparation
# takes longer than `_DEAR_S` is prepared and timed once.
_CONTESTS = 3
_CONTEST_S = 0.05
_DEAR_S = 1.0
_RUNS = 6  # of a benchmark, at the most, before its process answers
SIDES = ("base", "head", "again")
_REMEDIES = {"all": " as it read the suite; --bench '^MODULE' has it read that module alone"}


class Reading(NamedTuple):
    """One restart of a benchmark: ln(head / base), ln(again / base) (0 without `again`), and the
    medians of base and head (seconds of a call, or the benchmark's own unit)."""

    log_ratio: float
    log_ratio_aa: float
    base: float
    head: float


@dataclass(frozen=True)
class Failure:
    """Why a benchmark has no result. `side` is where it failed, None where nobody can tell; `ended`
    says whether its process ended with it, `skipped` whether it only asked to be skipped."""

    side: str | None
    reason: str
    ended: bool = False
    skipped: bool = False


class Benchmark(NamedTuple):
    """What the suite says of a benchmark: asv's type, an identifier of its `setup_cache` (None
    without one), and how many seconds it may take (None where the suite does not say)."""

    type: str
    cache: str | None
    timeout: float | None

    @property
    def kind(self) -> str:
        """How it is measured: "time", "peakmemory", "memory" or "track"."""
        return "time" if self.type == "timeraw" else self.type


class Listed(NamedTuple):
    """The benchmarks of a side by name, and the unreadable parts of the suite with the reasons."""

    benchmarks: Mapping[str, Benchmark]
    broken: Mapping[str, str]


Outcome = tuple[str, Reading | Failure]
AskFor = Callable[[SideProcesses, str, random.Random], Reading | Failure]


@dataclass
class Packages:
    """Builds to compare, by side: all of `SIDES`, or base and head alone. `together` runs them in
    one process, which not every package allows. An answer may take `limit_s` seconds. Modules
    without a benchmark whose name begins with `beginning` are not read."""

    sides: Mapping[str, Side]
    suite: Suite
    limit_s: float
    together: bool = False
    beginning: str = ""
    _listed: dict[str, dict[str, Listed]] = field(default_factory=dict)  # by beginning
    _caches: dict[tuple[str, str], Path | SideError] = field(default_factory=dict)
    _said: dict[str, list[str]] = field(default_factory=dict)  # by benchmark, in each restart
    _alone: dict[str, int] = field(default_factory=dict)  # calls after one setup, by benchmark

    def listed(self) -> Mapping[str, Listed]:
        """The benchmarks of base and of head. They are asked once, since listing imports them.

        Raises:
            ContestError: a side cannot be asked.
        """
        if self.beginning not in self._listed:
            sides = [side for side in ("base", "head") if side in self.sides]
            answers = self._ask(sides, "all", self.beginning)
            self._listed[self.beginning] = {
                side: Listed(
                    {name: Benchmark(*of) for name, of in answer["benchmarks"].items()},
                    answer["broken"],
                )
                for side, answer in zip(sides, answers, strict=True)
            }
        return self._listed[self.beginning]

    def names(self, *kinds: str) -> dict[str, list[str]]:
        """Benchmarks of these kinds, and the sides that have each."""
        there: dict[str, list[str]] = {}
        for side, of in self.listed().items():
            for name, benchmark in of.benchmarks.items():
                if benchmark.kind in kinds:
                    there.setdefault(name, []).append(side)
        return there

    def builds(self) -> dict[str, dict[str, Any]]:
        """What each side says of how it was built. Raises ContestError."""
        return dict(zip(self.sides, self._ask([*self.sides], "builds"), strict=True))

    def _ask(self, sides: Sequence[str], command: str, *arguments: str) -> list[Any]:
        """The answers of these sides to a command."""
        with self.processes(sides, random.Random()) as of:
            asks = dict.fromkeys(ask for ask, _ in of.values())
            for ask in asks:  # all at once
                ask.remedy = _REMEDIES.get(command, "")
                ask.send(command, *arguments)
            answers = {ask: ask.answer() for ask in asks}
            return [answers[ask][number] for ask, number in of.values()]

    def alone(
        self, side: str, rng: random.Random, under: Sequence[str] = ()
    ) -> contextlib.AbstractContextManager[Worker]:
        """A process that has one side."""
        return started({side: self.sides[side]}, self.suite, rng, self.limit_s, under)

    @contextlib.contextmanager
    def processes(
        self, sides: Sequence[str], rng: random.Random
    ) -> Iterator[Mapping[str, tuple[Worker, int]]]:
        """The process that runs each side, and the side's number in it."""
        of = {side: self.sides[side] for side in sides}
        with contextlib.ExitStack() as stack:
            if self.together:
                ask = stack.enter_context(started(of, self.suite, rng, self.limit_s))
                yield {side: (ask, number) for number, side in enumerate(sides)}
            else:
                yield {side: (stack.enter_context(self.alone(side, rng)), 0) for side in sides}

    def contests(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "time" benchmarks, in random order. A crash does not stop the others."""
        return self._restart(self._contest, names, seed)

    def tracked(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "track" and "memory" benchmarks, as `contests` runs "time" ones."""
        return self._restart(self._tracked, names, seed)

    def _restart(self, ask_for: AskFor, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        rng = random.Random(seed)
        left = rng.sample(list(names), len(names))
        while left:
            with self._running(rng) as running:
                while left:
                    name = left.pop()
                    outcome = ask_for(running, name, rng)
                    yield name, outcome
                    if isinstance(outcome, Failure) and outcome.ended:
                        break

    @contextlib.contextmanager
    def _running(self, rng: random.Random) -> Iterator[SideProcesses]:
        """Processes with all sides, started in random order.

        Each loads copies of the packages that no other process has loaded. The system keeps a file
        at one place in physical memory for as long as it caches the file, and that place makes the
        code faster or slower in every process. One of two copies of a library can be a tenth slower
        in all processes, until both are copied anew.
        """
        order = rng.sample([*self.sides], len(self.sides))
        beside = self.sides[order[0]].folder.parent  # whoever made this folder removes it
        with contextlib.ExitStack() as stack:
            copies = stack.enter_context(tempfile.TemporaryDirectory(prefix="copies-", dir=beside))
            sides = {}
            for side in order:
                folder = Path(copies, side)
                shutil.copytree(self.sides[side].folder, folder)
                sides[side] = replace(self.sides[side], folder=folder)
            if self.together:
                ask = stack.enter_context(started(sides, self.suite, rng, self.limit_s))
                yield OneProcess(ask, order)
                return
            yield ProcessEach({
                side: stack.enter_context(started({side: of}, self.suite, rng, self.limit_s))
                for side, of in sides.items()
            })  # fmt: skip

    def peaks(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "peakmemory" benchmarks. Each side of each benchmark has a process of its
        own, which answers with its peak and ends."""
        rng = random.Random(seed)
        for name in rng.sample(list(names), len(names)):
            values: dict[str, float] = {}
            drawn = rng.getrandbits(63)  # all sides draw the same data
            try:
                for side in rng.sample([*self.sides], len(self.sides)):
                    values[side] = self.peak(side, name, rng, drawn)
            except ContestError as error:
                yield name, Failure(_of(side), str(error), skipped=isinstance(error, SkippedError))
            else:
                yield name, _of_values(values)

    def peak(self, side: str, name: str, rng: random.Random, drawn: int) -> float:
        """The most memory that a process of one side had, in bytes, with data drawn from the seed
        `drawn`. Raises ContestError."""
        with self.alone(side, rng) as ask:
            ask.limit_s = self._limit(name)
            self.prepare(ask, side, name, drawn, 0)
            peak = float(ask("value"))
            ask("forget", 0)
            return peak

    def prepare(
        self,
        ask: Worker,
        side: str,
        name: str,
        seed: int = 0,
        alone: int | None = None,
        number: int = 0,
    ) -> int:
        """Set a benchmark up in the process that has this side as its `number`. Returns how many
        calls may follow one setup (0: any number). Raises ContestError."""
        cache = self._cache(side, name)
        calls: int = ask("prepare", number, name, seed, alone, cache and str(cache))
        return calls

    def _contest(self, running: SideProcesses, name: str, rng: random.Random) -> Reading | Failure:
        readings, told = [], ""
        try:
            running.allow(self._limit(name))
            running.load(name, rng.getrandbits(63))
            for _ in range(1 if self.suite.fresh else _CONTESTS):
                start = time.monotonic()
                told = running.forget(rng) or told
                seed = rng.getrandbits(63)
                for side in rng.sample([*self.sides], len(self.sides)):
                    self._prepare(running, side, name, seed)
                dear = time.monotonic() - start > _DEAR_S
                times = running.contest(_CONTEST_S * _CONTESTS if dear else _CONTEST_S, rng)
                if min(min(of) for of in times.values()) <= 0:
                    return Failure(None, "its timer tells no time of a call; it takes a finer one")
                readings.append(_reading(times))
                if dear:
                    break
            told = running.forget(rng) or told
        except SideError as error:
            return _failed(error)
        self._said.setdefault(name, []).append(told)
        return Reading(*map(statistics.fmean, zip(*readings, strict=True)))

    def told(self) -> dict[str, str]:
        """Notes for the user on benchmarks that were timed, by name. A note is passed on if it came
        in half of the restarts, and in three at the least."""
        noticed = {name: [*filter(None, said)] for name, said in self._said.items()}
        return {
            name: said[-1]
            for name, said in noticed.items()
            if len(said) >= max(3, len(self._said[name]) / 2)
        }

    def _prepare(self, running: SideProcesses, side: str, name: str, seed: int) -> None:
        """Prepare one side. How many calls may follow one setup is found out once, so that all
        restarts time the same number."""
        cache = self._cache(side, name)
        alone = running.prepare(side, name, seed, self._alone.get(name), cache)
        if name not in self._alone:
            self._alone[name] = alone

    def _tracked(self, running: SideProcesses, name: str, rng: random.Random) -> Reading | Failure:
        values: dict[str, float] = {}
        try:
            running.allow(self._limit(name))
            seed = rng.getrandbits(63)
            running.load(name, seed)
            for side in rng.sample([*self.sides], len(self.sides)):
                running.prepare(side, name, seed, 0, self._cache(side, name))
                values[side] = running.value(side)
            running.forget(rng)
        except SideError as error:
            return _failed(error)
        return _of_values(values)

    def _limit(self, name: str) -> float:
        """Seconds that an answer about a benchmark may take. asv's timeout is for one run, and an
        answer may take several."""
        there = (of.benchmarks.get(name) for of in self.listed().values())
        timeout = max((of.timeout for of in there if of and of.timeout), default=None)
        if timeout is None:
            return self.limit_s
        return float(min(_RUNS * timeout, max(timeout, self.limit_s)))

    def _cache(self, side: str, name: str) -> Path | None:
        """The folder with what the benchmark's `setup_cache` returned, or None without one. It is
        called once for all restarts, in a process of its own. Raises SideError."""
        side = _of(side)
        there = self.listed()[side].benchmarks.get(name)
        if there is None or there.cache is None:
            return None
        key = side, there.cache
        if key not in self._caches:
            self._caches[key] = self._made(side, name)
        made = self._caches[key]
        if isinstance(made, SideError):
            raise made
        return made

    def _made(self, side: str, name: str) -> Path | SideError:
        folder = Path(tempfile.mkdtemp(prefix="cache-", dir=self.sides[side].folder.parent))
        try:
            with self.alone(side, random.Random()) as ask:
                ask.limit_s = max(self.limit_s, self._limit(name))
                ask("cache", 0, name, str(folder))
        except ContestError as error:
            return SideError(side, ContestError(f"its setup_cache fails: {error}"))
        return folder


def _of(side: str) -> str:
    return "base" if side == "again" else side


def _failed(error: SideError) -> Failure:
    return Failure(error.side and _of(error.side), str(error), error.ended, error.skipped)


def _of_values(values: Mapping[str, float]) -> Reading | Failure:
    base, head, again = values["base"], values["head"], values.get("again", values["base"])
    if len({*values.values()}) == 1 and math.isfinite(base):
        return Reading(0.0, 0.0, base, head)  # also of a value that is not above 0
    if not all(0 < value < math.inf for value in values.values()):
        return Failure(None, f"has no ratio of {head} to {base}; it takes numbers over 0")
    return Reading(math.log(head / base), math.log(again / base), base, head)


def _reading(times: Mapping[str, Sequence[float]]) -> Reading:
    """Medians over the rounds of one contest."""

    def log_ratio(side: str) -> float:
        rounds = zip(times[side], times["base"], strict=True)
        return statistics.median(math.log(other / base) for other, base in rounds)

    base, head = (statistics.median(times[side]) for side in ("base", "head"))
    again = log_ratio("again") if "again" in times else 0.0
    return Reading(log_ratio("head"), again, base, head)
