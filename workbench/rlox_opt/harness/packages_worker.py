"""A process that times builds of the whole package against each other, on the same benchmarks:
`python packages_worker.py PACKAGE BENCHMARKS FOLDER…`.

BENCHMARKS is a folder of asv benchmarks; each FOLDER holds a build of the package called PACKAGE
and is a side, numbered from 0. All sides live in this one process and take their inputs from the
one module `benchmarks.inputs`, so that neither the core nor the addresses of the inputs tell them
apart.

Reads commands from stdin and answers on stdout, a JSON value a line each: `["builds"]`,
`["names", kind]`, `["prepare", side, name]`, `["contest", seconds, seed]` of all sides prepared,
`["forget", seed]` what was prepared, `["call", n]` and `["value"]` of the side prepared last. An
error is answered as `{"error": text}`.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import itertools
import json
import os
import pkgutil
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_SLICE_S = 0.00025  # the shortest slice; its two readings of the clock are then below 0.1 %
_LEAST_ROUNDS = 5
_INPUTS = "benchmarks.inputs"
_PR_SET_PTRACER = 0x59616D61

Call = Callable[[], object]


class Side:
    """A build of the package, and the benchmarks that are imported with it: each module when one of
    its benchmarks is wanted, since some import torch.

    Within `with side:` it is the one that an import of its name finds.
    """

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
        self._modules: dict[str, ModuleType] = {}
        self._benchmarks: dict[str, dict[str, tuple[Any, int]]] = {}
        self._caches: dict[str, Any] = {}
        with self:
            sys.path.insert(0, str(folder))
            try:
                loaded = importlib.import_module(package)
                # Not every package says how it was built.
                self.build: dict[str, Any] = {**getattr(loaded, "build_info", dict)()}
                if folder not in Path(loaded.__file__ or "").parents:
                    raise ImportError(f"{package} came from {loaded.__file__}, not from {folder}")
            finally:
                sys.path.remove(str(folder))

    def benchmarks(self, module: str) -> dict[str, tuple[Any, int]]:
        """Those of a module by name, each with the number of its parameters."""
        if module not in self._benchmarks:
            with self:
                self._benchmarks[module] = dict(_discovered(module))
        return self._benchmarks[module]

    def cache(self, benchmark: Any) -> Any:
        """What the benchmark's `setup_cache` returns, which is called once; None without one."""
        key = benchmark.setup_cache_key
        if key is not None and key not in self._caches:
            self._caches[key] = benchmark.do_setup_cache()
        return self._caches.get(key)

    def forget(self) -> None:
        """Clear what the benchmarks' cached functions hold."""
        for name, module in self._modules.items():
            if name.startswith("benchmarks."):
                for function in vars(module).values():
                    if isinstance(function, functools._lru_cache_wrapper):
                        function.cache_clear()

    def __enter__(self) -> None:
        sys.modules.update(self._modules)

    def __exit__(self, *_: object) -> None:
        own = [name for name in sys.modules if self._owns(name)]
        self._modules = {name: sys.modules.pop(name) for name in own}

    def _owns(self, module: str) -> bool:
        return module.split(".")[0] in (self._package, "benchmarks") and module != _INPUTS


def _discovered(module: str) -> Iterator[tuple[str, tuple[Any, int]]]:
    """As asv finds them: each with its parameters is one, named as asv prints it."""
    from asv_runner.discovery import disc_benchmarks

    for benchmark in disc_benchmarks(f"benchmarks.{module}", ignore_import_errors=True):
        for number, values in enumerate(itertools.product(*benchmark.params)):
            yield benchmark.name + (f"({', '.join(values)})" if values else ""), (benchmark, number)


def timed(call: Call, calls: int) -> float:
    """Seconds that `calls` calls take together."""
    start = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    return time.perf_counter() - start


def peak_memory() -> int:
    """The most memory that this process has held at once, in bytes.

    Not what getrusage says: Linux starts that from the peak of the process that started this one.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(text.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Arena:
    """The sides, and of each the call prepared last."""

    def __init__(self, package: str, benchmarks: Path, folders: list[Path]) -> None:
        sys.path.insert(0, str(benchmarks.parent))
        self._modules = [module.name for module in pkgutil.iter_modules([str(benchmarks)])]
        self.sides = [Side(package, folder) for folder in folders]
        self._calls: dict[int, Call] = {}
        self._prepared: dict[int, tuple[Any, int]] = {}  # the benchmarks of these calls
        self._last = 0
        self._pads: list[bytearray] = []

    def names(self, kind: str) -> list[list[str]]:
        """Of every side, the benchmarks of a kind: "time", "peakmemory" or "track"."""
        return [
            [
                name
                for module in self._modules
                for name, (benchmark, _) in side.benchmarks(module).items()
                if benchmark.type == kind
            ]
            for side in self.sides
        ]

    def prepare(self, number: int, name: str) -> None:
        """Make the benchmark's inputs and call it once, which also checks its results."""
        self._tear_down(number)
        side = self.sides[number]
        benchmark, parameters = side.benchmarks(name.partition(".")[0])[name]
        with side:
            benchmark.set_param_idx(parameters)
            benchmark.set_cache(side.cache(benchmark))
            if benchmark.do_setup():
                raise NotImplementedError(
                    "its setup, or skip_params, says that it is not to be run"
                )
            self._prepared[number] = benchmark, parameters
            call = functools.partial(benchmark.func, *benchmark._build_params())
            call()
        self._calls[number], self._last = call, number

    def _tear_down(self, number: int) -> None:
        """Call the teardown of what was prepared last on this side."""
        self._calls.pop(number, None)
        if prepared := self._prepared.pop(number, None):
            benchmark, parameters = prepared
            with self.sides[number]:
                benchmark.set_param_idx(parameters)
                benchmark.do_teardown()

    def forget(self, seed: int) -> None:
        """Let go of what the benchmarks hold, so that the next `prepare` gets other memory."""
        for number in range(len(self.sides)):
            self._tear_down(number)
        for side in self.sides:
            side.forget()
        # Below and above the size from which malloc maps pages of their own.
        rng = random.Random(seed)
        self._pads = [bytearray(rng.randrange(1, most)) for most in (1 << 12, 1 << 16, 1 << 22)]

    def contest(self, seconds: float, seed: int) -> list[list[float]]:
        """Seconds of a call, by side and round; within a round the sides are in random order."""
        rng = random.Random(seed)
        calls = 1
        while self._time(0, calls) < _SLICE_S:
            calls *= 2
        times: list[list[float]] = [[] for _ in self.sides]
        for number in rng.sample(range(len(self.sides)), len(self.sides)):
            self._time(number, calls)
        gc.collect()
        gc.disable()
        end = time.perf_counter() + seconds
        while len(times[0]) < _LEAST_ROUNDS or time.perf_counter() < end:
            for number in rng.sample(range(len(self.sides)), len(self.sides)):
                times[number].append(self._time(number, calls) / calls)
        gc.enable()
        return times

    def call(self, n: int) -> None:
        """Call the side prepared last."""
        self._time(self._last, n)

    def value(self) -> float:
        """What the benchmark prepared last returns, or the most memory this process had: bytes."""
        number = self._last
        returned = self._calls[number]()
        if isinstance(returned, int | float):
            return returned
        return peak_memory()

    def _time(self, number: int, calls: int) -> float:
        with self.sides[number]:
            return timed(self._calls[number], calls)


def main(package: str, benchmarks: str, *folders: str) -> None:
    """Answer the commands on stdin until it ends."""
    sys.path.pop(0)  # this file's folder: its modules are not to be found by their bare names
    if sys.platform == "linux":  # any process of the user's may look on: a sampler is no ancestor
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    # What a benchmark prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    arena = Arena(package, Path(benchmarks), [Path(folder) for folder in folders])
    commands: dict[str, Callable[..., Any]] = {
        "builds": lambda: [side.build for side in arena.sides],
        "names": arena.names,
        "prepare": arena.prepare,
        "forget": arena.forget,
        "contest": arena.contest,
        "call": arena.call,
        "value": arena.value,
    }
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = commands[name](*arguments)
        except Exception as error:  # the benchmark's own, whatever it is
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
