"""The origins of a suite of benchmarks: a commit, the working tree, or a folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlox_opt.project import asv_files, bench_targets, checkouts, kinds
from rlox_opt.project.artefacts import forget_oldest
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.asv_files import NoSuiteError
from rlox_opt.project.commits import RELEASE, WORKING_TREE, Revision, as_usage_error
from rlox_opt.project.kinds import Kind
from rlox_opt.project.kinds.criterion import Criterion
from rlox_opt.project.project import Project
from rlox_opt.system import submodules
from rlox_opt.system.git import Checkout
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_KEPT = 8  # trees
_LACKING = ".not-checked-out"  # in a tree: a sentence on each submodule that could not be had


@dataclass(frozen=True)
class Suite:
    """A folder of benchmarks, or a file; its configuration; and for users, where it comes from."""

    folder: Path
    configuration: Configuration
    text: str

    @property
    def kind(self) -> Kind:
        """The kind of the suite."""
        return kinds.of(self.configuration)


@dataclass(frozen=True)
class Suites:
    """The suites that a project's sides may be measured by."""

    project: Project

    @property
    def folder(self) -> Path:
        """Where suites of commits are kept, each as a whole tree, since benchmarks read files that
        lie beside them."""
        return self.project.cache / "suites"

    def of(self, revision: Revision, given: str | None = None) -> Suite:
        """The suite of a revision, or the one that is `given`. That is a folder (the suite itself,
        or one with an asv.conf.json), a file of another kind of suite, or otherwise REV; "." is the
        working tree.

        Raises:
            UsageError: there is none, there are several, it has no benchmark, or what is given is
                neither a folder nor a commit.
        """
        if given == WORKING_TREE:
            return self.here()
        if given and Path(given).is_dir():
            return self._checked(self._of_folder(Path(given).resolve()))
        if given and Path(given).is_file():
            return self._checked(self._of_path(Path(given).resolve()))
        if given and given.startswith(RELEASE):
            raise UsageError(
                f"--suite {given}: a release has no suite; --suite HEAD gives it that of HEAD"
            )
        if given:
            try:
                revision = self.project.commits.resolve(given)
            except UsageError as error:
                raise UsageError(f"--suite {given}: is no folder here, and {error}") from None
        return self._prepared(self._checked(self._of_revision(revision)))

    def lend(self, revision: Revision, given: str | None = None) -> tuple[Project, Suite]:
        """The project, measured by the suite that `of` finds, and that suite."""
        suite = self.of(revision, given)
        return dataclasses.replace(self.project, lent=(suite.folder, suite.configuration)), suite

    def here(self) -> Suite:
        """The suite of the working tree. Raises UsageError as `of` does."""
        return self._checked(self._of_working_tree())

    def _of_revision(self, revision: Revision) -> Suite:
        project = self.project
        if revision.is_release:
            raise UsageError(
                f"{revision.text}: a release has no suite; --suite HEAD gives it that of HEAD"
            )
        if revision.text.partition("+")[0] == WORKING_TREE:
            return self._of_working_tree()
        if project.apart:
            return self._of_folder(project.apart)
        top, lacking = self._taken_out(revision)
        try:
            found = kinds.chosen(top, project.within, project.settings.suite_path)
            asv_files.check_built(top, found)
        except NoSuiteError:
            raise UsageError(
                f"{revision.title}: has no suite: no asv.conf.json is in it, no test takes the "
                f"fixture `benchmark`, and no crate has benches by criterion; {self._remedy()}"
            ) from None
        except UsageError as error:
            said = str(error).replace(f"{top}", f"{project.top}")
            raise UsageError(f"{revision.title}: {said}") from None
        if not (top / found.suite).exists():
            by = "" if found.suite == found.path else f", named by {found.path},"
            raise UsageError(
                f"{revision.title}: has no suite: {found.suite}{by} is not in it; {self._remedy()}"
            )
        told = (f"{revision.title}: not checked out for the suite: {of}" for of in lacking)
        found = dataclasses.replace(found, notes=(*found.notes, *told))
        return Suite(top / found.suite, found, revision.title)

    def _of_working_tree(self) -> Suite:
        if self.project.apart:
            return self._of_folder(self.project.apart)
        return Suite(self.project.suite, self.project.configuration, "the working tree")

    def _remedy(self) -> str:
        """What the user can do about a commit without a suite."""
        with contextlib.suppress(UsageError):
            if self.project.suite.exists():
                return f"--suite {WORKING_TREE} gives it that of the working tree"
        return "--suite REV gives it that of another commit, --suite FOLDER a folder's"

    def _of_folder(self, folder: Path) -> Suite:
        project = self.project
        folder = folder if folder.is_dir() else folder.parent  # a file in the folder is accepted
        top = asv_files.top_of(folder) or folder
        root = PurePosixPath(folder.relative_to(top))
        if kinds.taking(top, root):
            return self._of_path(folder)
        if asv_files.below(top, root):
            found = asv_files.chosen(top, root)
            ours = found if top == project.top else asv_files.tidy(found, project.within)
            return Suite(top / found.suite, ours, f"{folder}")
        try:
            own = project.configuration
        except NoSuiteError:
            path = PurePosixPath(folder.name)
            note = f"{folder}: no asv.conf.json says what it needs; --with NAME adds it"
            own = Configuration(path, path, project.within, notes=(note,))
        if folder.is_relative_to(project.top):
            own = dataclasses.replace(own, suite=PurePosixPath(folder.relative_to(project.top)))
        return Suite(folder, own, f"{folder}")

    def _of_path(self, path: Path) -> Suite:
        """A suite of another kind than asv's."""
        home = path if path.is_dir() else path.parent
        top = asv_files.top_of(home) or home
        within = PurePosixPath(path.relative_to(top))
        kind = kinds.taking(top, within)
        if kind is None:
            raise UsageError(f"--suite {path}: is no suite; name {kinds.names()}")
        own = top == self.project.top
        found = kind.suite(top, self.project.within if own else PurePosixPath(), within)
        ours = found if own else asv_files.tidy(found, self.project.within)
        return Suite(path, ours, f"{path}")

    def _checked(self, suite: Suite) -> Suite:
        folder = f"{suite.folder}"
        if suite.folder.is_relative_to(self.folder):  # a folder of the cache, which means nothing
            folder = f"{suite.text}: {suite.configuration.suite}"
        if not suite.folder.exists():
            raise UsageError(
                f"{folder}: is no folder, and {suite.configuration.path} names it as that of "
                "the benchmarks; correct `benchmark_dir` there, or name another by --suite"
            )
        if not suite.kind.any_benchmark(suite.folder):
            raise UsageError(
                f"{folder}: has no benchmark: {suite.kind.none}; name another folder by --suite"
            )
        return suite

    def _prepared(self, suite: Suite) -> Suite:
        """A commit's suite with the working tree's `before-build`, if the commit's Cargo.toml has
        none: most commits are older than that setting."""
        told = suite.configuration
        if told.kind != Criterion.name or told.build_command:
            return suite
        told = dataclasses.replace(
            told, build_command=bench_targets.before_build(self.project.root)
        )
        return dataclasses.replace(suite, configuration=told)

    def _taken_out(self, revision: Revision) -> tuple[Path, tuple[str, ...]]:
        """All files of a commit and of its submodules, in a folder of the cache; and a sentence on
        each submodule that cannot be had."""
        repository = self.project.commits.repository()
        with as_usage_error():
            tree = repository.run("rev-parse", "--verify", f"{revision.commit}^{{tree}}").strip()
        kept = self.folder / tree
        lacking: tuple[str, ...] = ()
        with checkouts.alone(self.folder) as lock, as_usage_error():
            if not kept.is_dir() or (kept / _LACKING).exists():
                with scratch(self.folder) as making:
                    made = Checkout(making / "tree", lock)
                    source = dataclasses.replace(repository, lock=lock)
                    fetched = checkouts.submodules_of(self.project.revisions)
                    lacking = submodules.made(made, source, revision.commit, fetched)
                    self._keep(made.folder, kept, lacking)
            os.utime(kept)  # used last
            forget_oldest(self.folder, ["?" * 40 + "*"], _KEPT)
        return kept, lacking

    def _keep(self, made: Path, kept: Path, lacking: Sequence[str]) -> None:
        """Keep a tree without its git folders, unless the kept one lacks just the same."""
        for git_dir in [*made.rglob(".git")]:
            shutil.rmtree(git_dir)
        told = "\n".join(lacking)
        if kept.is_dir() and (kept / _LACKING).read_text(encoding="utf-8") == told:
            return
        if lacking:
            (made / _LACKING).write_text(told, encoding="utf-8")
        if kept.is_dir():
            kept.rename(made.with_name("before"))
        made.rename(kept)


def uncovered(suite: Suite) -> list[str]:
    """What looks like a benchmark of a suite and is never collected, one sentence each."""
    return suite.kind.uncovered(suite.folder)
