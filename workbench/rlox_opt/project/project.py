"""The project that is measured: the settings `[tool.rlox-opt]` of its pyproject.toml, and the
defaults for what they leave open."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from rlox_opt.project import asv_files, kinds, package_name, thresholds, unmeasured
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builds import Builds, Cargo, Command
from rlox_opt.project.commits import Commits
from rlox_opt.project.installed import Installed
from rlox_opt.project.kinds.commands import FILE, Commands
from rlox_opt.project.layers import Layers
from rlox_opt.system import git, schema
from rlox_opt.system.files import NotReadError, read_text
from rlox_opt.system.usage import UsageError

_TABLE = "tool.rlox-opt"
_FIELD = re.compile(r"`(\w[\w-]*)`")
_PLACE = re.compile(r"`\$\.?([^`]*)`")
_MAGIC = re.compile(r":\([^)]*\)|:[!^/]*:?|")  # the pathspec magic that git's paths may begin with


class Twins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Where the two forms of an optimisation are chosen and tested. The keys of tables are the
    letter that an id begins with."""

    switches: dict[str, tuple[str, ...]] = {}
    """The files in which an optimisation is named once it is written; one of them suffices."""

    tests: dict[str, str] = {}
    """The pytest file that tests that twins agree: `test_the_twins_agree[P5]`."""

    unwritten: str = ""
    """A regular expression that matches an optimised form while it is still the skeleton; {id}
    stands for the optimisation's id. Without it every form that exists counts as written."""

    interpreted: str = ""
    """The end of names of workloads that only an interpreter can run. The program that counts what
    a call costs does not contain these."""

    planted: str = ""
    """The list of bugs that those tests must catch."""

    benchmark: str = ""
    """The benchmark of the suite that calls twins. Its parameters are the name of a pair's cell and
    `baseline` or `optimized`."""

    worker: str = ""
    """The program that times the twins of the training loop."""

    training: str = ""
    """The program that trains with a given build of the extension."""


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Benchmarks that run only with `--bench`, by a pattern of their names; "" for none."""

    compared: str = ""
    """Those that `diff`, `gate` and `calibrate` leave out."""

    recorded: str = ""
    """Those that `record` leaves out."""

    def __post_init__(self) -> None:
        for text in (self.compared, self.recorded):
            try:
                _others(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None


def _others(left_out: str) -> re.Pattern[str]:
    """A pattern that matches the names that `left_out` does not."""
    return re.compile(rf"^(?!.*(?:{left_out}))" if left_out else "")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """`[tool.rlox-opt]`. Folders are named from the project's root."""

    package: str = ""
    """What is imported and measured (that of `[tool.maturin] module-name`, of the crate's
    library, or else of the project's name)."""

    suite: str | Commands = ""
    """The folder of asv benchmarks, or the asv.conf.json that names it (the only one in the root
    or at most two folders below); or a file or folder of pytest's, or one of criterion's; or whole
    programs, as a table."""

    one_process: bool = False
    """Whether two builds of the package may be loaded into one process, which finds smaller
    changes. Many extensions do not allow it."""

    shared: tuple[str, ...] = ()
    """Modules of the suite from which both builds take their inputs in that process."""

    left_out: LeftOut = LeftOut()

    measured: tuple[str, ...] = ()
    """Paths for git: only changes in these need a recording (all of the repository but
    documentation, tests and files for CI services)."""

    state: str = ".rlox-opt"
    """Where results are kept: history/, record/, pages/, acknowledged.toml."""

    cache: str = ".rlox-opt/cache"
    """Where builds are kept. They can be made again."""

    cards: str = "optimizations"
    """The folder of the cards of planned optimisations."""

    peers: str = "peers"
    """The folder of other libraries to race against."""

    workloads: str = "workloads"
    """The folder of the plug-in that describes the project's training runs."""

    versions: tuple[str, ...] = ()
    """Distributions whose versions are reported beside the package's own."""

    build: Cargo | Command | None = None
    """How a commit is built (by the commands of asv.conf.json, or else by the back-end that
    pyproject.toml names)."""

    twins: Twins = Twins()

    layers: Layers = Layers()
    """Whose code is whose, when time is divided."""

    thresholds: dict[str, Any] = {}
    """The least change that matters for single benchmarks, in per cent, by shell patterns."""

    def __post_init__(self) -> None:
        thresholds.check(self.thresholds)

    @property
    def suite_path(self) -> str:
        """The suite's path from the project's root; "" if the suite is to be searched for."""
        return self.suite if isinstance(self.suite, str) else FILE


@dataclass(frozen=True)
class Project:
    """The project in `root`, and where its parts lie."""

    root: Path
    settings: Settings
    lent: tuple[Path, Configuration] | None = None
    """A suite that replaces the project's own, and the contents of its asv.conf.json."""

    @classmethod
    def find(cls, start: Path) -> Project:
        """The project that `start` lies in: the nearest folder upwards whose pyproject.toml has our
        table; otherwise the nearest that can be built, or that an asv.conf.json belongs to;
        otherwise the nearest with a Cargo.toml; otherwise `start` itself. The search ends at the
        top of the repository.

        Raises:
            UsageError: the table is broken: its file, line and field.
        """
        folders = [*asv_files.upwards(start)]
        for folder in folders:
            path = folder / "pyproject.toml"
            with contextlib.suppress(NotReadError):
                text = read_text(path, errors="replace")
                if f"[{_TABLE}" in text and (settings := _settings(path, text)):
                    return cls(folder, settings)
        for folder in folders:
            if (built := asv_files.project_of(folder)) or package_name.is_project(folder):
                return cls(built or folder, Settings())
        crate = next((folder for folder in folders if package_name.is_crate(folder)), start)
        return cls(crate, Settings())

    @classmethod
    def here(cls) -> Project:
        """The project that the working directory lies in. Raises UsageError as `find` does."""
        try:
            return cls.find(Path.cwd())
        except FileNotFoundError:  # the working directory was removed
            return cls(Path("/"), Settings())

    @cached_property
    def top(self) -> Path:
        """The top of the repository around it; the root if there is no repository."""
        return asv_files.top_of(self.root) or self.root

    @property
    def within(self) -> PurePosixPath:
        """The path of the root from the repository's top."""
        return PurePosixPath(self.root.relative_to(self.top))

    @property
    def package(self) -> str:
        """What is imported and measured. Raises UsageError if nothing says what that is."""
        return self.named[0]

    @cached_property
    def named(self) -> tuple[str, str]:
        """The package, and the file or setting that names it. Raises UsageError without one."""
        if self.settings.package:
            return self.settings.package, f"pyproject.toml, [{_TABLE}]"
        try:
            found = package_name.found(self.root)
        except NotReadError as error:
            raise UsageError(f"{error}") from None
        if found:
            return found
        raise UsageError(
            f"no package to measure is known in {self.root}: start rlox-opt within a project, or "
            f'write package = "…" under [{_TABLE}] of its pyproject.toml'
        )

    @cached_property
    def configuration(self) -> Configuration:
        """What is known of its suite, for example from its asv.conf.json. Raises UsageError as
        `kinds.chosen` and `check_built` do."""
        if self.lent:
            return self.lent[1]
        wanted = "" if self.apart else self.settings.suite_path
        found = kinds.chosen(self.top, self.within, wanted, self.files())
        return asv_files.check_built(self.top, found)

    @property
    def suite(self) -> Path:
        """The folder of benchmarks, or the file: the working tree's, unless another one replaces
        it. Raises UsageError if nothing says which it is."""
        return self.lent[0] if self.lent else self.apart or self.top / self.configuration.suite

    @property
    def apart(self) -> Path | None:
        """The suite that the settings name, if it lies outside the repository, so that all commits
        have the same."""
        path = Path(os.path.normpath(self.root / self.settings.suite_path))
        return None if path.is_relative_to(self.top) else path

    def files(self) -> list[str] | None:
        """The files of its working tree that git has or would add, from the top; None if git cannot
        list them."""
        with contextlib.suppress(UsageError, git.GitError):
            said = self.commits.repository().run(
                "ls-files", "-z", "--cached", "--others", "--exclude-standard"
            )
            return said.split("\0")[:-1]
        return None

    @property
    def measured(self) -> tuple[str, ...]:
        """Paths for git, from the top: only changes in these need a recording."""
        if self.settings.measured:
            return tuple(map(self._from_top, self.settings.measured))
        inside = [self.within, self.within / self.package]
        with contextlib.suppress(UsageError):
            inside.append(self.configuration.suite)
        return unmeasured.everything_but(self.within, inside, self.settings.state)

    def _from_top(self, path: str) -> str:
        magic = _MAGIC.match(path)
        assert magic is not None
        return f"{magic[0]}{os.path.normpath(self.within / path[magic.end() :])}"

    @property
    def compared(self) -> re.Pattern[str]:
        """Matches the names that `diff`, `gate` and `calibrate` take without `--bench`."""
        return _others(self.settings.left_out.compared)

    @property
    def recorded(self) -> re.Pattern[str]:
        """Matches the names that `record` takes without `--bench`."""
        return _others(self.settings.left_out.recorded)

    @property
    def cache(self) -> Path:
        """Where builds are kept."""
        return self.root / self.settings.cache

    @property
    def revisions(self) -> Path:
        """Where builds of commits are kept."""
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
        """The list of acknowledged regressions."""
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
        """The folder of the plug-in that describes the project's training runs."""
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
        """The commits of the repository around it."""
        return Commits(self.top, self.revisions)

    @cached_property
    def installed(self) -> Installed:
        """The package in this environment."""
        by = self.settings.build
        library, laboratory = by.libraries if isinstance(by, Cargo) else ("", "")
        return Installed(self.package, library, self.settings.versions, laboratory)

    @cached_property
    def builds(self) -> Builds:
        """The builds of its commits."""
        by = self.settings.build
        # A suite outside the repository has no known configuration, unless it replaces another.
        known = self.lent or not self.apart
        if by is None or (known and self.configuration.kind == "criterion"):
            return Builds(self.commits, by, self.package, self.suite, self.configuration)
        return Builds(self.commits, by, self.package, self.suite)


def _settings(path: Path, text: str) -> Settings | None:
    """The settings of our table; None if the text only mentions it."""
    try:
        table = schema.read(path, dict[str, Any])
    except NotReadError as error:
        raise UsageError(f"{error}") from None
    try:
        ours = table["tool"]["rlox-opt"]
    except (KeyError, TypeError):
        return None
    try:
        return msgspec.convert(ours, Settings)
    except msgspec.ValidationError as error:
        line = _line_of(text, str(error))
        raise UsageError(f"{path}, line {line}: [{_TABLE}]: {_told(str(error))}") from None


def _told(error: str) -> str:
    """An error with the list of fields, if it names an unknown one."""
    if "unknown field" not in error or _PLACE.search(error):
        return error
    fields = msgspec.structs.fields(Settings)
    return f"{error}; there are {', '.join(field.encode_name for field in fields)}"


def _line_of(text: str, error: str) -> int:
    """The line of the field that msgspec's error names, or of the table."""
    place = _PLACE.search(error)
    names = [name for name in re.split(r"[.\[\]\d]+", place[1]) if name] if place else []
    if unknown := _FIELD.search(error):
        names += [] if unknown[1] in names else [unknown[1]]
    lines, table = text.splitlines(), rf"\s*\[{{1,2}}{re.escape(_TABLE)}\b"
    start = next((n for n, line in enumerate(lines, 1) if re.match(table, line)), 1)
    for name in reversed(names):
        for number, line in enumerate(lines[start - 1 :], start):
            if re.match(rf"({table}\.|\s*){re.escape(name)}\b", line):
                return number
    return start
