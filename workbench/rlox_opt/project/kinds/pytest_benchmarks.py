"""Suites of pytest-benchmark and pytest-codspeed: tests with the fixture or the mark
`benchmark`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.harness.side_processes import Suite
from rlox_opt.project import asv_files
from rlox_opt.project.artefacts import digest_of_files
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.kinds import pytest_requires, pytest_source
from rlox_opt.system import git
from rlox_opt.system.files import readable_text

# Files with pytest's settings, in pytest's order, and the header that each must contain.
_SETTINGS = (
    ("pytest.toml", ""),
    (".pytest.toml", ""),
    ("pytest.ini", ""),
    (".pytest.ini", ""),
    ("pyproject.toml", r"(?m)^\s*\[\s*tool\s*\.\s*pytest\b"),
    ("tox.ini", r"(?m)^\[pytest\]"),
    ("setup.cfg", r"(?m)^\[tool:pytest\]"),
)
_OF_TESTS = re.compile(r"test|bench|perf")  # in names of folders
_OF_A_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")


class Pytest:
    """pytest's kind. A suite is run from a copy, since a test may write files beside itself."""

    name = "pytest"
    called = "a file or folder of pytest benchmarks"
    found_by = "tests that take the fixture `benchmark`, or are marked so"
    none = "no test there takes the fixture `benchmark`, or is marked so"
    together = False

    def there(
        self, top: Path, root: PurePosixPath, listed: Sequence[str] | None
    ) -> list[PurePosixPath]:
        home = top / root
        of = None if listed is None else _listed(top, root, listed)
        found = pytest_source.files(home, of)
        if not found:
            return []
        common = Path(os.path.commonpath([path.parent for path in found]))
        return [PurePosixPath((found[0] if len(found) == 1 else common).relative_to(top))]

    def takes(self, top: Path, path: PurePosixPath) -> bool:
        return self.any_benchmark(top / path)

    def suite(self, top: Path, root: PurePosixPath, path: PurePosixPath) -> Configuration:
        home, settings = _root_of(top / path)
        taken = pytest_requires.found(top / root)
        if not taken.source and home != top / root:
            taken = pytest_requires.found(home)
        own = top / path
        above = (of / "conftest.py" for of in own.parents if of.is_relative_to(home))
        taken = pytest_requires.with_imported(taken, (*pytest_source.python_files(own), *above))
        says = "say" if " and " in taken.source else "says"
        listed = f"{', '.join(taken.requirements)}, for nothing names what tests require"
        has = f"what {taken.source} {says}" if taken.source else listed
        note = f"{path}: its environment has {has}; --with NAME adds to it"
        beyond = [] if _has_own_names(settings) else pytest_source.beyond(own, home)
        return Configuration(
            path=path,
            suite=path,
            project=root,
            requirements=taken.requirements,
            notes=(note, *beyond),
            kind=self.name,
        )

    def benchmarks(self, suite: Path) -> list[str]:
        return pytest_source.benchmarks(suite, _root_of(suite)[0])

    def any_benchmark(self, suite: Path) -> bool:
        return bool(pytest_source.files(suite))

    def uncovered(self, suite: Path) -> list[str]:
        root, settings = _root_of(suite)
        return [] if _has_own_names(settings) else pytest_source.uncovered(suite, root)

    def lightest(self, suite: Path, names: Sequence[str]) -> str:
        return pytest_source.lightest(suite, _root_of(suite)[0], names)

    def digest(self, suite: Path) -> str:
        root, files = _root_of(suite)[0], pytest_source.files(suite)
        folders = {of for path in files for of in path.parents if of.is_relative_to(root)}
        return digest_of_files([*files, *(of / "conftest.py" for of in folders)], suite)

    def laid_out(
        self, suite: Path, of: Configuration, shared: Sequence[str], folder: Path
    ) -> Suite:
        root, settings = _root_of(suite)
        copy = folder / "suite"
        _copied(root, copy)
        if settings is None:
            own = folder / "pytest.ini"  # an empty file, so that pytest looks for no other
            own.write_text("[pytest]\n")
        else:
            own = copy / settings.relative_to(root)
        files = [f"{path.relative_to(root)}" for path in pytest_source.files(suite)]
        told = {"root": str(copy), "ini": str(own), "files": {f: _within(root, f) for f in files}}
        return Suite(copy / suite.relative_to(root), (), "rlox_opt_pytest_side.py", told)


def _listed(top: Path, root: PurePosixPath, listed: Sequence[str]) -> list[Path]:
    """The Python files within the root, among those listed from the top."""
    of = (PurePosixPath(name) for name in listed if name.endswith(".py"))
    return [top / path for path in of if path.is_relative_to(root) and (top / path).is_file()]


def _root_of(suite: Path) -> tuple[Path, Path | None]:
    """The folder from which pytest names the tests of a suite, and the settings file there. It is
    the nearest folder upwards with settings or a project, otherwise the suite's own."""
    home = suite if suite.is_dir() else suite.parent
    for folder in (home, *home.parents):
        for name, pattern in _SETTINGS:
            path = folder / name
            if path.is_file() and re.search(pattern, readable_text(path)):
                return folder, path
        if any((folder / name).is_file() for name in _OF_A_PROJECT):
            return folder, None
        if (folder / ".git").exists():
            break
    return home, None


def _has_own_names(settings: Path | None) -> bool:
    """Whether the user has chosen other names for collection."""
    pattern = r"\bpython_(files|classes|functions)\b"
    return settings is not None and re.search(pattern, readable_text(settings)) is not None


def _within(root: Path, file: str) -> tuple[str, str] | None:
    """For a file within a package that is built: the module that takes the place of the package's
    own (the nearest folder of tests, otherwise the file alone), and the folder that contains the
    package, from the root. None for a file beside the packages, or in a package of tests alone.
    """
    parts = PurePosixPath(file).with_suffix("").parts
    first = len(parts) - 1  # the index of the outermost package
    while first and (root.joinpath(*parts[:first]) / "__init__.py").exists():
        first -= 1
    names = parts[first:]
    of_tests = [n for n, name in enumerate(names[:-1]) if _OF_TESTS.search(name)]
    if len(names) == 1 or 0 in of_tests:
        return None
    end = of_tests[0] + 1 if of_tests else len(names)
    return ".".join(names[:end]), "/".join(parts[:first])


def _copied(root: Path, copy: Path) -> None:
    """Copy the files of a folder that git has or would add; outside a checkout, all of them."""
    names = _of_git(root)
    if not names:  # outside a checkout, or in the workbench's own folder, which git ignores
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return
    for name in names:
        path, to = root / name, copy / name
        if path.is_symlink() or path.is_file():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to, follow_symlinks=False)


def _of_git(root: Path) -> list[str]:
    top = asv_files.top_of(root)
    if top is None:
        return []
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f"{root}")
    with contextlib.suppress(git.GitError):
        names = git.of(top).run(*words).split("\0")[:-1]
        return [os.path.relpath(top / name, root) for name in names]
    return []
