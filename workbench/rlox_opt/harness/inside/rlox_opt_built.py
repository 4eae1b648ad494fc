"""How a process of a pytest suite, and each Python that a test starts, finds the built packages: in
the build's folder, and never beside the tests.

It needs the standard library alone, and Python 3.8 or later.
"""
# ruff: noqa: PTH118, PTH120 - pathlib is slow to import, and a benchmark may be the start of a Python

from __future__ import annotations

import importlib.machinery
import os
import sys

VARIABLE = "RLOX_OPT_BUILT"
_CHILDREN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "children")


class Built:
    """A finder of the `packages` in `folder`. `lent` are the suite's modules that lie within such a
    package, each with the folder of the suite's own copy of the package; the built package finds
    them there."""

    def __init__(self, folder: str, packages: list[str], lent: dict[str, str]) -> None:
        self.folder, self.packages, self.lent = os.path.realpath(folder), packages, lent

    def first(self) -> None:
        """Let this process, and each Python that it starts, ask this finder first."""
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]
        sys.path.insert(0, self.folder)
        path = _CHILDREN, self.folder, os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        lent = (f"{module}\t{home}" for module, home in self.lent.items())
        os.environ[VARIABLE] = "\n".join((self.folder, "\t".join(self.packages), *lent))

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Called by the import system."""
        if name.partition(".")[0] not in self.packages or self._is_lent(name):
            return None
        homes = {home for of, home in self.lent.items() if of.startswith(f"{name}.")}
        built = [of for of in path or () if not self._is_beside(of)]  # type: ignore[attr-defined]
        if "." not in name:
            built = [self.folder]
        spec = importlib.machinery.PathFinder.find_spec(name, built, target)  # type: ignore[arg-type]
        if spec and spec.submodule_search_locations is not None:
            beside = [os.path.join(home, *name.split(".")) for home in homes]
            spec.submodule_search_locations = [*beside, *spec.submodule_search_locations]
        return spec

    def _is_lent(self, name: str) -> bool:
        return any(name == of or name.startswith(f"{of}.") for of in self.lent)

    def _is_beside(self, folder: str) -> bool:
        return any(folder.startswith(home + os.sep) for home in self.lent.values())


def of_parent() -> Built:
    """The finder of the process that started this one."""
    folder, packages, *rows = os.environ[VARIABLE].split("\n")
    lent = {module: home for module, _, home in (row.partition("\t") for row in rows)}
    return Built(folder, packages.split("\t"), lent)
