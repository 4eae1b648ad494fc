"""Whose code a sampled stack was in, of any program: a layer that is known everywhere, or else the
program's own Python or native code, a library by its name, the interpreter, the kernel, the GIL.

A part is named "layer" or "layer:whose"; the layer is what `Classifier` says. Where that is only
"python", which is all that nobody owns, the innermost frame with an owner tells whose it is. What
no frame tells is unknown, and not given to anybody.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.project.layers import Layers
from rlox_opt.sampling.layers import TITLES, Classifier, is_python
from rlox_opt.sampling.samples import Frame

OWN, NATIVE, SUITE = "own", "own native", "suite"
STANDARD, INTERPRETER, UNKNOWN, GIL = "standard library", "interpreter", "unknown", "GIL"
_TITLES = {
    OWN: "own Python",
    NATIVE: "own native code",
    SUITE: "the benchmark itself",
    STANDARD: "Python's standard library",
    INTERPRETER: "Python",
    UNKNOWN: "unknown",
    GIL: "waiting for the GIL",
}
_SITE = re.compile(r"/(?:site|dist)-packages/([^/]+)")
_STANDARD = re.compile(r"/lib/python3\.\d+/|^<frozen |/lib-dynload/")
_INTERPRETER = re.compile(r"(^|/)(lib)?python3?[\d.t]*(\.so[\d.]*)?$")
_MADE_AT_RUN_TIME = re.compile(r"^\[(unknown|heap|stack|anon|JIT)|^//anon|(^|/)perf-\d+\.map$")
_SYSTEM = re.compile(r"(^|/)(lib[\w+-]+?)(?:-[0-9a-f]{8})?[.-][^/]*$")


def title(part: str) -> str:
    """What a part is called: "NumPy", "own Python", "networkx"."""
    layer, _, whose = part.partition(":")
    return _TITLES.get(whose, whose) if whose else TITLES.get(layer, layer)


class Whose(Classifier):
    """A `Classifier` that tells parts instead of layers, of a program whose `own` code lies in
    these folders, called by what lies in `suites`."""

    def __init__(self, layers: Layers, own: Iterable[Path], suites: Iterable[Path] = ()) -> None:
        super().__init__(layers)
        self._own = _beginnings(own)
        self._suites = _beginnings(suites)

    def classify(self, frames: Sequence[Frame], phase: str, see_kernel: bool = True) -> str:
        layer = super().classify(frames, phase, see_kernel)
        if layer == "idle":
            return _waits(frames)
        return f"python:{self._whose(frames)}" if layer == "python" else layer

    def wait_layer(self, frames: Sequence[Frame], phase: str) -> str | None:
        layer = super().wait_layer(frames, phase)
        return _waits(frames) if layer == "idle" else layer

    def shown(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """As they are: `inner` and `owner` need their whole paths."""
        return tuple(frames)

    def inner(self, module: str) -> str | None:
        """A file of the program's own, from its package on; None of others."""
        for folder in self._own:
            if module.startswith(folder):
                return module[len(folder) :]
        return None

    def owner(self, module: str) -> str | None:
        """Whose a file or library is; None of one that works for its caller, and of none."""
        if _INTERPRETER.search(module):
            return None
        native = not module.endswith((".py", ".pyx"))
        if self.inner(module) is not None:
            return NATIVE if native else OWN
        if module.startswith(self._suites):
            return SUITE
        if found := _SITE.search(module):
            return found[1].removesuffix(".libs").partition(".")[0]
        if _STANDARD.search(module):
            return STANDARD
        if native and (system := _SYSTEM.search(module)) and module.startswith("/"):
            return system[2]
        return None

    def place(self, module: str) -> str:
        """A path as it may be told: without this machine's part."""
        return self.inner(module) or self.short_module(module)

    def _whose(self, frames: Sequence[Frame]) -> str:
        if frames and _MADE_AT_RUN_TIME.search(frames[-1].module):
            return UNKNOWN
        interpreted = False
        for frame in reversed(frames):
            if is_python(frame):
                return self.owner(frame.module) or PurePosixPath(frame.module).stem
            if _INTERPRETER.search(frame.module):
                interpreted = True
            elif self._owner(frame) is not None and (whose := self.owner(frame.module)):
                # A part of the interpreter that is a library of its own works as it does.
                if whose != STANDARD:
                    return whose
                interpreted = True
        return INTERPRETER if interpreted else UNKNOWN


def _waits(frames: Sequence[Frame]) -> str:
    return f"idle:{GIL}" if any("take_gil" in frame.name for frame in frames) else "idle"


def _beginnings(folders: Iterable[Path]) -> tuple[str, ...]:
    """How paths in these folders begin, by any name of them."""
    names = (name for of in folders for name in (str(of), os.path.realpath(of)))
    return tuple(dict.fromkeys(f"{name}/" for name in names))
