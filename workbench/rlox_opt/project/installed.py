"""What the measured package says of itself. It is imported only when that is needed: importing
takes most of a second, and this environment may not have the package."""

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
    """`package` as this environment has it, with the extension `library`. All methods but `there`,
    `has_pairs` and `around` raise UsageError if it cannot be imported."""

    package: str
    library: str
    beside: tuple[str, ...]
    """Distributions whose versions matter for the measurements."""

    laboratory: str = ""
    """The extension with the pairs of twins, if that is another one."""

    def there(self) -> bool:
        """Whether this environment has the package."""
        return find_spec(self.package) is not None

    def build_info(self) -> Mapping[str, Any]:
        """How it was built, as far as it says: `version commit profile features rustc`, and the
        `instructions` that it uses here."""
        said: Mapping[str, Any] = getattr(_imported(self.package), "build_info", dict)()
        return said

    def pairs(self) -> list[tuple[str, str, list[dict[str, int]]]]:
        """The workloads of which it contains both twins: id, name and sizes of each; none without
        pairs."""
        if not self.has_pairs():
            return []
        catalogue: list[tuple[str, str, list[dict[str, int]]]] = self._twins().pairs.catalogue()
        return catalogue

    def has_pairs(self) -> bool:
        """Whether this environment has an extension with the pairs."""
        if not self.library or not self.there():
            return False
        # Imported first, since an error of the extension itself is clearer.
        extension = _imported(f"{self.package}.{self.library}")
        if self.laboratory:
            return bool(find_spec(f"{self.package}.{self.laboratory}"))
        return hasattr(extension, "pairs")

    def paired(self) -> set[str]:
        """Ids of the optimisations of which it contains both twins."""
        return {id_ for id_, _, _ in self.pairs()}

    def extension(self) -> Path:
        """The file of its extension; of the package itself where cargo builds none."""
        name = f"{self.package}.{self.library}" if self.library else self.package
        return Path(_imported(name).__file__ or "")

    def extension_of_twins(self) -> tuple[Path, Mapping[str, Any]]:
        """The file of the extension with the twins, and how it was built."""
        extension = self._twins()
        return Path(extension.__file__ or ""), extension.build_info()

    def _twins(self) -> Any:
        return _imported(f"{self.package}.{self.laboratory or self.library}")

    def versions(self) -> dict[str, str | None]:
        """Versions of the package and of those beside it; None for what is not installed."""
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
    import numpy  # noqa: F401  # before an extension that imports NumPy and may not survive Ctrl-C

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{module}, which is measured, cannot be imported: {error}; `{sys.executable} -c "
            f"'import {module}'` shows where"
        ) from error


def version(distribution: str) -> str | None:
    """The version of an installed distribution, or of the program perf; None without it."""
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
