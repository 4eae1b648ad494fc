"""Contests between built packages: base, head, and base once more, on the same benchmarks.

A restart is a process that has loaded all of them (see `packages_worker`). A benchmark that fails,
crashes or hangs loses its own result and no other's.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt.harness.restarts import ContestError, ProcessEndedError, Worker

_WORKER = Path(__file__).with_name("packages_worker.py")
# In one restart, a benchmark is timed this often, each time in other memory, unless preparing it
# takes too long: where its data lie is most of what makes one process differ from the next.
_CONTESTS = 3
_CONTEST_S = 0.05
_DEAR_S = 1.0
SIDES = ("base", "head", "again")


class Reading(NamedTuple):
    """One restart of a benchmark: ln(head / base), ln(again / base) (0 without `again`), and what
    base and head took (median seconds of a call, or the benchmark's own unit)."""

    log_ratio: float
    log_ratio_aa: float
    base: float
    head: float


@dataclass(frozen=True)
class Failure:
    """Why a benchmark has no result: `side` is where it failed, None where nobody can tell, and
    `ended` whether it took the process with it."""

    side: str | None
    reason: str
    ended: bool = False


Outcome = tuple[str, Reading | Failure]
AskFor = Callable[[Worker, Sequence[str], str, random.Random], Reading | Failure]


@dataclass(frozen=True)
class Packages:
    """Builds of the package called `name` to compare, as folders by side, and the folder of asv
    benchmarks.

    The sides are those of `SIDES`, or base and head alone. Another interpreter and environment than
    ours can be given, which must have asv_runner.
    """

    name: str
    folders: dict[str, Path]
    benchmarks: Path
    limit_s: float
    python: Path | str = sys.executable
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def start(self, sides: Sequence[str], rng: random.Random, under: Sequence[str] = ()) -> Worker:
        """A process that has loaded these sides, in this order."""
        arguments: list[Path | str] = [self.name, self.benchmarks]
        arguments += [self.folders[side] for side in sides]
        return Worker(_WORKER, arguments, rng, self.limit_s, under, self.python, self.env)

    def names(self, kind: str) -> dict[str, list[str]]:
        """Benchmarks of a kind ("time", "peakmemory", "track"), and the sides that have it."""
        return self.names_of(kind)[kind]

    def names_of(self, *kinds: str) -> dict[str, dict[str, list[str]]]:
        """The same of several kinds, from one process: listing imports every benchmark."""
        listed = {}
        with closing(self.start(("base", "head"), random.Random())) as ask:
            for kind in kinds:
                there = dict(zip(("base", "head"), ask("names", kind), strict=True))
                every = dict.fromkeys(there["base"] + there["head"])
                listed[kind] = {n: [side for side in there if n in there[side]] for n in every}
        return listed

    def builds(self) -> dict[str, dict[str, Any]]:
        """What the extension of each side says of itself."""
        with closing(self.start(tuple(self.folders), random.Random())) as ask:
            return dict(zip(self.folders, ask("builds"), strict=True))

    def contests(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "time" benchmarks, in random order. Where the process ends, another goes
        on."""
        return self._together(_contest, names, seed)

    def tracked(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "track" benchmarks, likewise."""
        return self._together(_tracked, names, seed)

    def _together(self, ask_for: AskFor, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        rng = random.Random(seed)
        left = rng.sample(list(names), len(names))
        while left:
            sides = rng.sample([*self.folders], len(self.folders))
            with self._copied(sides) as packages, closing(packages.start(sides, rng)) as ask:
                while left:
                    name = left.pop()
                    outcome = ask_for(ask, sides, name, rng)
                    yield name, outcome
                    if isinstance(outcome, Failure) and outcome.ended:
                        break

    @contextlib.contextmanager
    def _copied(self, sides: Sequence[str]) -> Iterator[Packages]:
        """The same packages, as copies that one process alone will load.

        A file stays where it is in memory for as long as the system caches it, whatever process
        maps it, and where that is makes its code faster or slower: of two copies of one library,
        one can be a tenth slower in every process, until both are copied anew.
        """
        beside = self.folders[sides[0]].parent  # is cleared away by whoever made it
        with tempfile.TemporaryDirectory(prefix="copies-", dir=beside) as copies:
            folders = {side: Path(copies, side) for side in sides}
            for side, folder in folders.items():
                shutil.copytree(self.folders[side], folder)
            yield replace(self, folders=folders)

    def peaks(self, names: Sequence[str], seed: int) -> Iterator[Outcome]:
        """One restart of "peakmemory" benchmarks: a process for each side of each, which ends with
        the most memory it had."""
        rng = random.Random(seed)
        for name in rng.sample(list(names), len(names)):
            values: dict[str, float] = {}
            try:
                for side in rng.sample([*self.folders], len(self.folders)):
                    values[side] = self.peak(side, name, rng)
            except ContestError as error:
                yield name, Failure(_of(side), str(error))
            else:
                yield name, _of_values(values)

    def peak(self, side: str, name: str, rng: random.Random) -> float:
        """The most memory that a process of one side had, in bytes. Raises ContestError."""
        with closing(self.start((side,), rng)) as ask:
            ask("prepare", 0, name)
            peak = float(ask("value"))
            ask("forget", 0)
            return peak


def _of(side: str) -> str:
    return "base" if side == "again" else side


def _tracked(ask: Worker, sides: Sequence[str], name: str, rng: random.Random) -> Reading | Failure:
    values: dict[str, float] = {}
    try:
        for number in rng.sample(range(len(sides)), len(sides)):
            side = sides[number]
            ask("prepare", number, name)
            values[side] = ask("value")
        ask("forget", rng.getrandbits(63))
    except ContestError as error:
        return Failure(_of(side), str(error), isinstance(error, ProcessEndedError))
    return _of_values(values)


def _of_values(values: Mapping[str, float]) -> Reading | Failure:
    base, head, again = values["base"], values["head"], values.get("again", values["base"])
    if min(values.values()) <= 0:
        return Failure(None, f"has no ratio of {head} to {base}; it takes numbers over 0")
    return Reading(math.log(head / base), math.log(again / base), base, head)


def _contest(ask: Worker, sides: Sequence[str], name: str, rng: random.Random) -> Reading | Failure:
    side: str | None = None
    readings = []
    try:
        for _ in range(_CONTESTS):
            start = time.monotonic()
            ask("forget", rng.getrandbits(63))
            for number in rng.sample(range(len(sides)), len(sides)):
                side = sides[number]
                ask("prepare", number, name)
            side = None
            dear = time.monotonic() - start > _DEAR_S
            seconds = _CONTEST_S * _CONTESTS if dear else _CONTEST_S
            times = ask("contest", seconds, rng.getrandbits(63))
            readings.append(_reading(dict(zip(sides, times, strict=True))))
            if dear:
                break
        side = None
        ask("forget", rng.getrandbits(63))
    except ContestError as error:
        return Failure(side and _of(side), str(error), isinstance(error, ProcessEndedError))
    return Reading(*map(statistics.fmean, zip(*readings, strict=True)))


def _reading(times: Mapping[str, Sequence[float]]) -> Reading:
    """Medians over the rounds of one contest."""

    def log_ratio(side: str) -> float:
        rounds = zip(times[side], times["base"], strict=True)
        return statistics.median(math.log(other / base) for other, base in rounds)

    base, head = (statistics.median(times[side]) for side in ("base", "head"))
    again = log_ratio("again") if "again" in times else 0.0
    return Reading(log_ratio("head"), again, base, head)
