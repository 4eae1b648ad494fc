"""Planted bugs: would the property test of a pair notice if one of its twins were wrong?

A copy of the checkout gets one listed bug at a time, is compiled, and runs the test of the bug's
pair. A bug counts as caught only if that test says that the twins differ.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from msgspec import Struct

from rlox_opt.plan.features import cargo_of
from rlox_opt.plan.testing.agreement import pytest_outcomes
from rlox_opt.project.builders.cargo import Cargo, Laboratory
from rlox_opt.project.project import Project
from rlox_opt.system import git
from rlox_opt.system.commands import (
    CannotTell,
    CompileError,
    Done,
    Hear,
    cargo,
    compile_pairs,
    names_in,
    run,
    run_one,
)
from rlox_opt.system.files import write
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

STATUSES = CAUGHT, SURVIVED, NOT_COMPILED, BROKE = "caught", "survived", "did not compile", "broke"

_LIMIT_S = 300.0  # since a bug may make a loop endless
_DIFFERENCE = re.compile(r"the twins differ at character \d+")


class Bug(Struct, frozen=True, forbid_unknown_fields=True):
    """One bug: in `file`, the text `find`, which must stand there once, becomes `replace`.

    `story` says what goes wrong then. `survives` says why no property test can see it, if none can.
    """

    id: str
    twin: Literal["baseline", "optimized"]
    file: str
    story: str
    find: str
    replace: str
    survives: str = ""

    def __post_init__(self) -> None:
        if self.find == self.replace:
            raise ValueError("`replace` is `find`; write what is wrong")
        if "\0" in self.file:
            raise ValueError("`file` holds a NUL character, which no name can")


class _List(Struct, forbid_unknown_fields=True):
    bug: tuple[Bug, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of a bug: its `status`, the `seconds` it took, and the output."""

    bug: Bug
    status: str
    seconds: float
    output: str = ""

    @property
    def as_listed(self) -> bool:
        """Whether this is the status that the list expects."""
        return self.status == (SURVIVED if self.bug.survives else CAUGHT)


def load(path: Path) -> list[Bug]:
    """The bugs in the list. Raises NotReadError, which names the bug and its key."""
    return [*read(path, _List).bug]


def planted_in(text: str, bug: Bug) -> str:
    """The file's text with the bug in it. Raises UsageError unless `find` stands there once."""
    times = text.count(bug.find)
    if times != 1:
        raise UsageError(
            f"{bug.id}, {bug.story}: 'find' is {times} times in {bug.file}; "
            "make it what stands there once"
        )
    return text.replace(bug.find, bug.replace)


class Scratch:
    """A copy of the checkout's tracked files, with its own target folder. It is kept for the next
    run.

    Only one process may use it; a second one gets an error.
    """

    def __init__(self, project: Project, hear: Hear) -> None:
        folder = project.cache / "planted"
        self._project, self._by = project, cargo_of(project)
        self.tree = folder / "tree"
        self._hear = hear
        self._env = {"CARGO_TARGET_DIR": str(folder / "target"), "PYO3_PYTHON": sys.executable}
        self._built = folder / "target" / "debug"
        self.tree.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "lock", blocking=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise CannotTell(f"{folder}: another run is using it; wait for its end") from None
        copy_tracked(project.root, self.tree)
        self._rust = names_in(self._compile())

    def test(self, id_: str) -> Done:
        """Compile the copy as it is now, and run the property test of `id_`.

        Raises:
            CompileError: it does not compile.
            CannotTell: it is skipped here, or pytest breaks.
        """
        if id_ in self._rust:
            folder = self.tree / "crates" / self._by.twins
            return run_one(self._compile(), self._rust[id_], folder, self._hear, _LIMIT_S)
        self._build_extension()
        tests = self._project.settings.twins.tests
        tested = pytest_outcomes([id_], self.tree, tests, self._hear, _LIMIT_S)[id_]
        if tested.passed is None:
            raise CannotTell(f"{id_}: its property test is skipped here: {tested.output}")
        return Done(0 if tested.passed else 1, tested.output, tested.seconds)

    @contextlib.contextmanager
    def holding(self, bug: Bug) -> Iterator[None]:
        """Put the bug into the copy, and take it out at the end of the block."""
        path = self.tree / bug.file
        right = path.read_text(encoding="utf-8")
        path.write_text(planted_in(right, bug), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(right, encoding="utf-8")

    def _compile(self) -> Path:
        return compile_pairs(self.tree, self._by.twins, env=self._env, hear=self._hear)

    def _build_extension(self) -> None:
        """Build the extensions into the copy of the package, with the tests' fast compilation."""
        extensions: list[Cargo | Laboratory] = [self._by]
        extensions += [self._by.laboratory] if self._by.laboratory else []
        crates = [word for of in extensions for word in ("-p", of.crate)]
        done = run(
            [cargo(), "build", *crates, "--locked", "--profile", "test"],
            self.tree,
            self._env,
            self._hear,
        )
        if done.status != 0:
            raise CompileError(done.tail)
        suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
        package = self._project.package
        for of in extensions:
            built = self._built / f"lib{of.library}.so"
            shutil.copy(built, self.tree / package / f"{of.library}{suffix}")
            asked = f"import {package}.{of.library} as c; print(c.__file__)"
            told = run([sys.executable, "-c", asked], self.tree)
            if not told.output.startswith(str(self.tree)):
                raise CannotTell(f"python imports another extension than the copy's:\n{told.tail}")


def copy_tracked(root: Path, tree: Path) -> None:
    """Make `tree` a copy of the checkout's tracked files, without those that an earlier copy had.
    Unchanged ones keep their time stamps, so that cargo skips them. Raises UsageError."""
    try:
        names = git.of(root).run("ls-files", "-z").split("\0")
    except git.GitError as error:
        raise UsageError(f"planted bugs need a git checkout to copy: {error}") from None
    listed = tree.with_name("copied.json")
    before = read(listed, list[str]) if listed.exists() else []
    for gone in {*before} - {*names}:
        (tree / gone).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # folders that are not empty stay
            os.removedirs((tree / gone).parent)
    write(listed, json.dumps(names))  # before they are there, so that an interruption forgets none
    for name in names:
        source, copy = root / name, tree / name
        if source.is_symlink() or not source.is_file():
            continue
        content = source.read_bytes()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def tried(bug: Bug, scratch: Scratch) -> Result:
    """Plant the bug, run the test, and return the result."""
    with scratch.holding(bug):
        try:
            done = scratch.test(bug.id)
        except CompileError as error:
            return Result(bug, NOT_COMPILED, 0.0, str(error))
        except CannotTell as error:  # pytest itself broke
            return Result(bug, BROKE, 0.0, str(error))
    if done.status == 0:
        return Result(bug, SURVIVED, done.seconds, done.tail)
    status = CAUGHT if _DIFFERENCE.search(done.output) else BROKE
    return Result(bug, status, done.seconds, done.tail)


def check_unplanted(ids: Iterable[str], scratch: Scratch) -> None:
    """Check that every test passes without a bug, since failures would otherwise prove nothing.

    Raises:
        CannotTell: a test fails.
    """
    for id_ in ids:
        done = scratch.test(id_)
        if done.status != 0:
            raise CannotTell(
                f"{id_}: its property test fails without any bug; repair that first\n{done.tail}"
            )
