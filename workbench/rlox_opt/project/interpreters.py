"""The installed interpreters, and the choice of one for a side."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sysconfig import get_config_var

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from rlox_opt.system.commands import run
from rlox_opt.system.usage import UsageError
from rlox_opt.system.uv import environment, home, uv

_OLDEST = Version("3.8")  # which the programs that run inside a side support
_VERSION = re.compile(r"3(\.\d+){0,2}t?")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter: the path of its program, its version ("3.11.7"), and the ABI of its
    extensions ("cpython-3.11")."""

    path: Path
    version: str
    abi: str

    @property
    def title(self) -> str:
        """The interpreter for users, with what distinguishes two of the same version."""
        return f"{self.abi.partition('-')[0]} {self.version} ({self.path})"

    def fits(self, requires: str) -> bool:
        """Whether a package with this `requires-python` (">=3.10") runs with it."""
        with contextlib.suppress(InvalidSpecifier):
            return SpecifierSet(requires).contains(self.version, prereleases=True)
        return True  # an unreadable requirement forbids nothing


@functools.cache
def installed() -> tuple[Interpreter, ...]:
    """The interpreters that uv, PATH or pyenv know: the running one first, then the newest."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or home() / ".pyenv")
    search = [os.environ.get("PATH", os.defpath), *map(str, pyenv.glob("versions/*/bin"))]
    # pyenv's shims look like interpreters, but work only in its own shell.
    path = os.pathsep.join(of for part in search for of in part.split(os.pathsep)
                           if Path(of) != pyenv / "shims")  # fmt: skip
    listed = ("python", "list", "--only-installed", "--output-format", "json")
    done = uv(*listed, cwd=Path("/"), env={"PATH": path})
    # Among warnings, which quote what broken interpreters say.
    listing = re.search(r"^\[\{.*\}\]", done.output, re.MULTILINE | re.DOTALL)
    found = {running().path: running()}
    for row in json.loads(listing[0]) if listing else ():
        of = Path(row["path"]).resolve()
        kind = f"{row['implementation']}-" + ".".join(row["version"].split(".")[:2])
        kind += "" if row.get("variant", "default") == "default" else f"-{row['variant']}"
        found.setdefault(of, Interpreter(of, row["version"], kind))
    first, *others = (of for of in found.values() if Version(of.version) >= _OLDEST)
    return (first, *sorted(others, key=lambda of: Version(of.version), reverse=True))


def _in_order() -> Iterator[Interpreter]:
    """Those of `installed`, the running one first. uv, which takes a second, is asked only where
    that one does not do."""
    yield running()
    yield from installed()


@functools.cache
def running() -> Interpreter:
    """The interpreter that runs this process, without its virtual environment."""
    path = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    version = platform.python_version()
    return Interpreter(path, version, _abi(version, bool(get_config_var("Py_GIL_DISABLED"))))


def _abi(version: str, free: bool) -> str:
    """That of this implementation; `free` of the lock."""
    short = ".".join(version.split(".")[:2])
    return f"{sys.implementation.name}-{short}" + ("-freethreaded" if free else "")


def named(text: str) -> Interpreter:
    """The interpreter of a version ("3.11", "3.13t") or of a path. Raises UsageError, which names
    the installed ones, if there is no such interpreter."""
    if not _VERSION.fullmatch(text):
        return _at(text)
    wanted = text.removesuffix("t")
    free = wanted != text
    for of in _in_order():
        if f"{of.version}.".startswith(f"{wanted}.") and of.abi == _abi(of.version, free):
            return of
    there = ", ".join(dict.fromkeys(of.version for of in installed()))
    raise UsageError(
        f"Python {text} is not installed (no interpreter is downloaded); there are {there}: name "
        f"one of them, a path, or install it"
    )


@functools.cache
def _at(text: str) -> Interpreter:
    path = Path(text).expanduser()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UsageError(
            f"{text!r} is no Python: write a version such as 3.11, or the path of an interpreter"
        )
    asks = "import platform as p, sys; print(sys.implementation.name, p.python_version(), "
    asks += "getattr(sys, '_base_executable', None) or sys.executable)"
    done = run([path, "-I", "-c", asks], Path("/"), environment(), limit_s=60.0)
    kind, _, rest = done.output.strip().partition(" ")
    version, _, base = rest.partition(" ")
    if done.status or not re.match(r"\d+\.\d+", version):
        raise UsageError(f"{text!r} is no Python that runs: {done.tail.splitlines()[-1:]}")
    if Version(version) < _OLDEST:
        raise UsageError(f"{text!r} is Python {version}: it takes {_OLDEST} or later")
    return Interpreter(Path(base).resolve(), version, f"{kind}-" + version.rpartition(".")[0])


def chosen(
    asked: str, pythons: Sequence[str], requires: str, like: str = ""
) -> tuple[Interpreter, str]:
    """The interpreter of a side, and a note if it is not the first choice.

    An interpreter that is `asked` for decides. The next choices are the other side's (its path is
    `like`) if the package `requires` such a version; the first installed one of the suite's
    `pythons` that fits; the running one; and the newest installed one.

    Raises:
        UsageError: the one asked for is not installed, or none that is installed fits.
    """
    if asked:
        return named(asked), ""
    if like and (theirs := _at(like)).fits(requires):
        return theirs, ""
    for of in pythons:
        with contextlib.suppress(UsageError):
            if (found := named(of)).fits(requires):
                wanted = f"Python {pythons[0]}"
                return found, "" if of == pythons[0] else _instead(found, wanted, requires)
    wanted = f"Python {' or '.join(pythons)}" if pythons else f"Python {running().version}"
    for found in _in_order():
        if Version(found.version) >= _OLDEST and found.fits(requires):
            first = found == running() and not pythons
            return found, "" if first else _instead(found, wanted, requires)
    there = ", ".join(dict.fromkeys(of.version for of in installed()))
    raise UsageError(
        f"the package asks for Python {requires}, and there are {there}: install one that fits"
    )


def _instead(found: Interpreter, wanted: str, requires: str) -> str:
    what = f"Python {found.version} runs it"
    if requires and not running().fits(requires) and wanted == f"Python {running().version}":
        return f"{what}: the package asks for {requires}, which {wanted} is not"
    why = f", or not what the package asks for ({requires})" if requires else ""
    return f"{what}: {wanted} is not installed{why}"
