"""Records which part of torch's work a thread is in: backward, the optimiser, or without gradients.

This distinguishes samples whose stack ends in torch's kernels. In every version of torch the parts
are begun by Python functions: those that start the autograd engine, an optimiser's `step`, and the
blocks that turn gradients off. Each is replaced by one that reads the clock before and after.
The record is `{"parts": [source, thread, data]}` with index, begin, end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from rlox_opt_hooks import on_import, replace

_MODES = ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled")
_CLIPS = ("clip_grad_norm_", "clip_grad_value_")


class Torch:
    """Replaces the functions that begin and end a part."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.source = recorder.source("torch parts", what="parts")
        self.here = threading.local()  # `own`: the thread's Off
        self.off: list[Off] = []
        self.enabled: Callable[[], bool] = lambda: True
        self.compiling: Callable[[], bool] = lambda: False

    def install(self) -> None:
        """Replace them when the program imports torch."""
        self.recorder.polled.append(self.settle)
        on_import("torch", self._torch)

    def _torch(self, torch: Any) -> None:
        if getattr(torch, "autograd", None) is None:  # another package named torch
            return
        self.without = self.source.index("no_grad", "part")
        self.enabled = torch.is_grad_enabled
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", self.compiling)
        for name in ("backward", "grad"):
            replace(torch.autograd, name, self._timed("backward"))
        utils = torch.nn.utils
        for name in _CLIPS:
            for module in (utils, sys.modules.get("torch.nn.utils.clip_grad")):
                replace(module, name, self._timed("optimizer"))
        optimizer = torch.optim.Optimizer
        replace(optimizer, "zero_grad", self._timed("optimizer"))
        replace(optimizer, "__init__", self._steps)
        modes = torch.autograd.grad_mode
        for name in filter(lambda name: hasattr(modes, name), _MODES):
            mode = getattr(modes, name)
            for method in ("__enter__", "__exit__", *(["__init__"] * (name == _MODES[-1]))):
                replace(mode, method, self._switches)

    def _timed(self, part: str) -> Callable[[Any], Callable[..., Any]]:
        """A replacement for a function whose whole time belongs to the part."""
        index = self.source.index(part, "part")

        def make(original: Any) -> Callable[..., Any]:
            def timed(*args: Any, **kwargs: Any) -> Any:
                if self.compiling():  # a compiled graph must not contain the clock
                    return original(*args, **kwargs)
                begin = monotonic_ns()
                try:
                    return original(*args, **kwargs)
                finally:
                    self.source.here().extend((index, begin, monotonic_ns()))

            return timed

        return make

    def _steps(self, original: Any) -> Callable[..., Any]:
        """Replace `step` of an optimiser's class when the first optimiser of it is made."""
        make, done = self._timed("optimizer"), set()

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            of = type(optimizer)
            if of not in done:
                done.add(of)
                replace(of, "step", make)

        return init

    def _switches(self, original: Any) -> Callable[..., Any]:
        """A replacement for a function that may turn gradients on or off."""

        def switch(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self.compiling():
                self._switched(self.enabled())
            return result

        return switch

    def _switched(self, on: bool) -> None:
        own = self.here.__dict__.get("own")
        if own is None:
            own = self.here.own = Off(threading.current_thread(), self.source.here())
            self.off.append(own)
        begin = own.since
        if on and begin:
            own.since = 0
            own.data.extend((self.without, begin, monotonic_ns()))
        elif not on and not begin:
            own.since = monotonic_ns()

    def settle(self) -> list[Any]:
        """Record parts that have not ended, up to now, before the recorder takes the data. They are
        recorded once more when they end."""
        for own in list(self.off):
            if begin := own.since:
                own.data.extend((self.without, begin, monotonic_ns()))
            if not own.thread.is_alive():
                self.off.remove(own)
        return []


class Off:
    """Since when a thread records no gradients; 0 while it records them."""

    def __init__(self, thread: threading.Thread, data: list[int]) -> None:
        self.thread, self.data, self.since = thread, data, 0
