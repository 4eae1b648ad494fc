"""Whose code a sampled stack was in, of any program: the program's own Python or native code, that
of a library by its name, the interpreter's.

A part is named "layer" or "layer:whose"; the layer is what `Classifier` says. Where that is only
Python's, or other native code, the innermost such frame tells whose it is.
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
STANDARD, INTERPRETER = "standard library", "interpreter"
_TITLES = {
    OWN: "own Python",
    NATIVE: "own native code",
    SUITE: "the benchmark itself",
    STANDARD: "Python's standard library",
    INTERPRETER: "Python",
}
_SITE = re.compile(r"/(?:site|dist)-packages/([^/]+)")
_STANDARD = re.compile(r"/lib/python3\.\d+/|^<frozen |/lib-dynload/")
_INTERPRETER = re.compile(r"(^|/)(lib)?python3?[\d.t]*(\.so[\d.]*)?$")
_SYSTEM = re.compile(r"(^|/)(lib[\w+-]+?)(?:-[0-9a-f]{8})?[.-][^/]*$")
_OTHERS = ("python", "native")  # layers that are of more than one owner


def title(part: str) -> str:
    """What a part is called: "NumPy", "own Python", "networkx"."""
    layer, _, whose = part.partition(":")
    return _TITLES.get(whose, whose) if whose else TITLES.get(layer, layer)


class Whose(Classifier):
    """A `Classifier` that also tells parts, of a program whose `own` code lies in these folders,
    called by what lies in `suites`. The line tables of what lies in `programs` tell more of a
    native frame than its symbol: the functions that are inlined there, and their sources."""

    def __init__(
        self,
        layers: Layers,
        own: Iterable[Path],
        suites: Iterable[Path] = (),
        programs: Iterable[Path] = (),
    ) -> None:
        super().__init__(layers)
        self._own = _beginnings(own)
        self._suites = _beginnings(suites)
        self._programs = _beginnings(programs)

    def shown(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """As they are: `inner`, `owner` and `part` need their whole paths."""
        return tuple(frames)

    def part(self, layer: str, frames: Sequence[Frame]) -> str:
        """The part that a stack of this layer belongs to."""
        if layer not in _OTHERS:
            return layer
        for frame in reversed(frames):
            if is_python(frame):
                if layer == "native":
                    break
                whose = self.owner(frame.module) or PurePosixPath(frame.module).stem
                return f"{layer}:{whose}"
            if layer == "native" and self.native(frame) == layer:
                return f"{layer}:{self.owner(frame.module) or self.place(frame.module)}"
        return f"{layer}:{INTERPRETER}" if layer == "python" else layer

    def native(self, frame: Frame) -> str | None:
        """The owner of a native function that works for itself; None of one that does not, of the
        interpreter's and of the kernel's."""
        owner = self._owner(frame)
        return None if owner in (None, "eval", "kernel", "python", "unknown") else owner

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

    def _is_extension(self, module: str) -> bool:
        return super()._is_extension(module) or module.startswith(self._programs)

    def place(self, module: str) -> str:
        """A path as it may be told: without this machine's part."""
        return self.inner(module) or self.short_module(module)


def _beginnings(folders: Iterable[Path]) -> tuple[str, ...]:
    """How paths in these folders begin, by any name of them."""
    names = (name for of in folders for name in (str(of), os.path.realpath(of)))
    return tuple(dict.fromkeys(f"{name}/" for name in names))
