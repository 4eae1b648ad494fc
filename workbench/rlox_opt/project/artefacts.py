"""A built package, and how two of them differ."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlox_opt.project.commits import Revision
from rlox_opt.system import elf
from rlox_opt.system.scratch import scratch

SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)
_KEPT = 48  # of 15 MB each
_BUILDS = (
    "extension-*.so", "????????????-*", "wheel-????????????????", "asks-*.json", "criterion-*",
)  # fmt: skip
_NO_PART = {"__pycache__"}
_HIDDEN = re.compile(r"\.[^.]")
# A line that assigns a literal to a name for a version or a commit, in the forms of setuptools_scm,
# versioneer and handwritten files. Any other line is code.
_TOLD = re.compile(
    r"""\s*(["']?\w*(version|commit|revision|date|dirty|describe)\w*["']?\s*"""
    r"""(:\s*[\w.| ]+)?[:=]\s*)+(["']|\(["'\d]|None\b|True\b|False\b|\d)""",
    re.IGNORECASE,
)
_LONGEST = 300  # characters of such a line
# Those of them that need not contain the text of the version.
_BESIDE = re.compile(r"""\s*(__version_tuple__|version_tuple|["'](date|dirty)["']\s*:)""")


class NotBuiltError(RuntimeError):
    """A revision that does not build, or whose build is not the one that was asked for."""


@dataclass(frozen=True)
class Artefact:
    """A built package. `folder` contains it, and comes first on the module path. `digests` are
    those of its parts, without the commit's name in them. `seconds` is the time that building took
    now."""

    revision: Revision
    folder: Path
    features: tuple[str, ...]
    digests: dict[str, str]
    seconds: float
    library: str = ""
    """The path of the extension, from `folder`."""

    packages: tuple[str, ...] = ()
    """The top-level modules in it."""

    python: Path = Path(sys.executable)
    """The interpreter to run it with: an environment's, or this one."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables to run it with, added to those of the environment."""

    made: Mapping[str, str] = field(default_factory=dict)
    """How it was made: the choices of this workbench, the machine and the commit's metadata (see
    `parity`)."""

    found: Mapping[str, str] = field(default_factory=dict)
    """What its binaries show of how they were made."""

    twins: str = ""
    """The path of the extension with the pairs of twins, from `folder`."""

    notes: tuple[str, ...] = ()
    """Notes for the user on its environment: what was left out, what was taken instead."""

    @property
    def extension(self) -> Path:
        """The extension's file."""
        return self.folder / self.library

    @property
    def laboratory(self) -> Path:
        """The file of the extension with the pairs of twins."""
        return self.folder / self.twins


def same_parts(one: Artefact, other: Artefact) -> list[str]:
    """Which parts of two packages are the same: "extension", "python", or the whole "package". The
    commit's name, which every extension contains, does not count."""
    return [part for part in one.digests if one.digests[part] == other.digests.get(part)]


def same_surroundings(one: Artefact, other: Artefact) -> bool:
    """Whether two packages run with the same interpreter in the same environment."""
    return all(one.made.get(of) == other.made.get(of) for of in ("interpreter", "environment"))


def forget_oldest(folder: Path, patterns: Sequence[str] = _BUILDS, kept: int = _KEPT) -> None:
    """Remove all builds in a folder, and their logs, but those of each pattern that were used last.
    What another process removes meanwhile is no error."""
    for pattern in patterns:
        found = sorted(folder.glob(pattern), key=_last_used)
        for path in found[:-kept]:
            # Moved first, so that what an interruption leaves is not taken for a build.
            with scratch(folder) as gone, contextlib.suppress(OSError):
                path.rename(gone / path.name)
            path.with_suffix(".log").unlink(missing_ok=True)


def _last_used(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


@contextlib.contextmanager
def told_of_lacking(lacking: Sequence[str]) -> Iterator[None]:
    """If a build in the block fails, add to its error what the checkout lacks, one sentence
    each."""
    try:
        yield
    except NotBuiltError as error:
        if not lacking:
            raise
        first, _, said = str(error).partition("\n")
        told = "\n".join((f"{first} Not checked out:", *lacking, said))
        raise NotBuiltError(told.rstrip()) from None


def keep(built: Path, path: Path) -> None:
    """Copy what was built, whole or not at all."""
    part = path.with_suffix(".part")
    shutil.copy2(built, part)
    part.rename(path)


def digest(content: bytes, without: str = "") -> str:
    """The digest of some bytes without one text."""
    return hashlib.sha256(
        content.replace(without.encode(), b"") if without else content
    ).hexdigest()


def digest_of(folder: Path, *patterns: str) -> str:
    """The digest of the files in a folder whose names match one of the patterns. Compiled Python is
    left out, since it contains the time of its source."""
    paths = sorted(path for of in patterns for path in folder.rglob(of))
    files = [path for path in paths if path.is_file() and not _NO_PART & {*path.parts}]
    return digest(b"".join(f"{p.relative_to(folder)}\0".encode() + p.read_bytes() for p in files))


def digest_of_files(paths: Iterable[Path], home: Path) -> str:
    """The digest of those paths that are files, and of where they lie from `home`, without compiled
    Python and what tools hide by a dot."""
    places = {Path(os.path.relpath(path, home)): path for path in paths if path.is_file()}
    rows = (
        f"{place} {digest(places[place].read_bytes())}"
        for place in sorted(places)
        if not any(of in _NO_PART or _HIDDEN.match(of) for of in place.parts)
    )
    return digest("\n".join(rows).encode(errors="surrogateescape"))


def digests_of_wheel(folder: Path, version: str, commit: str) -> dict[str, str]:
    """The digests of an installed wheel: one of its compiled files, one of all else, or one of the
    "package" if it has only one of the two. What names its version, its commit, or the place and
    time of the build does not count: metadata, lines with a version, debug information."""
    parts: dict[str, list[bytes]] = {"extension": [], "python": []}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not path.is_file() or _NO_PART & {*inner.parts}:
            continue
        if inner.parts[0].endswith((".dist-info", ".egg-info")):
            continue
        content, part = path.read_bytes(), "python"
        if elf.is_elf(content):
            content, part = elf.loaded(content), "extension"
        elif inner.parts[0] == "bin":
            content = _unversioned(_without_interpreter(content), version, commit)
        elif path.suffix in (".py", ".pyi"):
            content = _unversioned(content, version, commit)
        content = content.replace(commit.encode(), b"") if commit else content
        parts[part].append(str(inner).encode() + b"\0" + hashlib.sha256(content).digest())
    there = {part: digest(b"".join(of)) for part, of in parts.items() if of}
    return there if len(there) > 1 else {"package": "".join(there.values()) or digest(b"")}


def _without_interpreter(program: bytes) -> bytes:
    """A Python script without the lines by which an installer names the interpreter, whose path
    depends on where the script is installed. Any other program as it is."""
    lines = program.split(b"\n", 3)
    if lines[0] == b"#!/bin/sh" and len(lines) > 3 and lines[1].startswith(b"'''exec'"):
        return lines[3]
    if lines[0].startswith(b"#!") and b"python" in lines[0]:
        return program.partition(b"\n")[2]
    return program


def packages_in(folder: Path) -> tuple[str, ...]:
    """The top-level modules in a folder."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in (*_NO_PART, "bin", "share", "include", "etc") or path.suffix in (
            ".dist-info",
            ".egg-info",
        ):
            continue
        if path.is_dir() and path.name.isidentifier():
            found.append(path.name)
        elif path.is_file() and path.name.endswith((".py", *SUFFIXES)):
            found.append(path.name.partition(".")[0])
    return tuple(dict.fromkeys(found))


def _unversioned(content: bytes, version: str, commit: str) -> bytes:
    """Python source without the lines that contain its version or its commit."""
    text = content.decode("latin-1")  # accepts any bytes
    tells = [f"'{version}'", f'"{version}"', *([commit[:7]] if commit else [])]
    if not any(of in text for of in tells):
        return content
    kept = [
        line
        for line in text.splitlines(keepends=True)
        if not _TOLD.match(line) or not (_BESIDE.match(line) or any(of in line for of in tells))
    ]
    return "".join(kept).encode("latin-1")
