"""Environments: an interpreter with requirements, without the measured package.

Requirements are resolved once to exact versions, which are kept, so that a side is measured
tomorrow with the packages of today. An environment is made next to its place, and moved there when
it is complete.
Sides with the same requirements share it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from rlox_opt.project import checkouts, interpreters
from rlox_opt.project.artefacts import forget_oldest
from rlox_opt.project.interpreters import Interpreter
from rlox_opt.system import files, schema
from rlox_opt.system.files import NotReadError, readable_text
from rlox_opt.system.scratch import scratch
from rlox_opt.system.uv import reason, uv

_KEPT = 32  # environments
_DIGITS = 16  # of a folder's name
_RUNNER = re.compile(r"^\s*(?:from|import)\s+asv_runner\b", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_OBJECTS = re.compile(r"^\s*(?:def\s+mem_|class\s+Mem[A-Z_])", re.MULTILINE)  # asv's own pattern
_WORD = re.compile(r"\w[\w.-]*")
_T = TypeVar("_T")
# The name that uv gives as the cause: of what is not there, and of what has no wheel, for which its
# words are different.
_ABSENT = re.compile(r"(?:Because|because|and) (?P<name>[\w.-]+) was not found in the ")
_WITHOUT_WHEEL = (
    re.compile(r"(?:Because|because|and) (?P<name>[\w.-]+)\S* has no usable wheels"),
    re.compile(r"no wheels? (?:are|is) (?:available|usable) for (?P<name>[\w.-]+)"),
    re.compile(r"(?:all|only) versions? of (?P<name>[\w.-]+) (?:have|has) no (?:usable )?wheels?"),
    re.compile(r"Failed to (?:build|download and build) `(?P<name>[\w.-]+)=="),
)


class NotResolvedError(RuntimeError):
    """Requirements that cannot be installed together. The message is one line with uv's reason."""


class Locked(msgspec.Struct, frozen=True):
    """Resolved requirements: `pins` ("numpy==2.3.1"), sorted, and `notes` on those left out."""

    pins: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """An interpreter with requirements. `python` is the virtual environment's, `locked` are the
    packages installed in it, and `notes` name requirements that are not."""

    python: Path
    locked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the virtual environment."""
        return self.python.parents[1]


@dataclass(frozen=True)
class Environments:
    """The environments that are kept in `folder`."""

    folder: Path

    def of(
        self,
        python: str | Interpreter,
        requirements: Sequence[str],
        like: Environment | None = None,
        droppable: Collection[str] = (),
        without: str = "",
        needed: Collection[str] = (),
    ) -> Environment:
        """The environment of an interpreter (a version, or a path) with these requirements. It is
        made if there is none.

        The versions of `like`, the other side's environment, are kept unless these requirements
        forbid them. Requirements whose names are in `droppable` are left out with a note if there
        is no such package, or if they ask for no version and none has a wheel; those that are
        `needed` never are. The distribution `without`, the measured one, is not installed.

        Raises:
            NotResolvedError: the requirements cannot be installed together, or not at all.
            UsageError: the interpreter is not installed, or there is no uv.
        """
        of = interpreters.named(python) if isinstance(python, str) else python
        pins = like.locked if like else ()
        return self.having(of, self.locked(of, requirements, pins, droppable, without, needed))

    def having(self, python: Interpreter, locked: Locked) -> Environment:
        """The environment with exactly these versions. It is made if there is none. Raises
        NotResolvedError."""
        folder = self.folder / _digest(python.title, *locked.pins, *_local(locked.pins))
        if not (folder / "bin" / "python").exists():
            self._make(folder, python, locked)
        os.utime(folder)  # used last
        return Environment(folder / "bin" / "python", locked.pins, locked.notes)

    def locked(
        self,
        python: Interpreter,
        requirements: Sequence[str],
        like: Sequence[str] = (),
        droppable: Collection[str] = (),
        without: str = "",
        needed: Collection[str] = (),
    ) -> Locked:
        """The requirements resolved to exact versions, with those of the pins `like` where they
        allow it, and without what `of` leaves out. They are resolved once and kept. Raises
        NotResolvedError."""
        asked, names = (
            sorted(dict.fromkeys(requirements)),
            {canonicalize_name(n) for n in droppable},
        )
        if not asked:
            return Locked(())
        drop = (*sorted(names), "needed", *sorted(needed)) if names else ()
        key = _digest(python.title, *asked, *_local(asked), "like", *sorted(like), "drop",
            *drop, without)  # fmt: skip
        kept = self.folder / "locks" / f"{key}.json"
        try:
            return schema.read(kept, Locked)
        except NotReadError:
            locked = self._resolve(python, asked, like, names, without, needed)
            files.write(kept, json.dumps(msgspec.to_builtins(locked), indent=1))
            return locked

    def _resolve(
        self,
        python: Interpreter,
        asked: Sequence[str],
        like: Sequence[str],
        droppable: Collection[str],
        without: str,
        needed: Collection[str],
    ) -> Locked:
        notes: list[str] = []
        own = {*map(name_of, needed)}
        fixed = {name_of(of) for of in asked if of not in needed and any_version(of) != of}
        wheels = sorted({*droppable} - (own - fixed))
        checkouts.ignored(self.folder)
        with scratch(self.folder) as folder:
            while True:
                (folder / "asked.txt").write_text("".join(f"{of}\n" for of in asked))
                (folder / "locked.txt").write_text("".join(f"{of}\n" for of in like))
                # A package of conda's may have another project's name on PyPI, and building that
                # from source would run unknown code. What is needed is known, but the version that
                # conda has of it may be too old to be built.
                words = ["pip", "compile", "asked.txt", "--output-file", "locked.txt", "--quiet"]
                words += ["--no-header", "--no-annotate", "--python", str(python.path)]
                words += [word for of in wheels for word in ("--only-binary", of)]
                words += ["--no-emit-package", without] if without else []
                done = uv(*words, cwd=folder)
                if not done.status:
                    break
                lacking = _lacking(done.output, asked, {*droppable} - own)
                if not lacking:
                    what = ", ".join(asked)
                    raise NotResolvedError(f"{what} for Python {python.version}: {reason(done)}")
                asked = [of for of in asked if name_of(of) != lacking]
                notes.append(f"{lacking} is left out: PyPI has no wheel of it; what it brings must "
                    f"be installed in the system")  # fmt: skip
            pins = (folder / "locked.txt").read_text().splitlines()
        found = sorted(pin.strip() for pin in pins if pin.strip() and pin.lstrip()[0] not in "#-")
        return Locked(tuple(found), tuple(notes))

    def _make(self, folder: Path, python: Interpreter, locked: Locked) -> None:
        """Make the environment in `folder`: completely or not at all, even if another process makes
        it meanwhile."""
        checkouts.ignored(self.folder)
        with scratch(self.folder) as making:
            new = making / "new"
            self.fresh(new, python, locked)
            forget_oldest(self.folder, ["?" * _DIGITS], _KEPT - 1)
            try:
                new.rename(folder)
            except OSError:
                if not (folder / "bin" / "python").exists():  # another process was not faster
                    raise

    def fresh(self, new: Path, python: Interpreter, locked: Locked) -> None:
        """Make an environment in the folder `new`, whose parent is a scratch folder. Raises
        NotResolvedError."""
        making = new.parent
        # Scripts of a relocatable environment find their interpreter after it is moved.
        made = (
            "venv",
            "--quiet",
            "--relocatable",
            "--no-project",
            "--python",
            python.path,
            new,
        )
        done = uv(*made, cwd=making)
        if not done.status and locked.pins:
            (making / "lock.txt").write_text("".join(f"{pin}\n" for pin in locked.pins))
            synced: list[str | Path] = [
                "pip",
                "sync",
                "--quiet",
                "--compile-bytecode",  # benchmarks' processes write none
                "--python",
                new / "bin" / "python",
                "lock.txt",
            ]
            for pin in locked.pins:
                if _path_of(pin):  # of a folder uv looks at a few files alone
                    synced += ["--refresh-package", name_of(pin)]
            done = uv(*synced, cwd=making)
        if done.status:
            raise NotResolvedError(
                f"no environment of Python {python.version} with {', '.join(locked.pins)}: "
                f"{reason(done)}"
            )


def _path_of(requirement: str) -> Path | None:
    """The file or folder that a requirement names, with or without a URL; None if it names none."""
    _, _, where = requirement.rpartition("@")
    path = Path(unquote(urlsplit(where.strip()).path if "file:" in where else where.strip()))
    return path if os.sep in str(path) and path.exists() else None


def _local(requirements: Sequence[str]) -> list[str]:
    """What stands in the files that requirements name by their path, by sizes and times."""
    found = []
    for path in filter(None, map(_path_of, requirements)):
        for at in sorted([path, *path.rglob("*")]):
            if at.is_file() and not any(of[0] == "." for of in at.relative_to(path).parts):
                state = at.stat()
                found.append(f"{at} {state.st_size} {state.st_mtime_ns}")
    return found


def needed_by(suite: Path) -> tuple[str, ...]:
    """What a folder of benchmarks itself needs: asv_runner if it imports that, and pympler, which
    measures the objects of `mem_` benchmarks."""
    texts = _texts(suite)
    found = {"asv-runner": _RUNNER, "pympler": _OBJECTS}
    return tuple(name for name, of in found.items() if any(of.search(text) for text in texts))


def imported_by(suite: Path) -> set[str]:
    """What a folder of benchmarks imports, on the assumption that distributions are named as their
    modules are."""
    return {canonicalize_name(of) for text in _texts(suite) for of in _IMPORTED.findall(text)}


def _texts(suite: Path) -> list[str]:
    return [readable_text(path) for path in sorted(suite.rglob("*.py")) if path.is_file()]


def known(
    requirements: Sequence[str], of_conda: Collection[str], named: Collection[str], suite: Path
) -> tuple[tuple[str, ...], list[str]]:
    """Requirements without those that only conda names, with a note on what is left out: the same
    name on PyPI may be another project's. A name is kept if the package's own metadata has it (in
    `named`) or if the suite imports it."""
    doubtful = {canonicalize_name(of) for of in of_conda} - {*named} - imported_by(suite)
    out = [of for of in requirements if name_of(of) in doubtful]
    kept = tuple(of for of in requirements if of not in out)
    are, them = ("is", "it") if len(out) == 1 else ("are", "them")
    if not out:
        return kept, []
    notes = [
        f"{', '.join(out)} {are} left out: neither the package's metadata nor an import of the "
        f"suite names {them}, and on PyPI a name may be another's; --with {out[0]} takes what is "
        f"there"
    ]
    return kept, notes


def named_in(*texts: str) -> set[str]:
    """All words of some texts, as distributions are named."""
    return {canonicalize_name(word) for text in texts for word in _WORD.findall(text)}


def joined(requirements: Sequence[str], instead: Sequence[str]) -> tuple[str, ...]:
    """Requirements, in which those in `instead` replace others of the same name."""
    names = {name_of(of) for of in instead}
    return (*(of for of in requirements if name_of(of) not in names), *instead)


def any_version(requirement: str) -> str:
    """A requirement without its version."""
    try:
        asked = Requirement(requirement)
    except InvalidRequirement:  # a path or a URL, which uv understands
        return requirement
    asked.specifier = SpecifierSet()
    return str(asked)


def giving_way(
    wanted: Sequence[str],
    having: Callable[[Sequence[str]], _T],
    path: PurePosixPath,
    python: Interpreter,
) -> tuple[_T, list[str]]:
    """What `having` makes of what the file at `path` has `wanted`. A version that cannot be had, as
    an outdated one may not, is given up with a note: one alone if that will do, otherwise all.
    Raises NotResolvedError."""
    fixed = [of for of in wanted if any_version(of) != of]
    tried: list[list[str]] = [[], *([of] for of in fixed)]

    def without(given_up: Sequence[str]) -> tuple[_T, list[str]]:
        made = having([any_version(of) if of in given_up else of for of in wanted])
        several = len(given_up) > 1
        note = (
            f"{path}: {', '.join(given_up)} cannot {'all ' if several else ''}be had with Python "
            f"{python.version} and what the package requires, and "
            f"{'are' if several else 'is'} asked for without a version; "
            "--with NAME==VERSION takes another"
        )
        return made, [note] if given_up else []

    for given_up in tried:
        with contextlib.suppress(NotResolvedError):
            return without(given_up)
    return without(fixed)


@functools.cache
def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    try:
        return str(canonicalize_name(Requirement(requirement).name))
    except InvalidRequirement:  # a path or a URL, which uv understands
        return requirement


def _lacking(said: str, asked: Sequence[str], droppable: Collection[str]) -> str:
    """The requirement that uv names as missing, if it may be left out; otherwise "". If only the
    version that it asks for has no wheel, another one may have."""
    said = " ".join(re.sub(r"^[\s×╰─▶├│]+", "", line) for line in said.splitlines())

    def named(*causes: re.Pattern[str]) -> set[str]:
        return {canonicalize_name(of["name"]) for cause in causes for of in cause.finditer(said)}

    fixed = {name_of(of) for of in asked if any_version(of) != of}
    found = named(_ABSENT) | (named(*_WITHOUT_WHEEL) - fixed)
    return next(iter(sorted(found & {*map(name_of, asked)} & {*droppable})), "")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
