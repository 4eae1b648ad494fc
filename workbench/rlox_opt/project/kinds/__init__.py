"""The kinds of suites, and the choice of a project's kind, which is made only here.

With an asv.conf.json the suite is asv's. Otherwise `suite` of `[tool.rlox-opt]`, or `--suite`,
names a file or folder, and it goes to the first kind that finds its benchmarks there. If nothing is
named, every kind is asked what it finds.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from rlox_opt.project import asv_files, bench_targets, package_name
from rlox_opt.project.asv_configuration import NAMES, Configuration
from rlox_opt.project.asv_files import NoSuiteError
from rlox_opt.project.kinds.asv import Asv
from rlox_opt.project.kinds.commands import OfCommands
from rlox_opt.project.kinds.criterion import Criterion
from rlox_opt.project.kinds.kind import Kind
from rlox_opt.project.kinds.pytest_benchmarks import Pytest
from rlox_opt.system.output import few
from rlox_opt.system.usage import UsageError

__all__ = ["ASV", "OTHERS", "Kind", "below", "beside_asv", "chosen", "names", "of", "taking"]

OTHERS: tuple[Kind, ...] = (OfCommands(), Pytest(), Criterion())
"""All kinds but asv's, in the order in which they are asked."""

ASV: Kind = Asv()


def of(configuration: Configuration) -> Kind:
    """The kind of a suite."""
    return next((kind for kind in OTHERS if kind.name == configuration.kind), ASV)


def names() -> str:
    """What a suite may be, for messages."""
    return " or ".join(kind.called for kind in (ASV, *OTHERS))


def taking(top: Path, path: PurePosixPath) -> Kind | None:
    """The kind, other than asv's, of which a file or folder of the checkout `top` is a suite. None
    if there is none, or if an asv.conf.json lies in it."""
    if path.name in NAMES or any((top / path / name).exists() for name in NAMES):
        return None
    return next((kind for kind in OTHERS if kind.takes(top, path)), None)


def chosen(
    top: Path, root: PurePosixPath, wanted: str = "", listed: Iterable[str] | None = None
) -> Configuration:
    """The suite of the project in the folder `root` of the checkout `top`: the `wanted` one (a path
    from `root`), otherwise the only one. `listed` are the files to look at (all).

    Raises:
        NoSuiteError: there is none.
        UsageError: there are several, or the file that describes it cannot be read.
    """
    files = None if listed is None else [*listed]
    if wanted:
        path = PurePosixPath(posixpath.normpath(root / wanted))
        kind = taking(top, path)
        return kind.suite(top, root, path) if kind else asv_files.chosen(top, root, wanted, files)
    try:
        return asv_files.chosen(top, root, wanted, files)
    except NoSuiteError as error:
        found = [(kind, path) for kind in OTHERS for path in kind.there(top, root, files)]
        if not found:
            raise NoSuiteError(f"{error}{_elsewhere(top, root, files)}") from None
    if len(found) > 1:
        names = ", ".join(f"{path} ({kind.name})" for kind, path in found)
        first = posixpath.relpath(found[0][1], root)
        raise UsageError(
            f"{top / root}: has several suites: {names}; choose by "
            f'suite = "{first}" under [tool.rlox-opt] of pyproject.toml, or by --suite'
        )
    ((kind, path),) = found
    return kind.suite(top, root, path)


def _elsewhere(top: Path, root: PurePosixPath, listed: Sequence[str] | None) -> str:
    """The end of a message: where to start instead, if crates of the repository that do not lie in
    `root` have benches."""
    if root == PurePosixPath():
        return ""
    manifests = None
    if listed is not None:
        manifests = [top / of for of in listed if PurePosixPath(of).name == bench_targets.MANIFEST]
    crates = [crate for crate in bench_targets.crates(top, manifests) if crate.targets]
    places = (posixpath.relpath(crate.folder.relative_to(top), root) for crate in crates)
    where = few([*dict.fromkeys(places)])
    return f"; other crates of the repository have such benches: start in {where}" if where else ""


def beside_asv(top: Path, root: PurePosixPath, listed: Sequence[str] | None) -> Iterator[str]:
    """A note on each suite that a project has beside its asv.conf.json, which comes first."""
    for kind in OTHERS:
        for path in kind.there(top, root, listed):
            if taking(top, path) is kind:
                place = shlex.quote(posixpath.relpath(path, root))
                yield (
                    f"benchmarks by {kind.name} are in {place} too; rlox-opt init --suite {place} "
                    "takes them"
                )


def below(top: Path, root: PurePosixPath, listed: Sequence[str]) -> list[PurePosixPath]:
    """The folders of projects with suites among the files `listed`, where `root` is no project
    itself; no folder within another one."""
    manifests = {*asv_files.BUILT_BY, bench_targets.MANIFEST}
    folders = {path.parent for path in map(PurePosixPath, listed) if path.name in manifests}
    found: list[PurePosixPath] = []
    for folder in sorted(of for of in {root, *folders} if of.is_relative_to(root)):
        if any(folder.is_relative_to(of) for of in found):
            continue
        if package_name.is_project(top / folder) or package_name.is_crate(top / folder):
            if folder == root:
                return []
            inner = [of for of in listed if of.startswith(f"{folder}/")]
            found += [folder] if _has_any(top, folder, inner) else []
    return found


def _has_any(top: Path, root: PurePosixPath, listed: Sequence[str]) -> bool:
    try:
        chosen(top, root, listed=listed)
    except NoSuiteError:
        return False
    except UsageError:
        pass  # it has several, or a broken one
    return True
