"""The owner of a sampled stack of any program: the program's own Python or native code, a library
by its name, or the interpreter.

A part of a program is named "layer" or "layer:owner". The layer is what `Classifier` says. If the
layer is just Python or other native code, the innermost such frame shows the owner.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.project.layers import Layers
from rlox_opt.sampling.layers import TITLES, Classifier
from rlox_opt.sampling.samples import Frame

OWN, NATIVE, SUITE = "own", "own native", "suite"
STANDARD, INTERPRETER = "standard library", "interpreter"
_TITLES = {
    OWN: "own Python",
    NATIVE: "own native code",
    SUITE: "the benchmark itself",
    STANDARD: "Python's standard library",
    INTERPRETER: "Python",
}
_SITE = re.compile(r"/(?:site|dist)-packages/([^/]+)")
_STANDARD = re.compile(r"/lib/python3\.\d+t?/|^<frozen |/lib-dynload/")
_INTERPRETER = re.compile(r"(^|/)(lib)?python3?[\d.t]*(\.so[\d.]*)?$")
_SYSTEM = re.compile(r"(^|/)(lib[\w+-]+?)(?:-[0-9a-f]{8})?[.-][^/]*$")
_OTHERS = ("python", "native")  # layers with more than one owner


def title(part: str) -> str:
    """The name to show for a part: "NumPy", "own Python", "networkx"."""
    layer, _, whose = part.partition(":")
    return _TITLES.get(whose, whose) if whose else TITLES.get(layer, layer)


class Whose(Classifier):
    """A `Classifier` that also names parts. The program's `own` code lies in these folders, and
    code in `suites` calls it. For the libraries in `programs`, line tables are read: they name the
    functions inlined at an address, and their sources, which symbols do not."""

    def __init__(
        self,
        layers: Layers,
        own: Iterable[Path],
        suites: Iterable[Path] = (),
        programs: Iterable[Path] = (),
        scripts: Iterable[str] = (),
    ) -> None:
        super().__init__(layers, scripts)
        self._own = _beginnings(own)
        self._suites = _beginnings(suites)
        self._programs = _beginnings(programs)

    def shown(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """The frames unchanged: `inner`, `owner` and `part` need whole paths."""
        return tuple(frames)

    def part(self, layer: str, frames: Sequence[Frame]) -> str:
        """The part that a stack of this layer belongs to."""
        if layer not in _OTHERS:
            return layer
        for frame in reversed(frames):
            if self.is_python(frame):
                if layer == "native":
                    break
                whose = self.owner(frame.module) or PurePosixPath(frame.module).stem
                return f"{layer}:{whose}"
            if layer == "native" and self.native(frame) == layer:
                return f"{layer}:{self.owner(frame.module) or self.place(frame.module)}"
        return f"{layer}:{INTERPRETER}" if layer == "python" else layer

    def native(self, frame: Frame) -> str | None:
        """The owner of a native function that works for itself; None for functions that work for
        their caller, and for those of the interpreter and the kernel."""
        owner = self._owner(frame)
        return None if owner in (None, "eval", "kernel", "python", "unknown") else owner

    def inner(self, module: str) -> str | None:
        """The path of one of the program's own files, from its package on; None for other files."""
        for folder in self._own:
            # An environment may lie in the program's folder.
            if module.startswith(folder) and not _SITE.search(module, len(folder) - 1):
                return module[len(folder) :]
        return None

    def owner(self, module: str) -> str | None:
        """The owner of a file or library; None if it works for its caller or has no owner."""
        if _INTERPRETER.search(module):
            return None
        native = not module.endswith((".py", ".pyx")) and module not in self._scripts
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

    def _is_extension(self, module: str) -> bool:
        return super()._is_extension(module) or module.startswith(self._programs)

    def place(self, module: str) -> str:
        """A path for showing: without the machine's own part."""
        return self.inner(module) or self.short_module(module)


def _beginnings(folders: Iterable[Path]) -> tuple[str, ...]:
    """The beginnings of paths in these folders, by every name of the folders."""
    names = (name for of in folders for name in (str(of), os.path.realpath(of)))
    return tuple(dict.fromkeys(f"{name}/" for name in names))
