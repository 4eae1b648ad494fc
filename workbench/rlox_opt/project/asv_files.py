"""Finds a project's asv.conf.json among those of a checkout or of a commit."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from rlox_opt.project.asv_configuration import NAMES, Configuration, parse
from rlox_opt.system.files import NotReadError, read_text
from rlox_opt.system.usage import UsageError

BUILT_BY = ("pyproject.toml", "setup.py", "setup.cfg")
"""The files that say how a Python project is built."""

_DEEPEST = 2  # folders below the project's


class NoSuiteError(UsageError):
    """Nothing says where a suite is."""


def upwards(start: Path) -> Iterator[Path]:
    """A folder and those above it, to the top of its repository."""
    for folder in (start, *start.parents):
        yield folder
        if (folder / ".git").exists():
            return


def top_of(folder: Path) -> Path | None:
    """The top of the repository that a folder lies in; None where it lies in none."""
    last = [*upwards(folder)][-1]
    return last if (last / ".git").exists() else None


def project_of(folder: Path) -> Path | None:
    """The folder of the project to which an asv.conf.json in `folder` belongs; None without one. An
    error in the file is reported when the file is needed."""
    top = top_of(folder) or Path(folder.anchor)
    for path in (folder / name for name in NAMES):
        if path.is_file():
            with contextlib.suppress(UsageError):
                built = top / read(top, PurePosixPath(path.relative_to(top))).project
                if built.is_dir() and built != Path(folder.anchor):
                    return built
            return folder
    return None


def read(top: Path, path: PurePosixPath) -> Configuration:
    """The contents of a file, which is named from the top of a checkout. Raises UsageError as
    `parse` does, and if the file cannot be read."""
    try:
        text = read_text(top / path)
    except NotReadError as error:
        raise UsageError(f"{path}: {error.why}") from None

    def beside(other: PurePosixPath) -> str | None:
        with contextlib.suppress(ValueError):  # also of a name that no file can have
            return read_text(top / other)
        return None

    found = parse(text, path, beside)
    named = os.path.realpath(top / path.parent / found.elsewhere)
    if found.elsewhere and named == os.path.realpath(top):  # the checkout, named from outside
        return tidy(found, found.project)
    return found


def chosen(
    top: Path, root: PurePosixPath, wanted: str = "", listed: Iterable[str] | None = None
) -> Configuration:
    """The asv.conf.json of the project in the folder `root` of the checkout `top`. It is the
    `wanted` one (by its name, its folder, or the folder of its benchmarks), otherwise the only one.
    `listed` are the files to look at (all). A folder of benchmarks needs no such file.

    Raises:
        NoSuiteError: there is none.
        UsageError: there are several, or asv would not accept the contents.
    """
    there = _there(top, root, listed)
    if wanted:
        path = PurePosixPath(posixpath.normpath(root / wanted))
        if path.name.endswith((".json", ".jsonc")) and os.path.lexists(top / path):
            return read(top, path)
        for each in there:
            if each.parent == path or _says(top, each, lambda of: of.suite == path):
                return read(top, each)
        if not there or (top / path).is_dir():
            if there and all(_broken(top, each) for each in there):
                return read(top, there[0])  # a broken file is wanted: raises its error
            return _alone(path, root)
    if len(there) > 1:
        ours = [each for each in there if _says(top, each, lambda of: of.project == root)]
        there = ours if len(ours) == 1 else there
    if len(there) > 1:
        first = posixpath.relpath(there[0], root)
        raise UsageError(
            f"{top / root}: several files say where the suite is: {', '.join(map(str, there))}; "
            f'rlox-opt init --suite {shlex.quote(first)} there, or suite = "{first}" under '
            "[tool.rlox-opt] of pyproject.toml, chooses one"
        )
    if there:
        return read(top, there[0])
    raise NoSuiteError(
        f"{top / root}: no benchmarks are known: there is no asv.conf.json in it or in the "
        "folders below, no test takes pytest's fixture `benchmark`, and no crate there has benches "
        'by criterion; write suite = "…", a folder of benchmarks, under [tool.rlox-opt] of '
        "pyproject.toml"
    )


def check_built(top: Path, of: Configuration) -> Configuration:
    """The same configuration, whose project lies in the checkout `top`. Raises UsageError if `repo`
    is another repository and this one has nothing to build."""
    if of.elsewhere and not any((top / of.project / name).exists() for name in BUILT_BY):
        raise UsageError(
            f"{of.path}: `repo` is {of.elsewhere}, another repository, and this one has nothing to "
            f"build: no {' or '.join(BUILT_BY)}; start in a checkout of it, with --suite {top}"
        )
    return of


def tidy(configuration: Configuration, project: PurePosixPath) -> Configuration:
    """The configuration of another repository's file, with this project's folder in it."""
    notes = tuple(note for note in configuration.notes if "`repo` is " not in note)
    return dataclasses.replace(configuration, project=project, notes=notes, elsewhere="")


def _alone(suite: PurePosixPath, project: PurePosixPath) -> Configuration:
    note = f"{suite}: no asv.conf.json says what these benchmarks need; --with NAME adds it"
    return Configuration(path=suite, suite=suite, project=project, notes=(note,))


def below(
    top: Path, root: PurePosixPath, listed: Iterable[str] | None = None
) -> list[PurePosixPath]:
    """The files of that name in `root` and not far below it, the nearest first."""
    home = top / root
    found = {
        PurePosixPath(path.relative_to(top))
        for depth in range(_DEEPEST + 1 if listed is None else 1)
        for path in home.glob("*/" * depth + "asv.conf.json*")
        if path.name in NAMES
        and not any(part.startswith(".") for part in path.relative_to(home).parts)
    }
    for path in map(PurePosixPath, listed or ()):
        depth = len(path.parts) - len(root.parts) - 1
        if path.name in NAMES and path.is_relative_to(root) and depth <= _DEEPEST:
            found |= {path} if os.path.lexists(top / path) else set()
    return sorted(found, key=lambda path: (len(path.parts), path))


def _there(top: Path, root: PurePosixPath, listed: Iterable[str] | None) -> list[PurePosixPath]:
    """The files in `root` and below; without any, those above it or beside it that belong to
    `root`."""
    above = (folder / name for folder in root.parents for name in NAMES)
    return below(top, root, listed) or [
        path
        for path in dict.fromkeys([*above, *below(top, PurePosixPath(), listed)])
        if (top / path).is_file() and _says(top, path, lambda of: of.project == root)
    ]


def _says(top: Path, path: PurePosixPath, what: Callable[[Configuration], bool]) -> bool:
    """Whether `what` is true of a file's contents; False for a broken file."""
    with contextlib.suppress(UsageError):
        return what(read(top, path))
    return False


def _broken(top: Path, path: PurePosixPath) -> bool:
    return not _says(top, path, lambda _: True)
