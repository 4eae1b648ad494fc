"""What the measured package says of itself, asked only when it is wanted: importing it takes most
of a second, and a project need not have it in this environment."""

from __future__ import annotations

import importlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from rlox_opt.system.usage import UsageError

PACKAGES = ("torch", "numpy", "gymnasium", "py-spy", "scalene")
_BUILD_INFO = "rlox", "build_info"
_PAIRS = "rlox._core", "pairs"


def build_info() -> Mapping[str, Any]:
    """How the installed build was made: `version commit profile features rustc`. Raises
    UsageError."""
    said: Mapping[str, Any] = _of(_BUILD_INFO)()
    return said


def pairs() -> list[tuple[str, str, list[dict[str, int]]]]:
    """The workloads whose twins the installed build holds side by side: id, name and sizes of each.
    Raises UsageError."""
    catalogue: list[tuple[str, str, list[dict[str, int]]]] = _of(_PAIRS).catalogue()
    return catalogue


def extension() -> Path:
    """The installed extension. Raises UsageError."""
    return Path(_imported(_PAIRS[0]).__file__ or "")


def _of(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(_imported(module), name)


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{module}, which is measured, cannot be imported: {error}; `{sys.executable} -c "
            f"'import {module}'` shows where"
        ) from error


def versions() -> dict[str, str | None]:
    """Versions of what takes part; None for what is not installed."""
    build = build_info()
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "rlox": build["version"],
        "rustc": build["rustc"].removeprefix("rustc ").split(" ")[0],
        "build_profile": build["profile"],
        "perf": _perf_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def _perf_version() -> str | None:
    text = _output("perf", "--version") if shutil.which("perf") else None
    return text.removeprefix("perf version ") if text else None


def _output(*command: str) -> str | None:
    """What a command printed, stripped; None when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
