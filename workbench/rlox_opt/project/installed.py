"""What the measured package says of itself, asked only when it is wanted: importing it takes most
of a second, and a project need not have it in this environment."""

from __future__ import annotations

import contextlib
import importlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from rlox_opt.system.usage import UsageError


@dataclass(frozen=True)
class Installed:
    """`package` as this environment has it, with the extension `library`. All methods
    but `there`, `has_pairs` and `around` raise UsageError where it cannot be imported."""

    package: str
    library: str
    beside: tuple[str, ...]
    """Distributions that take part in what it does."""

    laboratory: str = ""
    """The extension that has the pairs of twins, where that is another."""

    def there(self) -> bool:
        """Whether this environment has it."""
        return find_spec(self.package) is not None

    def build_info(self) -> Mapping[str, Any]:
        """How it was built, as far as it says: `version commit profile features rustc`."""
        said: Mapping[str, Any] = getattr(_imported(self.package), "build_info", dict)()
        return said

    def pairs(self) -> list[tuple[str, str, list[dict[str, int]]]]:
        """The workloads whose twins it holds side by side: id, name and sizes of each."""
        catalogue: list[tuple[str, str, list[dict[str, int]]]] = self._twins().pairs.catalogue()
        return catalogue

    def has_pairs(self) -> bool:
        """Whether it is here with an extension that has them."""
        if not self.there():
            return False
        # First, since its own error tells more than that of a search beside it.
        _imported(f"{self.package}.{self.library}")
        return not self.laboratory or bool(find_spec(f"{self.package}.{self.laboratory}"))

    def paired(self) -> set[str]:
        """Ids of the optimisations whose twins it holds."""
        return {id_ for id_, _, _ in self.pairs()}

    def extension(self) -> Path:
        """The file of its extension."""
        return Path(_imported(f"{self.package}.{self.library}").__file__ or "")

    def extension_of_twins(self) -> tuple[Path, Mapping[str, Any]]:
        """The file of the extension that has the twins, and how that one was built."""
        extension = self._twins()
        return Path(extension.__file__ or ""), extension.build_info()

    def _twins(self) -> Any:
        return _imported(f"{self.package}.{self.laboratory or self.library}")

    def versions(self) -> dict[str, str | None]:
        """Versions of what takes part; None for what is not installed."""
        build = self.build_info()
        return {
            self.package: build.get("version") or version(self.package),
            "rustc": build.get("rustc", "").removeprefix("rustc ").split(" ")[0] or None,
            "build_profile": build.get("profile"),
        } | self.around()

    def around(self) -> dict[str, str | None]:
        """The same without the package itself, which need not be installed here."""
        names = ("perf", *self.beside, "py-spy", "scalene")
        return {"python": platform.python_version()} | {name: version(name) for name in names}


def _imported(module: str) -> ModuleType:
    import numpy  # noqa: F401  # first: an extension that imports it itself may not bear Ctrl-C

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{module}, which is measured, cannot be imported: {error}; `{sys.executable} -c "
            f"'import {module}'` shows where"
        ) from error


def version(distribution: str) -> str | None:
    """Of what is installed, or of the program perf; None where it is not there."""
    if distribution == "perf":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            asked = ("perf", "--version")
            done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True)
            return done.stdout.strip().removeprefix("perf version ") or None
        return None
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
