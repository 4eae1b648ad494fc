"""The project that is measured: what `[tool.rlox-opt]` of its pyproject.toml says, and what is
found where that says nothing."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from rlox_opt.project.builds import Builds, Cargo, Command
from rlox_opt.project.commits import Commits
from rlox_opt.project.installed import Installed
from rlox_opt.project.layers import Layers
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, read_text
from rlox_opt.system.usage import UsageError

_TABLE = "tool.rlox-opt"
_FIELD = re.compile(r"`(\w[\w-]*)`")
_PLACE = re.compile(r"`\$\.?([^`]*)`")


class Twins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Where the forms before and after an optimisation are told apart and tried. Tables are by the
    letter that an id begins with."""

    switches: dict[str, tuple[str, ...]] = {}
    """Files of which one names each optimisation that is written."""

    tests: dict[str, str] = {}
    """The file of pytest's tests that twins agree: `test_the_twins_agree[P5]`."""

    unwritten: str = ""
    """What stands in a form after that is still to be written: a regular expression, with {id} for
    the optimisation. Without it every form that is there is taken for written."""

    interpreted: str = ""
    """How the names of workloads end that only an interpreter can run, so that the program which
    counts what a call costs has none of them."""

    planted: str = ""
    """The list of bugs that those tests must catch."""

    benchmark: str = ""
    """The benchmark of the suite that calls twins: its parameters are the name of a pair's cell and
    `baseline` or `optimized`."""

    worker: str = ""
    """The program that times the twins of the training loop."""

    training: str = ""
    """The program that trains with a given build of the extension."""


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Benchmarks that are measured only where `--bench` names them: regular expressions that are
    searched for in their names. Empty ones leave none out."""

    compared: str = ""
    """By `diff`, `gate` and `calibrate`."""

    recorded: str = ""
    """By `record`."""

    def __post_init__(self) -> None:
        for text in (self.compared, self.recorded):
            try:
                _others(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None


def _others(left_out: str) -> re.Pattern[str]:
    """What finds the names that a pattern does not."""
    return re.compile(rf"^(?!.*(?:{left_out}))" if left_out else "")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """`[tool.rlox-opt]`. Folders are named from the project's root."""

    package: str = ""
    """What is imported, and measured (that of `[tool.maturin] module-name`, or else of the
    project's name)."""

    suite: str = ""
    """The folder of asv benchmarks (that of asv.conf.json)."""

    one_process: bool = False
    """Whether two builds of the package bear to be loaded into one process, which tells smaller
    changes apart; many an extension does not."""

    shared: tuple[str, ...] = ()
    """Modules of the suite that both builds take their inputs from in that process."""

    left_out: LeftOut = LeftOut()

    measured: tuple[str, ...] = ()
    """What git takes for paths: only their changes need a recording (the package and the suite)."""

    state: str = ".rlox-opt"
    """Where results are kept: history/, record/, pages/, acknowledged.toml."""

    cache: str = ".rlox-opt/cache"
    """Where builds are kept, which can be made again."""

    cards: str = "optimizations"
    """The folder of the cards of planned optimisations."""

    peers: str = "peers"
    """The folder of other libraries to race against."""

    workloads: str = "workloads"
    """The folder of the plug-in that knows the project's training runs."""

    versions: tuple[str, ...] = ()
    """Distributions whose versions are told beside the package's own."""

    build: Cargo | Command = Cargo()
    """How a commit is built."""

    twins: Twins = Twins()

    layers: Layers = Layers()
    """Whose code is whose, where time is divided."""


@dataclass(frozen=True)
class Project:
    """The project in `root`, and where its parts lie."""

    root: Path
    settings: Settings

    @classmethod
    def find(cls, start: Path) -> Project:
        """The project that `start` lies in: the nearest folder upwards whose pyproject.toml has our
        table; else `start` itself, with what is found there.

        Raises:
            UsageError: the table is broken: its file, line and field.
        """
        for folder in (start, *start.parents):
            with contextlib.suppress(NotReadError):
                text = read_text(folder / "pyproject.toml")
                if f"[{_TABLE}" in text:
                    return cls(folder, _settings(folder / "pyproject.toml", text))
        return cls(start, Settings())

    @classmethod
    def here(cls) -> Project:
        """The project that the working directory lies in. Raises UsageError as `find` does."""
        try:
            return cls.find(Path.cwd())
        except FileNotFoundError:  # the working directory is gone
            return cls(Path("/"), Settings())

    @cached_property
    def package(self) -> str:
        """What is imported, and measured. Raises UsageError where nothing says what it is."""
        if self.settings.package:
            return self.settings.package
        table = _toml(self.root / "pyproject.toml")
        with contextlib.suppress(KeyError, AttributeError, TypeError):
            return str(table["tool"]["maturin"]["module-name"]).partition(".")[0]
        with contextlib.suppress(KeyError, AttributeError, TypeError):
            return str(table["project"]["name"]).replace("-", "_")
        raise UsageError(
            f"no package to measure is known in {self.root}: start rlox-opt within a project, or "
            f'write package = "…" under [{_TABLE}] of its pyproject.toml'
        )

    @cached_property
    def suite(self) -> Path:
        """The folder of asv benchmarks. Raises UsageError where nothing says which it is."""
        if self.settings.suite:
            return self.root / self.settings.suite
        with contextlib.suppress(NotReadError, ValueError, AttributeError):
            # asv's own comments; a line of JSON that begins with // is no value.
            text = re.sub(r"^\s*//.*", "", read_text(self.root / "asv.conf.json"), flags=re.M)
            return self.root / str(json.loads(text).get("benchmark_dir", "benchmarks"))
        raise UsageError(
            f"no benchmarks are known in {self.root}: there is no asv.conf.json that can be read; "
            f'write suite = "…", a folder of asv benchmarks, under [{_TABLE}] of pyproject.toml'
        )

    @property
    def measured(self) -> tuple[str, ...]:
        """What git takes for paths: only their changes need a recording."""
        suite = str(self.suite.relative_to(self.root))
        name = self.package
        return self.settings.measured or (
            name,
            f"{name}.py",
            f"src/{name}",
            f"src/{name}.py",
            suite,
        )

    @property
    def compared(self) -> re.Pattern[str]:
        """Finds the names of the benchmarks that `diff`, `gate` and `calibrate` take unasked."""
        return _others(self.settings.left_out.compared)

    @property
    def recorded(self) -> re.Pattern[str]:
        """Finds the names of those that `record` takes unasked."""
        return _others(self.settings.left_out.recorded)

    @property
    def cache(self) -> Path:
        """Where builds are kept."""
        return self.root / self.settings.cache

    @property
    def revisions(self) -> Path:
        """Where those of commits are kept."""
        return self.cache / "revisions"

    @property
    def history(self) -> Path:
        """The folder of recordings."""
        return self.root / self.settings.state / "history"

    @property
    def records(self) -> Path:
        """The folder of calibrations and of scores."""
        return self.root / self.settings.state / "record"

    @property
    def pages(self) -> Path:
        """Where pages are published."""
        return self.root / self.settings.state / "pages"

    @property
    def acknowledged(self) -> Path:
        """The list of regressions that are meant."""
        return self.root / self.settings.state / "acknowledged.toml"

    @property
    def cards(self) -> Path:
        """The folder of the cards of planned optimisations."""
        return self.root / self.settings.cards

    @property
    def comparisons(self) -> Path:
        """The folder of what `cmp` and `ladder` measured."""
        return self.cards / "record"

    @property
    def peers(self) -> Path:
        """The folder of other libraries to race against."""
        return self.root / self.settings.peers

    @property
    def workloads(self) -> Path:
        """The folder of the plug-in that knows the project's training runs."""
        return self.root / self.settings.workloads

    def twins(self, name: Literal["planted", "worker", "training"]) -> Path:
        """The file of that name in `[tool.rlox-opt.twins]`. Raises UsageError where there is
        none."""
        if file := str(getattr(self.settings.twins, name)):
            return self.root / file
        raise UsageError(
            f'no file is named for this in {self.root}: write {name} = "…" under '
            f"[{_TABLE}.twins] of pyproject.toml"
        )

    @cached_property
    def commits(self) -> Commits:
        """Those of the checkout in the root."""
        return Commits(self.root, self.revisions)

    @cached_property
    def installed(self) -> Installed:
        """The package in this environment."""
        by = self.settings.build
        library = by.library if isinstance(by, Cargo) else ""
        return Installed(self.package, library, self.settings.versions)

    @cached_property
    def builds(self) -> Builds:
        """Those of its commits."""
        return Builds(self.commits, self.settings.build, self.package, self.suite)


def _settings(path: Path, text: str) -> Settings:
    try:
        table = schema.read(path, dict[str, Any])
    except NotReadError as error:
        raise UsageError(f"{error}") from None
    try:
        return msgspec.convert(table["tool"]["rlox-opt"], Settings)
    except msgspec.ValidationError as error:
        line = _line_of(text, str(error))
        raise UsageError(f"{path}, line {line}: [{_TABLE}]: {_told(str(error))}") from None


def _told(error: str) -> str:
    """With the fields that there are, where one is unknown."""
    if "unknown field" not in error or _PLACE.search(error):
        return error
    fields = msgspec.structs.fields(Settings)
    return f"{error}; there are {', '.join(field.encode_name for field in fields)}"


def _line_of(text: str, error: str) -> int:
    """The line of the field that an error of msgspec names, or of the table."""
    place = _PLACE.search(error)
    names = [name for name in re.split(r"[.\[\]\d]+", place[1]) if name] if place else []
    if unknown := _FIELD.search(error):
        names += [] if unknown[1] in names else [unknown[1]]
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(f"[{_TABLE}"))
    for name in reversed(names):
        for number, line in enumerate(lines[start - 1 :], start):
            if re.match(rf"\s*(\[{_TABLE}\.)?{re.escape(name)}\b", line):
                return number
    return start


def _toml(path: Path) -> dict[str, Any]:
    try:
        return schema.read(path, dict[str, Any])
    except NotReadError:
        return {}
