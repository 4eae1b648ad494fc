"""A process that runs benchmarks of one build of a project, or of several builds in turn.

It is started as `python rlox_opt_side.py SETTINGS`, where SETTINGS is JSON: `{"suite": folder,
"shared": [modules], "sides": [{"folder": …, "packages": [names]}]}`.

Each side is a build: its packages are looked for in its folder first. Several sides share a process
only where the project says that its packages allow it. They may then take their inputs from the
`shared` modules, so that their inputs lie at the same addresses.

Commands come on stdin and answers go to stdout, one line of JSON each:
`["all", beginning]`, `["builds"]`, `["load", side, name, seed]`, `["prepare", side, name, seed,
alone, cache]`, `["cache", side, name, cache]`, `["time", side, calls, warm]`, `["pin", core]`,
`["contest", seconds, seed]` between all prepared sides, `["forget", seed]`, `["reached", side]`,
and, of the side prepared last, `["call", n]` and `["value"]`. An error is answered as
`{"error": text}`, with `"skipped": true` where a benchmark asks to be skipped.

The process runs the project's own Python, so this file needs the standard library alone, and
Python 3.8 or later.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import json
import os
import random
import site
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from rlox_opt_prepared import (
    Prepared,
    Skipped,
    busy_s,
    end_what_came_back,
    spans,
    without_gc,
)
from rlox_opt_suite import Benchmark, Suite, discovered, told

_SLICE_S = 0.00025  # the shortest slice; reading the clock twice takes less than 0.1 % of it
_PR_SET_PTRACER = 0x59616D61
_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
_PATH = os.environ.get("PYTHONPATH", "")  # that of the suite's own settings


class Side:
    """A build of the project, and the benchmarks that were imported with it. A module is imported
    when one of its benchmarks is needed, since some import much.

    Within `with side:` an import of its packages finds this side's, also in a Python that a
    benchmark starts.
    """

    def __init__(
        self, folder: str, packages: Sequence[str], suite: Suite, shared: Sequence[str]
    ) -> None:
        self.folder = os.path.realpath(folder)
        self._packages = packages
        self._suite = suite
        self._shared = shared
        self._modules: dict[str, Any] = {}
        self._benchmarks: dict[str, dict[str, Benchmark]] = {}  # by module
        self.broken: dict[str, str] = {}
        with self:
            site.addsitedir(self.folder)  # obeys the .pth files that wheels install, as Python does

    def build(self) -> dict[str, Any]:
        """What the package's `build_info()` returns; an empty dict without one."""
        with self:
            package = importlib.import_module(self._packages[0])
            self._check_origin()
            said: object = getattr(package, "build_info", dict)()
            return said if isinstance(said, dict) else {}

    def all(self, beginning: str) -> Iterator[Benchmark]:
        """Every benchmark of the modules that may have names with this beginning. What cannot be
        read is noted in `broken`."""
        for module in self._suite.with_names(beginning):
            yield from self._of(module).values()
        with self:
            self._check_origin()

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark with this name. Raises LookupError."""
        for module in self._suite.homes(name):
            if name in self._of(module):
                with self:
                    self._check_origin()
                return self._benchmarks[module][name]
        reasons = "; ".join(f"{module}: {why}" for module, why in self.broken.items())
        raise LookupError(f"the suite has no {name} here" + (f" ({reasons})" if reasons else ""))

    def _of(self, module: str) -> dict[str, Benchmark]:
        if module not in self._benchmarks:
            with self:
                of = discovered(module, self.broken)
                self._benchmarks[module] = {benchmark.name: benchmark for benchmark in of}
        return self._benchmarks[module]

    def _check_origin(self) -> None:
        """Raises ImportError as the function `check_origin` does."""
        check_origin(self._packages, self.folder)

    def forget(self) -> None:
        """Clear the caches of the suite's functions that are decorated with `lru_cache`."""
        for name, module in [*self._modules.items()]:
            if name.startswith(f"{self._suite.name}."):
                for function in [*vars(module).values()]:
                    if isinstance(function, functools._lru_cache_wrapper):
                        function.cache_clear()

    def __enter__(self) -> None:
        sys.path.insert(0, self.folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (self.folder, _PATH)))
        sys.modules.update(self._modules)

    def __exit__(self, *_: object) -> None:
        sys.path.remove(self.folder)
        own = [name for name in sys.modules if self._owns(name)]
        self._modules = {name: sys.modules.pop(name) for name in own}

    def _owns(self, module: str) -> bool:
        top = module.partition(".")[0]
        return (top == self._suite.name or top in self._packages) and module not in self._shared


class Alone(Side):
    """The only side of its process. Every import finds its packages."""

    def __enter__(self) -> None:
        if self.folder not in sys.path:
            super().__enter__()

    def __exit__(self, *_: object) -> None:
        own = [name for name in sys.modules if self._owns(name)]
        self._modules = {name: sys.modules[name] for name in own}


def pin(core: int | None) -> None:
    """Stay on one core, with all processes that are started meanwhile; None ends that."""
    if _CORES is not None:
        os.sched_setaffinity(0, _CORES if core is None else {core})


class Arena:
    """The sides, and the benchmark that is prepared on each."""

    pin = staticmethod(pin)

    def __init__(self, suite: str, shared: Sequence[str], sides: Sequence[dict[str, Any]]) -> None:
        of = Suite(suite)
        kind = Side if len(sides) > 1 else Alone
        self._sides = [kind(side["folder"], side["packages"], of, shared) for side in sides]
        self._prepared: dict[int, Prepared] = {}
        self._last = 0
        self._pads: list[bytearray] = []

    def all(self, beginning: str) -> list[dict[str, Any]]:
        """Type, cache and timeout of every side's benchmarks by name, and what cannot be read; of
        the modules alone that may have names with this beginning."""
        listed = []
        for side in self._sides:
            there = {b.name: [b.type, b.cache, b.timeout] for b in side.all(beginning)}
            broken = {module: self.short(why) for module, why in side.broken.items()}
            listed.append({"benchmarks": there, "broken": broken})
        return listed

    def short(self, text: str) -> str:
        """A text without the sides' folders, which no longer exist when somebody reads it."""
        for side in self._sides:
            text = text.replace(side.folder + os.sep, "")
        return text

    def builds(self) -> list[dict[str, Any]]:
        """What each side says of its build."""
        return [side.build() for side in self._sides]

    def cache(self, number: int, name: str, folder: str) -> None:
        """Call the benchmark's `setup_cache`, and keep what it returns in the folder."""
        os.chdir(folder)
        benchmark = self._sides[number].benchmark(name)
        with self._sides[number]:
            benchmark.make_cache()

    def load(self, number: int, name: str, seed: int) -> None:
        """Import the benchmark's module."""
        draw_from(seed)  # a module may draw data when it is imported
        self._sides[number].benchmark(name)

    def prepare(
        self, number: int, name: str, seed: int, alone: int | None, cache: str | None
    ) -> int:
        """Set a benchmark up and call it once. Returns how many calls may follow one setup."""
        self._tear_down(number)
        if cache is not None:
            os.chdir(cache)
        draw_from(seed)  # all sides then draw the same data
        benchmark = self._sides[number].benchmark(name)
        draw_from(seed)
        prepared = Prepared(self._sides[number], benchmark, alone)
        self._prepared[number], self._last = prepared, number
        return int(prepared.alone)

    def _tear_down(self, number: int) -> None:
        if number in self._prepared:
            self._prepared.pop(number).tear_down()

    def forget(self, seed: int) -> None:
        """Release what the benchmarks hold, so that the next `prepare` gets other memory."""
        failed: list[Exception] = []
        for number, side in enumerate(self._sides):
            try:
                self._tear_down(number)
            except Exception as error:  # which must not reach the next benchmark
                failed.append(error)
            side.forget()
        self._pads = pads(seed)
        gc.collect()
        if failed:
            raise failed[0]

    def time(self, number: int, calls: int, warm: int) -> tuple[float, float, float]:
        """Seconds of the calls; seconds with their setups; processor seconds of all threads."""
        busy = busy_s()
        seconds, whole = self._prepared[number].time(calls, warm)
        return seconds, whole, busy_s() - busy

    def contest(
        self, seconds: float, seed: int, least_rounds: Sequence[Sequence[float]]
    ) -> list[list[float]]:
        """Seconds of a call, by side and round; within a round the sides are in random order.
        `least_rounds` are the fewest rounds by the seconds of a slice: one of longer slices."""
        rng = random.Random(seed)
        numbers = range(len(self._sides))
        calls = max(1, self._prepared[0].alone)
        while (took := max(self.time(0, calls, 0)[:2])) < _SLICE_S:
            calls *= 2
        least = next((rounds for below, rounds in least_rounds if took < below), 1)
        times: list[list[float]] = [[] for _ in numbers]
        for number in rng.sample(numbers, len(numbers)) if took < least_rounds[0][0] else ():
            self.time(number, calls, 0)
        gc.collect()
        with without_gc():
            end = time.perf_counter() + seconds
            while len(times[0]) < least or time.perf_counter() < end:
                for number in rng.sample(numbers, len(numbers)):
                    times[number].append(self.time(number, calls, 0)[0] / calls)
        return times

    def call(self, n: int) -> list[tuple[int, int]]:
        """Call the benchmark prepared last. Returns when its calls began and ended, in nanoseconds
        of the monotonic clock."""
        of: list[tuple[int, int]]
        with spans() as of:
            self._prepared[self._last].time(n)
        return of

    def reached(self, number: int) -> list[tuple[str, int]]:
        """The functions of a side's build that one more call of its benchmark enters."""
        places: list[tuple[str, int]] = self._prepared[number].reached(self._sides[number].folder)
        return places

    def value(self) -> float:
        """The value of the benchmark that was prepared last."""
        return float(self._prepared[self._last].value())


def check_origin(packages: Sequence[str], folder: str) -> None:
    """Raises ImportError if a package was not imported from `folder`, where it was built."""
    for name in packages:
        module = sys.modules.get(name)
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        where = [os.path.realpath(place) for place in places if place]
        if where and not any(place.startswith(folder + os.sep) for place in where):
            raise ImportError(f"{name} came from {where[0]}, not from {folder}")


def pads(seed: int) -> list[bytearray]:
    """Blocks of memory to keep, so that later allocations lie elsewhere. Their sizes are below and
    above the one from which malloc maps separate pages."""
    rng = random.Random(seed)
    return [bytearray(rng.randrange(1, most)) for most in (1 << 12, 1 << 16, 1 << 22)]


def draw_from(seed: int) -> None:
    """Seed the generators from which benchmarks draw data: Python's and NumPy's."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


def opened() -> tuple[TextIO, TextIO]:
    """The streams that commands are read from and answers are written to."""
    sys.path.pop(0)  # this file's folder
    if sys.platform == "linux":  # lets a sampler read this process, though it did not start it
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    # What a benchmark prints must not be an answer, and it must not read a command.
    answers = os.fdopen(os.dup(1), "w")
    commands = os.fdopen(os.dup(0))
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return commands, answers


def main(settings: str) -> None:
    """Answer the commands on stdin until it ends."""
    commands, answers = opened()
    arena = Arena(**json.loads(settings))
    for line in commands:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(arena, name)(*arguments)
        except Skipped as error:
            answer = {"error": arena.short(str(error)), "skipped": True}
        except Exception as error:  # benchmarks may raise anything
            answer = {"error": arena.short(told(error))}
        except SystemExit as error:
            answer = {"error": f"it calls sys.exit({error.code!r})"}
        end_what_came_back()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
