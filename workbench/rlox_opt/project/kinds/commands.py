"""Suites of commands: whole programs, named in `[tool.rlox-opt.suite]` of pyproject.toml."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from rlox_opt.harness.side_processes import Suite
from rlox_opt.project.artefacts import digest, digest_of_files
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError

FILE = "pyproject.toml"
_TABLE = "tool.rlox-opt.suite"
_OF_A_SHELL = frozenset("|&;<>")


class Commands(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """`[tool.rlox-opt.suite]`, a suite of whole programs."""

    commands: dict[str, str] | list[str]
    """Command lines by name, or a list of them, which are then their own names. They are split into
    words as a shell does it, and run without a shell."""

    files: tuple[str, ...] = ()
    """Files and folders, from the project's root. Each run gets a copy of them in its folder, at
    the same place."""

    requires: tuple[str, ...] = ()
    """What the commands need besides the package, in pip's form."""

    env: dict[str, str] = {}
    """Variables to run them with."""

    timeout: float | None = None
    """Seconds that one run may take."""

    def words(self) -> dict[str, list[str]]:
        """The words of each command, by its name. Raises ValueError, which names the command."""
        if isinstance(self.commands, list):
            twice = [line for line, often in Counter(self.commands).items() if often > 1]
            if twice:
                raise ValueError(f"commands: {twice[0]!r} stands there twice; leave one out")
        lines = self.commands
        named = lines.items() if isinstance(lines, dict) else ((line, line) for line in lines)
        return {name: _words(name, line) for name, line in named}

    def __post_init__(self) -> None:
        if not self.commands:
            raise ValueError('commands: are none; write commands = { NAME = "program word …" }')
        self.words()
        for path in self.files:
            inner = posixpath.normpath(path)
            if inner.startswith(("/", "..")) or inner == ".":
                raise ValueError(f"files: {path!r} is no part of the project; name one within")
        if self.timeout is not None and not 0 < self.timeout < schema.MOST:
            raise ValueError(f"timeout: {self.timeout:g} is no time; it takes seconds over 0")


def _words(name: str, line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"commands: {name!r}: {error}: {line}") from None
    if not words or not name.strip():
        raise ValueError(f"commands: {name!r} has no command; write a program and its words")
    if of := next((word for word in words if word and {*word} <= _OF_A_SHELL), None):
        raise ValueError(
            f"commands: {name!r} is run without a shell, which {of} is for; write sh -c '…'"
        )
    return words


class OfCommands:
    """The kind of these suites. pyproject.toml is the suite, so that each commit has its own."""

    name = "commands"
    called = f"a pyproject.toml with commands under [{_TABLE}]"
    found_by = f"commands under [{_TABLE}]"
    none = f"there are no commands under [{_TABLE}]"
    together = False

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        path = root / FILE
        return [path] if self.takes(top, path) and self.any_benchmark(top / path) else []

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        return path.name == FILE and (top / path).is_file()

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        of = _read(top / path, f"{path}")
        return Configuration(
            path=path,
            suite=path,
            project=root,
            requirements=of.requires,
            run_env=of.env,
            kind=self.name,
        )

    def benchmarks(self, suite: Path) -> list[str]:
        return [*_read(suite, suite.name).words()]

    def any_benchmark(self, suite: Path) -> bool:
        with contextlib.suppress(UsageError):
            return bool(self.benchmarks(suite))
        return False

    def uncovered(self, suite: Path) -> list[str]:
        return []

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        return names[0]

    def digest(self, suite: Path) -> str:
        of = _read(suite, suite.name)
        named = [suite.parent / name for name in of.files]
        files = (each for at in named for each in (at, *at.rglob("*")))
        return digest(msgspec.json.encode(of) + digest_of_files(files, suite.parent).encode())

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        asks = _read(suite, f"{of.path}")
        told: dict[str, Any] = {
            "commands": asks.words(),
            "files": None,
            "env": asks.env,
            "timeout": asks.timeout,
        }
        if asks.files:
            copies = folder / "files"
            for name in asks.files:
                _copy(suite.parent / name, copies / posixpath.normpath(name), f"{of.path}")
            told["files"] = f"{copies}"
        return Suite(suite, (), "rlox_opt_commands_side.py", told)


def _read(path: Path, named: str) -> Commands:
    """The table of a pyproject.toml. `named` is the file's name in messages. Raises UsageError."""
    try:
        table: Any = schema.read(path, dict[str, Any])
    except NotReadError as error:
        raise UsageError(f"{named}: {error.why}") from None
    for key in _TABLE.split("."):
        table = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping):
        raise UsageError(
            f"{named}: has no [{_TABLE}], so no command is known; --suite . takes those of the "
            "working tree"
        )
    try:
        return msgspec.convert(table, Commands)
    except msgspec.ValidationError as error:
        raise UsageError(f"{named}: [{_TABLE}]: {error}") from None


def _copy(there: Path, to: Path, named: str) -> None:
    """Copy a file or folder. Raises UsageError if it does not exist."""
    if not os.path.lexists(there):
        raise UsageError(
            f"{named}: [{_TABLE}]: files: {there.name} is not in {there.parent}; name what the "
            "suite's commit has"
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    if there.is_dir():
        shutil.copytree(there, to, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(there, to)
