"""A suite of asv benchmarks, read as asv reads it, in the process that runs it.

The process runs the measured project's own Python and packages. So this file needs the standard
library alone, and Python 3.8 or later, and its name is one that no project has. The rules are
asv's:
https://asv.readthedocs.io/en/stable/writing_benchmarks.html
"""

from __future__ import annotations

import collections
import importlib
import importlib.machinery
import inspect
import itertools
import pickle
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# The names that asv takes for benchmarks, with their types.
_NAMES = (
    ("time", re.compile(r"^(Time[A-Z_].+)|(time_.+)$")),
    ("timeraw", re.compile(r"^(Timeraw[A-Z_].+)|(timeraw_.+)$")),
    ("memory", re.compile(r"^(Mem[A-Z_].+)|(mem_.+)$")),
    ("peakmemory", re.compile(r"^(PeakMem[A-Z_].+)|(peakmem_.+)$")),
    ("track", re.compile(r"^(Track[A-Z_].+)|(track_.+)$")),
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PICKLE = "cache.pickle"
_OWN_NAME = re.compile(rb"\bbenchmark_name\b")


class Suite:
    """The package of benchmarks in `folder`. An import finds this package alone, and not what lies
    beside it, such as the project's sources: the build is to be imported in their place."""

    def __init__(self, folder: str) -> None:
        self.name = Path(folder).name
        self._home = str(Path(folder).parent)
        self.modules = [".".join((self.name, *parts)) for parts in _modules(Path(folder))]
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Called by the import system."""
        if name == self.name:
            return importlib.machinery.PathFinder.find_spec(name, [self._home], target)
        return None

    def with_names(self, beginning: str) -> list[str]:
        """The modules that may have benchmarks whose names have this beginning."""
        start = f"{self.name}.{beginning}"
        if not beginning or self._named_freely():
            return [*self.modules]
        return [m for m in self.modules if start.startswith(f"{m}.") or f"{m}.".startswith(start)]

    def _named_freely(self) -> bool:
        """Whether a benchmark may have a name that does not follow from its place."""
        texts = (path.read_bytes() for path in Path(self._home, self.name).rglob("*.py"))
        return any(_OWN_NAME.search(text) for text in texts)

    def homes(self, benchmark: str) -> list[str]:
        """The modules that may hold a benchmark of this name: first those that the name begins
        with."""
        named = [m for m in self.modules if f"{self.name}.{benchmark}".startswith(f"{m}.")]
        others = [module for module in self.modules if module not in named]
        return sorted(named, key=len, reverse=True) + others


def _modules(folder: Path) -> Iterator[tuple[str, ...]]:
    """The package itself and every module in it, as the parts of their names."""
    yield ()
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (entry / "__init__.py").exists():
            for parts in _modules(entry):
                yield (entry.name, *parts)
        elif entry.suffix == ".py" and entry.stem != "__init__":
            yield (entry.stem,)


class Benchmark:
    """One benchmark with one combination of its parameters."""

    def __init__(self, name: str, of: str, func: Any, sources: Sequence[Any], values: Any) -> None:
        def said(what: str, otherwise: Any) -> Any:
            return next(_all(sources, what), otherwise)

        self.name = name
        self.type = of
        self.func = func
        self._values = tuple(values)
        # asv calls the module's setup first, and the module's teardown last.
        self.setups = [*_hooks(sources, "setup")][::-1]
        self._teardowns = [*_hooks(sources, "teardown")]
        self._cache = said("setup_cache", None)
        self._skipped = [*said("skip_params", ())]
        self.number = int(said("number", 0))
        self.warmup_s = float(said("warmup_time", -1))
        self.timer = said("timer", time.perf_counter)
        self.timeout = said("timeout", None)
        self.env = dict(said("env", None) or {}) if of == "timeraw" else {}
        self._arguments: tuple[Any, ...] | None = None

    @property
    def cache(self) -> str | None:
        """An identifier of its `setup_cache`, which benchmarks may share; None without one."""
        if self._cache is None:
            return None
        code = getattr(self._cache, "__code__", None)
        return f"{self._cache.__module__}:{code.co_firstlineno if code else self._cache.__name__}"

    def make_cache(self) -> None:
        """Call `setup_cache` and keep what it returns in the working directory."""
        for setup in self.setups:
            if not inspect.ismethod(setup) and not inspect.signature(setup).parameters:
                setup()  # asv does so, and a setup may set a seed
        with Path(_PICKLE).open("wb") as file:
            pickle.dump(self._cache(), file, protocol=pickle.HIGHEST_PROTOCOL)

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of setup, function and teardown: what `setup_cache` returned, and the
        parameters."""
        if self._arguments is None:
            self._arguments = self._values
            if self._cache is not None:
                with Path(_PICKLE).open("rb") as file:
                    cache = pickle.load(file)
                if cache is not None:  # asv passes no argument for None
                    self._arguments = (cache, *self._values)
        return self._arguments

    def set_up(self) -> None:
        """Call the setups. A benchmark to be skipped raises NotImplementedError, asv's sign."""
        if self._values in self._skipped:
            raise NotImplementedError("skip_params names these parameters")
        for setup in self.setups:
            setup(*self.arguments())

    def tear_down(self) -> None:
        """Call the teardowns. asv does so before each setup but the first."""
        for teardown in self._teardowns:
            teardown(*self.arguments())

    def forget(self) -> None:
        """Release the arguments; `arguments` reads what `setup_cache` returned anew."""
        self._arguments = None


def discovered(module: str, broken: dict[str, str]) -> Iterator[Benchmark]:
    """The benchmarks of a module of the suite, which is imported. What cannot be read is noted in
    `broken` with the reason, and does not stop the rest."""
    try:
        found = importlib.import_module(module)
    except BaseException as error:  # a module may raise anything; asv goes on as well
        broken[module] = told(error)
        return
    for name, value in [*vars(found).items()]:
        if name.startswith("_"):
            continue
        try:
            if inspect.isclass(value) and not inspect.isabstract(value):
                for attribute, of in inspect.getmembers(value):
                    if inspect.isfunction(of) or inspect.ismethod(of):
                        yield from _benchmarks(attribute, found, value, of)
            elif inspect.isfunction(value):
                yield from _benchmarks(name, found, None, value)
        except Exception as error:  # of a class's constructor, or of reading the parameters
            broken[f"{module}.{name}"] = told(error)


def told(error: BaseException) -> str:
    """An error as one line of text."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _benchmarks(attribute: str, module: Any, klass: Any, func: Any) -> Iterator[Benchmark]:
    if getattr(func, "skip_benchmark", False):
        return
    given = getattr(func, "benchmark_name", None)
    searched = given.rpartition(".")[2] if given else attribute
    kind = next((kind for kind, name in _NAMES if name.match(searched)), None)
    if kind is None:
        return
    parts = module.__name__.split(".")[1:]
    parts += [func.__name__] if klass is None else [klass.__name__, attribute]
    sources = _sources(attribute, module, klass, func)
    every = _parameters(next(_all(sources, "params"), ()))
    for values in itertools.product(*([*zip(_ids(each), each)] for each in every)):
        called = f"({', '.join(id_ for id_, _ in values)})" if values else ""
        # Each has an instance of its own, so that none finds what another has left behind.
        own = _sources(attribute, module, klass, func)
        name = (given or ".".join(parts)) + called
        yield Benchmark(name, kind, own[0], own, [value for _, value in values])


def _sources(attribute: str, module: Any, klass: Any, func: Any) -> tuple[Any, ...]:
    """The objects that may hold a benchmark's attributes, the nearest first: the function, then its
    instance, then the module."""
    if klass is None:
        return func, module
    instance = klass()
    return getattr(instance, attribute), instance, module


def _parameters(params: Any) -> list[list[Any]]:
    params = list(params)
    if params and not isinstance(params[0], (tuple, list)):
        return [params]
    return [list(each) for each in params]


def _ids(values: Sequence[Any]) -> list[str]:
    """The names that asv gives parameters: their `repr` without addresses, with a number where two
    have the same."""
    ids = [_ADDRESS.sub("", repr(value)) for value in values]
    often = collections.Counter(ids)
    turn: dict[str, Iterator[int]] = collections.defaultdict(itertools.count)
    return [f"{id_} ({next(turn[id_])})" if often[id_] > 1 else id_ for id_ in ids]


def _all(sources: Sequence[Any], name: str) -> Iterator[Any]:
    """The values that function, instance and module have of an attribute, in this order."""
    for source in sources:
        value = getattr(source, name, None)
        if value is not None:
            yield value


def _hooks(sources: Sequence[Any], name: str) -> Iterator[Any]:
    """The functions `setup` or `teardown` of all sources. asv ignores case: `setUp`."""
    for source in sources:
        for key in dir(source):
            if key.lower() == name and getattr(source, key) is not None:
                yield getattr(source, key)
