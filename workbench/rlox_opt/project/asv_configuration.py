"""The contents of an asv.conf.json: where the suite and the project lie, what the suite needs, how
asv builds. They are read from a text, so that a commit's file is read as one on disk is."""

from __future__ import annotations

import contextlib
import difflib
import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import json5
import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from rlox_opt.project import asv_install, asv_matrix, conda_environment
from rlox_opt.project.asv_matrix import Combination, printable
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError

NAMES = ("asv.conf.json", "asv.conf.jsonc")
"""The names that asv gives the file."""

_MOST = 1 << 17  # characters: ten times the longest known; a file with comments then takes a second
_CONDA_LIKE = ("conda", "mamba", "rattler")
_ALONE = {"virtualenv", "uv", ""}  # environments whose packages come from PyPI
_OF_ASV = {*_CONDA_LIKE, *_ALONE, "existing"}  # types that asv itself has
_KNOWN = (
    *("version", "project", "project_url", "repo", "repo_subdir", "branches", "pythons", "matrix"),
    *("exclude", "include", "env_dir", "benchmark_dir", "results_dir", "html_dir"),
    *("show_commit_url", "hash_length", "environment_type", "install_timeout", "dvcs", "plugins"),
    *("default_benchmark_timeout", "regressions_first_commits", "regressions_thresholds"),
    *("conda_channels", "conda_environment_file", "build_command", "install_command"),
    *("uninstall_command", "launch_method", "build_cache_size", "wheel_cache_size"),
)
_ELSEWHERE = re.compile(r"\w[\w+.-]*://|[\w.-]+@[\w.-]+:|[~/]|\w:\\")
_IGNORE, _BY_DEFAULT = "IGNORE", "environment.yml"  # asv's words
_REMEDY = "is not read; name what the suite needs of it by --with NAME"
_NAME = re.compile(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?\s*(\[[\w\s,.-]*\])?")
_VARIABLE = re.compile(r"[^\0=]+")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class Configuration:
    """The contents of an asv.conf.json. Paths are from the top of the repository it lies in."""

    path: PurePosixPath
    """The file, or whatever else says this."""

    suite: PurePosixPath
    """The folder of benchmarks, or the file."""

    project: PurePosixPath
    """The folder that is built."""

    requirements: tuple[str, ...] = ()
    """What the suite needs, in pip's form, by the first combination of the matrix."""

    extras: tuple[str, ...] = ()
    """The extras of the project itself that `install_command` installs."""

    not_pip: tuple[str, ...] = ()
    """Names of conda's requirements, which PyPI may lack."""

    build_env: Mapping[str, str] = field(default_factory=dict)
    """Variables to build with."""

    run_env: Mapping[str, str] = field(default_factory=dict)
    """Variables to run with: those to build with, and asv's `env_nobuild`."""

    build_command: tuple[str, ...] = ()
    """How asv builds a wheel; () is its default."""

    install_command: tuple[str, ...] = ()
    """How asv installs one; () is its default."""

    pythons: tuple[str, ...] = ()
    """Versions of Python for these requirements, the preferred one first."""

    environment_type: str = ""
    """The tool with which asv makes environments."""

    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each."""

    kind: str = "asv"
    """The kind of the suite. Suites of other kinds than asv's have no such file."""

    elsewhere: str = ""
    """`repo`, where that lies outside this repository: asv would measure that repository."""

    distribution: str = ""
    """`project`, the distribution that asv installs; "" if no distribution can have that name."""

    @property
    def by_commands(self) -> bool:
        """Whether its commands build the project. Otherwise its back-end does, also where
        `install_command` names the wheel."""
        installs = self.install_command
        by_wheel = any("{wheel_file}" in of for of in installs)
        return bool(self.build_command or (installs and not by_wheel))


class _File(msgspec.Struct, frozen=True):
    """The keys that are read. Where asv takes a text or a list of texts, this is a list."""

    version: int = 1
    project: str = ""
    repo: str = ""
    repo_subdir: str = ""
    benchmark_dir: str = "benchmarks"
    pythons: tuple[str, ...] = ()
    environment_type: str = ""
    conda_environment_file: str = ""
    matrix: dict[str, Any] = {}
    exclude: tuple[dict[str, Any], ...] = ()
    include: tuple[dict[str, Any], ...] = ()
    build_command: tuple[str, ...] = ()
    install_command: tuple[str, ...] = ()


def parse(
    text: str, path: PurePosixPath, beside: Callable[[PurePosixPath], str | None] = lambda _: None
) -> Configuration:
    """Read the text of an asv.conf.json that lies at `path` of its repository. `beside` gives the
    text of another file of the repository, or None if there is none.

    Raises:
        UsageError: it is not JSON, its version is unknown, or asv does not accept a value; the
            message names the file, the key and the remedy.
    """
    table = _decoded(text, path)
    try:
        of = schema.parse(_as_json(table, path), _File, Path(path))
    except NotReadError as error:
        raise UsageError(f"{error}") from None
    if of.version != 1:
        raise UsageError(f"{path}: `version` is {of.version}; it takes 1, asv's only one")
    notes = [*_unknown(table, path)]
    home = path.parent
    beyond = _ELSEWHERE.match(of.repo) or _leads_out(home, of.repo)
    elsewhere = of.repo if beyond and "\0" not in of.repo else ""
    top = PurePosixPath() if elsewhere or not of.repo else _within(home, of.repo, path, "repo")
    if elsewhere:
        notes.append(f"{path}: `repo` is {of.repo}; what is built is the repository it lies in")
    project = _within(top, of.repo_subdir, path, "repo_subdir")
    combination, pythons, count = _first(of, path)
    if count > 1:
        notes.append(
            f"{path}: `matrix` has {count if count < 10**6 else 'millions of'} combinations; the "
            f"first is taken: {_told(combination)}; --with NAME==VERSION takes another version"
        )
    conda = of.environment_type in _CONDA_LIKE
    named = [f"`{key}`" for key in ("build_command", "install_command") if getattr(of, key)]
    theirs = bool(named) and of.environment_type not in _OF_ASV  # commands of a plug-in's type
    if of.environment_type not in _ALONE:
        said = "its packages are taken from PyPI by uv" if conda else "environments are made by uv"
        if theirs:
            said += f", and the project's back-end builds the package: {' and '.join(named)} may "
            said += "need a plug-in of asv"
        notes.append(f"{path}: `environment_type` is {of.environment_type}; {said}")
    also = _of_conda_file(of.conda_environment_file, path, beside, notes) if conda else None
    taken = {_bare(key.removeprefix("pip+")).lower() for kind, key in combination if kind == "req"}
    of_conda: Combination = {}
    requirements = [*_requirements(combination, conda, path, notes)]
    if also:  # the matrix takes precedence over the environment file
        of_conda = {("req", name): of for name, of in also.conda.items() if name not in taken}
        asked = [*_requirements(of_conda, conda, path, notes), *also.pip]
        requirements += _understood(asked, taken, path, notes)
        pythons = pythons or tuple(filter(None, [also.python]))
    installed = asv_install.read(of.install_command, path, project, beside)
    requirements += _understood(installed.requirements, taken, path, notes)
    notes += installed.notes
    build_env = _variables(combination, path, "env")
    return Configuration(
        path=path,
        suite=_within(home, of.benchmark_dir, path, "benchmark_dir"),
        project=project,
        requirements=tuple(requirements),
        extras=tuple(map(printable, dict.fromkeys(installed.extras))),
        not_pip=tuple(map(_bare, _asked({**of_conda, **combination}))) if conda else (),
        build_env=build_env,
        run_env=build_env | _variables(combination, path, "env_nobuild"),
        build_command=() if theirs else of.build_command,
        install_command=() if theirs else of.install_command,
        pythons=pythons,
        environment_type=of.environment_type,
        notes=tuple(map(printable, notes)),
        elsewhere=elsewhere,
        distribution=of.project if _DISTRIBUTION.fullmatch(of.project) else "",
    )


def _first(of: _File, path: PurePosixPath) -> tuple[Combination, tuple[str, ...], int]:
    """The first combination of the matrix. Since conda's packages are taken from PyPI, its rules
    are those for a virtual environment, unless they leave no combination."""

    def first(kind: str) -> tuple[Combination, tuple[str, ...], int]:
        return asv_matrix.first(of.matrix, of.exclude, of.include, of.pythons, kind, path)

    if of.environment_type in _CONDA_LIKE:
        with contextlib.suppress(UsageError):
            return first("virtualenv")
    return first(of.environment_type)


def _of_conda_file(
    named: str,
    path: PurePosixPath,
    beside: Callable[[PurePosixPath], str | None],
    notes: list[str],
) -> conda_environment.Asked | None:
    """What conda's environment file asks for. asv takes the file that is named, otherwise
    environment.yml if there is one."""
    if named == _IGNORE:
        return None
    file = _within(path.parent, named or _BY_DEFAULT, path, "conda_environment_file")
    text = beside(file)
    if text is None:
        if named:
            notes.append(f"{path}: `conda_environment_file` is {named}, which {_REMEDY}")
        return None
    try:
        found = conda_environment.parse(text)
    except ValueError as error:
        notes.append(f"{file}: {error}, and it {_REMEDY}")
        return None
    notes.append(f"{file}: what it names the suite has as well, from PyPI by uv")
    return found


def _understood(
    asked: Sequence[str], taken: Collection[str], path: PurePosixPath, notes: list[str]
) -> Iterator[str]:
    """The requirements that are valid, without those whose names are `taken`."""
    for text in asked:
        try:
            address = "://" in text and not text.startswith("-")
            if address or Requirement(text).name.lower() not in taken:
                yield text
        except InvalidRequirement:
            notes.append(f"{path}: `{text[:60]}` is no requirement that uv takes, and is left out")


def _decoded(text: str, path: PurePosixPath) -> dict[str, Any]:
    """The file's keys that have a value."""
    if len(text) > _MOST:
        raise UsageError(f"{path}: has {len(text)} characters, and asv.conf.json is never so long")
    try:
        table = _loaded(text)
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply for an asv.conf.json") from None
    except ValueError as error:
        line = re.match(r"<string>:(\d+) ", str(error))
        where = f"{path}, line {line[1]}" if line else f"{path}"
        why = str(error)[line.end() if line else 0 :] or "cannot be read"
        raise UsageError(f"{where}: is no JSON as asv reads it: {printable(why[:200])}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{path}: is no object of JSON; asv's settings stand in one: {{…}}")
    commands = ("build_command", "install_command")
    return {
        key: [value] if isinstance(value, str) and key in commands else value
        for key, value in table.items()
        if value is not None
    }


def _loaded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)  # a hundred times as fast, but for plain JSON only
    except ValueError:
        return json5.loads(text)  # with comments, and commas at the end


def _as_json(table: dict[str, Any], path: PurePosixPath) -> str:
    try:
        return json.dumps({key: table[key] for key in _KNOWN if key in table}, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise UsageError(f"{path}: holds a number that is none of JSON; write it out") from None


def _unknown(table: Mapping[str, Any], path: PurePosixPath) -> Iterator[str]:
    """A note on each key that asv does not know. asv ignores these keys too."""
    for key in sorted({*table} - {*_KNOWN}):
        near = difflib.get_close_matches(key, _KNOWN, 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        yield f"{path}: `{key[:40]}` is no setting of asv's, and is passed over{hint}"


def _within(home: PurePosixPath, named: str, path: PurePosixPath, key: str) -> PurePosixPath:
    """A folder named relative to `home`. Raises UsageError if it lies outside the repository."""
    if "\0" in named or _leads_out(home, named):
        raise UsageError(
            f"{path}: `{key}` is {printable(named)!r}, outside the repository; it takes a folder "
            f"within, named from {home if str(home) != '.' else 'its top'}"
        )
    return PurePosixPath(posixpath.normpath(home / named))


def _leads_out(home: PurePosixPath, named: str) -> bool:
    """Whether a path that is named relative to `home` lies outside the repository."""
    folder = posixpath.normpath(posixpath.join(str(home), named))
    return f"{folder}/".startswith(("../", "/"))


def _told(combination: Combination) -> str:
    taken = [f"{name}{'=' if text else ''}{text}" for (_, name), text in combination.items()]
    return ", ".join(taken)[:200] or "nothing"


def _asked(combination: Combination) -> Iterator[str]:
    """What a conda matrix asks of conda."""
    for kind, name in combination:
        if kind == "req" and not name.startswith("pip+"):
            yield name


def _bare(name: str) -> str:
    """A name without conda's channel."""
    return name.rpartition("::")[2].strip()


def _requirements(
    combination: Combination, conda: bool, path: PurePosixPath, notes: list[str]
) -> Iterator[str]:
    """The requirements in pip's form. Options of pip and folders get a note, since an environment
    cannot contain them."""
    for (kind, key), text in combination.items():
        if kind != "req":
            continue
        name, version = _bare(key.removeprefix("pip+")), text.strip()
        if name.startswith("git+"):
            yield f"{name}@{version}" if version else name
        elif not _NAME.fullmatch(name) or "\0" in version:
            shown = f"{key} {text}".strip()[:60]
            notes.append(f"{path}: `{shown}` is no requirement that uv takes, and is left out")
        elif not version:
            yield name
        elif version[0] in "<>=!~@" and not (conda and re.match(r"=(?!=)", version)):
            yield f"{name} {version}" if version[0] == "@" else f"{name}{version}"
        elif "://" in version:
            yield f"{name} @ {version}"
        elif conda and not key.startswith("pip+"):
            # conda's `numpy=1.26` means any 1.26 and any build.
            series = version.lstrip("=").partition("=")[0]
            yield f"{name}=={series}" if "*" in series else f"{name}=={series}.*"
        else:
            yield f"{name}=={version}"


def _variables(combination: Combination, path: PurePosixPath, kind: str) -> dict[str, str]:
    found = {name: text for (of, name), text in combination.items() if of == kind}
    for name, text in found.items():
        if not _VARIABLE.fullmatch(name) or "\0" in text:
            raise UsageError(
                f"{path}: `matrix: {kind}` has {printable(name)!r}, which no variable of the "
                "environment can be; write another"
            )
    return found
