"""Faults of a suite that appear when a build runs it: failures, calls that change what their setup
made, and calls that are too short for the clock.

The noise of a machine must not be taken for a fault. So a fault must appear after each of several
setups, and once more in another process.
"""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, ProcessEndedError, SkippedError, Worker
from rlox_opt.project.lint.finding import Finding
from rlox_opt.project.lint.source import Benchmark

_SETUPS = 5  # a drift must appear after each of them
_DRIFT = math.log(1.1)
_BLOCK_S, _MOST_BLOCKS, _LEAST_BLOCKS = 0.00025, 32, 12
_SETTLING = 2  # blocks that are left out, while caches fill and the interpreter specialises code
_SETUP_S = 0.3  # the time for blocks after one setup, and for setups in a row
_IN_A_ROW = 64  # setups that are timed in a row
_READINGS = 40  # of the clock: calls after one setup must last longer, so that two are below 5 %
_TOLD = 200  # characters of a reason


@dataclass
class Run:
    """Runs the benchmarks of head; what fails there is also run on base, if `packages` has it.
    `sources` are the benchmarks in the suite's files, by name without parameters. A finding on a
    benchmark without a source names the folder `suite`."""

    packages: Packages
    sources: Mapping[str, Benchmark]
    suite: str
    budget_s: float
    not_run: list[str]
    """The benchmarks for which the budget was too small."""

    def run(
        self, names: Sequence[str], found: list[Finding], note: Callable[[str, float], None]
    ) -> None:
        """Run benchmarks, and append to `found`, which stays even after a KeyboardInterrupt. `note`
        is called with each name, and with the part of the work that is done."""
        until = time.monotonic() + self.budget_s
        of: dict[tuple[str, str], list[Finding]] = {}
        order = _first_of_each(names)
        worker = _Kept(self.packages)
        try:
            for number, name in enumerate(order):
                if time.monotonic() >= until:
                    self.not_run.append(name)
                    continue
                note(name, number / len(order))
                for each in self._of(worker, name, until):
                    of.setdefault((each.check, _bare(name)), []).append(each)
        finally:
            worker.close()
            found += map(_joined, of.values())

    def _of(self, worker: _Kept, name: str, until: float) -> Iterator[Finding]:
        there = self.packages.listed()["head"].benchmarks[name]
        try:
            bears = worker.prepared(name, None if there.kind == "time" else 0)
            if there.kind != "time":
                worker.ask("value")
                return
        except SkippedError:
            return
        except ContestError as error:
            worker.after(error)
            yield self._finding(
                name, "fails", f"it fails in {self._where(name)}: {_short(error)}",
                "what it should guard is not measured", "mend it, or take it out of the suite",
            )  # fmt: skip
            return
        if there.type == "timeraw":
            return
        try:
            yield from self._timed(worker, name, bears, until)
        except ContestError as error:  # a later call, for which the first one left nothing to do
            worker.after(error)
            yield self._drift(name, f"a later call after one setup fails: {_short(error)}")

    def _timed(self, worker: _Kept, name: str, bears: int, until: float) -> Iterator[Finding]:
        if bears:
            took = _least(worker, bears)
            grain = _grain()
            if took < _READINGS * grain:
                calls = f"the {bears} calls" if bears > 1 else "the one call"
                yield self._finding(
                    name, "below the clock",
                    f"no more than {took * 1e9:.0f} ns: {calls} after each setup",
                    f"reading the clock takes {grain * 1e9:.0f} ns, so that much of it is noise",
                    "let one call do more, or leave the data as they were and set no `number`",
                )  # fmt: skip
        of = self.sources.get(_bare(name))
        if of and of.attribute("number") is not None:
            return  # the suite says how many calls may follow one setup
        if bears:
            with contextlib.closing(_Kept(self.packages)) as other:
                again = other.prepared(name, None)
            if again:
                yield self._drift(name, "the second call after one setup takes another time")
            return
        if (first := self._trend(worker, name, until)) and time.monotonic() < until:
            with contextlib.closing(_Kept(self.packages)) as other:
                other.prepared(name, 0)
                second = self._trend(other, name, until)
            if second and (first > 0) == (second > 0):
                how = "longer" if first > 0 else "shorter"
                factor = math.exp(abs(second))
                yield self._drift(name, f"later calls take {how}, by a factor of {factor:.2f}")

    def _drift(self, name: str, what: str) -> Finding:
        return self._finding(
            name, "drift", what, "how long it takes depends on how often it was called",
            "let each call begin with the same data, or set `number = 1` to set up for each",
        )  # fmt: skip

    def _trend(self, worker: _Kept, name: str, until: float) -> float:
        """The log-ratio of the last calls after a setup to the first ones: the smallest of all
        setups; 0 if setups disagree, or if there is no time."""
        calls, took = 1, worker.time(1)
        while took < _BLOCK_S:
            calls *= 2
            took = worker.time(calls)
        blocks = max(_LEAST_BLOCKS, min(_MOST_BLOCKS, round(_SETUP_S / took)))
        if time.monotonic() + _SETUPS * blocks * took > until:
            return 0.0
        ratios = []
        for _ in range(_SETUPS):
            worker.prepared(name, 0)
            times = [worker.time(calls) for _ in range(blocks)][_SETTLING:]
            part = len(times) // 3
            first, last = statistics.median(times[:part]), statistics.median(times[-part:])
            ratios.append(math.log(last / first))
            if abs(ratios[-1]) < _DRIFT or ratios[-1] * ratios[0] < 0:
                return 0.0
        return min(ratios, key=abs)

    def _where(self, name: str) -> str:
        """The sides on which it fails."""
        if "base" not in self.packages.sides:
            return "head"
        if name not in self.packages.listed()["base"].benchmarks:
            return "head, and base has it not"
        with contextlib.closing(_Kept(self.packages, "base")) as worker:
            try:
                worker.prepared(name, 0)
                if self.packages.listed()["base"].benchmarks[name].kind != "time":
                    worker.ask("value")
            except SkippedError:
                return "head, and base skips it"
            except ContestError:
                return "base and head"
        return "head alone"

    def _finding(self, name: str, check: str, what: str, why: str, remedy: str) -> Finding:
        of = self.sources.get(_bare(name))
        file, line = (of.file, of.line) if of else (self.suite, 0)
        return Finding(file, line, check, name, what, why, remedy)


class _Kept:
    """A process with one side, which is replaced when it has ended."""

    def __init__(self, packages: Packages, side: str = "head") -> None:
        self._packages = packages
        self._side = side
        self._stack = contextlib.ExitStack()
        self._worker: Worker | None = None

    @property
    def ask(self) -> Worker:
        """The process."""
        if self._worker is None:
            alone = self._packages.alone(self._side, random.Random())
            self._worker = self._stack.enter_context(alone)
        return self._worker

    def prepared(self, name: str, alone: int | None) -> int:
        """Set a benchmark up; returns how many calls may follow one setup."""
        return self._packages.prepare(self.ask, self._side, name, 0, alone)

    def time(self, calls: int) -> float:
        """Seconds of calls of the prepared benchmark."""
        return float(self.ask("time", 0, calls, 0)[0])

    def after(self, error: ContestError) -> None:
        """Note that a new process is needed if this one is gone."""
        if isinstance(error, ProcessEndedError) or getattr(error, "ended", False):
            self.close()

    def close(self) -> None:
        """End the process."""
        self._worker = None
        self._stack.close()


def broken(packages: Packages, folder: Path) -> Iterator[Finding]:
    """The parts of the suite in `folder` that head cannot read."""
    base = packages.listed().get("base")
    for part, why in packages.listed()["head"].broken.items():
        named = Path(*part.split("."))
        files = (named.with_suffix(".py"), named / "__init__.py", named.parent.with_suffix(".py"))
        file = next((of for of in files if (folder.parent / of).is_file()), Path(folder.name))
        both = base is not None and part in base.broken
        yield Finding(
            f"{file}", 0, "fails", part,
            f"it cannot be read in {'base and head' if both else 'head'}: {why[:_TOLD]}",
            "none of its benchmarks is measured", "mend what it imports, or take it out",
        )  # fmt: skip


def _first_of_each(names: Sequence[str]) -> list[str]:
    """The first combination of parameters of each function, then the others, in order."""
    first = {_bare(name): name for name in reversed(names)}
    return sorted(names, key=lambda name: first[_bare(name)] != name)


def _bare(name: str) -> str:
    """A benchmark's name without its parameters."""
    return name.partition("(")[0]


def _joined(several: Sequence[Finding]) -> Finding:
    """One finding on a function, made of those on several of its parameters."""
    first, *others = several
    more = f" (and with {len(others)} other parameters)" if others else ""
    return replace(first, what=f"{first.what}{more}")


def _short(error: ContestError) -> str:
    said = " ".join(str(error).split())
    return said if len(said) <= _TOLD else f"{said[:_TOLD]}…"


def _least(worker: _Kept, calls: int) -> float:
    """Seconds of the calls that may follow one setup: the least mean of setups in a row. So does a
    comparison time them; the first call after a pause takes longer."""
    until = time.monotonic() + _SETUP_S
    setups, least = 1, worker.time(calls)
    while setups < _IN_A_ROW and time.monotonic() < until:
        setups *= 2
        least = min(least, worker.time(setups * calls) / setups)
    return least


def _grain() -> float:
    """Seconds between two readings of the clock in a row."""
    clock = time.perf_counter
    differences = [-(clock() - clock()) for _ in range(1001)]
    return statistics.median(differences)
