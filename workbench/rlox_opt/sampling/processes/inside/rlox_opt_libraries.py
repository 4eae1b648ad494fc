"""Records what libraries do in the program: Gymnasium's workers, the Rust extension, torch."""

from __future__ import annotations

import os
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any

from rlox_opt_hooks import on_import, replace
from rlox_opt_operators import Operators
from rlox_opt_segments import encode

_QUIET_NS = 500_000_000
_DEVICE_NS = 2_000_000_000  # the time that a working program has to begin to use its device
_POLLS = 20
_NOTING = {"build_info", "record_spans", "take_spans"}
_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


class Libraries:
    """Records the work of each library as a source of its own."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.rust_key = ""  # the process whose calls the extension records
        self.rust_names: list[int] = []
        self.torch: Operators | None = None
        self.timed: list[Any] = []  # sources of other libraries' blocks of the program
        self.imported = 0, 0  # the number of modules, and since when it is so
        self.told: tuple[str, dict[str, Any]] = "", {}  # the process, and what it runs with
        self.polls = 0  # flushes since that was last written
        self.ready = 0  # since when torch's operators can be recorded

    def install(self) -> None:
        """Replace functions of modules when they are imported, and ask others at each flush."""
        on_import("gymnasium.vector.async_vector_env", self._workers)
        on_import("sample_factory.utils.timing", self._sample_factory)
        self.recorder.polled += [self._rust, self._torch, self._loaded]

    def _loaded(self) -> list[Any]:
        """What the process runs with. It is written when it changes, and every few seconds again,
        since old segments are dropped."""
        now = self.recorder.key, loaded()
        self.polls = self.polls + 1 if now == self.told else 0
        self.told = now
        return [] if self.polls % _POLLS else [{"loaded": now[1]}]

    def _workers(self, module: Any) -> None:
        """Record the steps of Gymnasium's workers, which have no `Timing`."""
        blocks = _Blocks(self.recorder.source("environments"))

        def timed(env: Any) -> Any:
            step, reset = env.step, env.reset

            def timed_step(*args: Any, **kwargs: Any) -> Any:
                with blocks.add_time("python_env/step"):
                    return step(*args, **kwargs)

            def timed_reset(*args: Any, **kwargs: Any) -> Any:
                with blocks.add_time("python_env/reset"):
                    return reset(*args, **kwargs)

            env.step, env.reset = timed_step, timed_reset
            return env

        def make(original: Any) -> Callable[..., Any]:
            def worker(index: int, env_fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
                return original(index, lambda: timed(env_fn()), *args, **kwargs)

            return worker

        replace(module, "_async_worker", make)

    def _sample_factory(self, module: Any) -> None:
        """Record the blocks of Sample Factory's Timing, which keeps only their sums."""
        source, here = self.recorder.source("Sample Factory"), threading.local()
        self.timed.append(source)

        def make_enter(original: Any) -> Callable[..., Any]:
            def enter(context: Any) -> Any:
                if here.__dict__.get("key") != self.recorder.key:  # in a fork: the parent's blocks
                    here.key, here.open = self.recorder.key, []
                outer = f"{here.open[-1][0]}/" if here.open else ""
                here.open.append((f"{outer}{context._key}", monotonic_ns()))
                return original(context)

            return enter

        def make_exit(original: Any) -> Callable[..., Any]:
            def leave(context: Any, *error: Any) -> Any:
                if here.__dict__.get("key") == self.recorder.key and here.open:
                    path, begin = here.open.pop()
                    source.here().extend((source.index(path), begin, monotonic_ns()))
                return original(context, *error)

            return leave

        replace(module.TimingContext, "__enter__", make_enter)
        replace(module.TimingContext, "__exit__", make_exit)

    def _rust(self) -> list[Any]:
        """Calls into an extension that records them itself, since it knows its threads."""
        core = _noting()
        if core is None:
            return []
        source = self.recorder.source("rust")
        if self.rust_key != self.recorder.key:  # in a fork, these are the parent's calls
            self.rust_key = self.recorder.key
            core.take_spans()
            core.record_spans(monotonic_ns())
        names, threads = core.take_spans()
        while len(self.rust_names) < len(names):
            self.rust_names.append(source.index(names[len(self.rust_names)], "rust"))
        entries = []
        for native_id, words in threads:
            data = array("q")
            data.frombytes(words)
            data[0::3] = array("q", [self.rust_names[site] for site in data[0::3]])
            number = self.recorder.threads.number(native_id)
            entries.append({"spans": [source.number, number, encode(data)]})
        return entries

    def _torch(self) -> list[Any]:
        """Record torch's operators, for the seconds that the user chose."""
        options = self.recorder.options
        torch: Any = sys.modules.get("torch")
        # Not in a fork: with a GPU, starting the profiler would occupy it.
        if not options["torch_s"] or torch is None or self.recorder.header["start"] != "exec":
            return []
        now = monotonic_ns()
        if self.torch is None:
            begin = options["start_ns"] + options["from_s"] * 1e9
            works = self._works(now) and not torch.__spec__._initializing
            if now < begin or not works or self.recorder.ending:
                return []
            self.ready = self.ready or now
            # A profiler that starts before the program uses its device never sees the device.
            late = torch.cuda.is_initialized() or now >= self.ready + _DEVICE_NS
            if late or not _has_device(torch):
                self.torch = Operators(self.recorder)  # takes seconds if there is a GPU
                self.torch_until = monotonic_ns() + options["torch_s"] * 1e9
        elif now >= self.torch_until or self.recorder.ending:
            self.torch.write()
        return []

    def _works(self, now: int) -> bool:
        """Whether the program works and no longer imports. Its first block shows that; without
        blocks, that it has imported nothing for a while."""
        modules, _ = self.imported
        if len(sys.modules) != modules:
            self.imported = len(sys.modules), now
        timings = enumerate(self.recorder.timings)
        timed = [self.recorder.sources[n] for n, timing in timings if timing is not None]
        if timed := timed + self.timed:
            return any(source.paths for source in timed)
        return now >= self.imported[1] + _QUIET_NS


class _Blocks:
    """A stand-in for `Timing.add_time` for programs without a `Timing`. Samplers without times find
    the phase by the line that calls it, so the calling line must contain the name literally."""

    def __init__(self, source: Any) -> None:
        self.source = source

    @contextmanager
    def add_time(self, path: str) -> Iterator[None]:
        """A block of the source."""
        begin = monotonic_ns()
        try:
            yield
        finally:
            self.source.here().extend((self.source.index(path), begin, monotonic_ns()))


def loaded() -> dict[str, Any]:
    """What this process runs with: `versions` of Python and of imported packages outside Python's
    own; and for an extension that records its calls, how it was `built`, and its `features`.
    """
    versions = {"python": sys.version.split()[0]}
    pythons = getattr(sys, "stdlib_module_names", ())
    for name, module in tuple(sys.modules.items()):
        if "." not in name and name not in pythons:
            version = getattr(module, "__dict__", {}).get("__version__")
            if isinstance(version, str):
                versions[name] = str(version)
    core = _noting()
    if core is None:
        return {"versions": versions}
    build = core.build_info()
    rustc = build["rustc"].removeprefix("rustc ").split(" ")[0]
    package = core.__name__.partition(".")[0]
    built = {package: build["version"], "rustc": rustc, "build_profile": build["profile"]}
    return {"versions": versions, "built": built, "features": build["features"]}


def _noting() -> Any:
    """The extension that records its own calls, recognised by its functions; None if there is none
    yet. No module is asked for an attribute, since that makes some import others."""
    for module in tuple(sys.modules.values()):
        members = getattr(module, "__dict__", {})
        if members.keys() >= _NOTING and not str(members.get("__file__", ".py")).endswith(".py"):
            return module
    return None


def _has_device(torch: Any) -> bool:
    """Whether torch could use a device here. Asking torch itself would occupy one."""
    version = getattr(torch, "version", None)
    built = getattr(version, "cuda", None) or getattr(version, "hip", None)
    return bool(built) and any(map(os.path.exists, _DEVICES))
