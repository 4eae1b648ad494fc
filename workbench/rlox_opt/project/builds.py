"""Builds of commits and of releases. They are kept by a digest of what they are made from.

All are built in one checkout, one after the other. The project's settings say how; without them,
asv.conf.json does; without its commands, they are built by PEP 517 (see `own_environment`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlox_opt.project import allocators, checkouts, interpreters
from rlox_opt.project.artefacts import (
    Artefact,
    NotBuiltError,
    digest_of,
    forget_oldest,
    keep,
    same_parts,
    told_of_lacking,
)
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builders import command, criterion
from rlox_opt.project.builders.cargo import ByCargo, Cargo, Criterion, own_features
from rlox_opt.project.builders.command import Command
from rlox_opt.project.builders.criterion import ByCriterion
from rlox_opt.project.commits import Commits, Revision, as_usage_error
from rlox_opt.project.own_environment import OwnEnvironment
from rlox_opt.system import elf
from rlox_opt.system.commands import Done
from rlox_opt.system.files import read_text
from rlox_opt.system.usage import UsageError

__all__ = [
    "Artefact",
    "Builds",
    "Cargo",
    "Command",
    "Criterion",
    "NotBuiltError",
    "keep",
    "same_parts",
]

# What cargo and rustup look for, in the folder they run in and in all above it.
_FROM_ABOVE = (
    (".cargo/config.toml", ".cargo/config"),
    ("rust-toolchain.toml", "rust-toolchain"),
)
_NOTHING = Configuration(
    PurePosixPath("asv.conf.json"), PurePosixPath("benchmarks"), PurePosixPath()
)


@dataclass(frozen=True)
class Builds:
    """The builds of a checkout's commits. `package` is what is built, `suite` has its benchmarks.
    They are built `by` what the settings say; otherwise by the commands of the suite's
    `configuration` if it has some; otherwise by PEP 517."""

    commits: Commits
    by: Cargo | Command | None
    package: str
    suite: Path
    configuration: Configuration = _NOTHING
    twins: bool = False
    """Whether an extension that exists for twins alone is built as well."""

    beginning: str = ""
    """How the names of the benchmarks that are asked for begin. Only a suite whose benchmarks are
    compiled heeds it."""

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self.commits.beside

    @property
    def _apart(self) -> OwnEnvironment:
        return OwnEnvironment(
            self.commits, self.package, self.suite, self.configuration, self.folder
        )

    def check(self, revision: Revision) -> None:
        """Check that a revision can be built as asked for, as far as that shows without building.

        Raises:
            NotBuiltError: it is no package.
            UsageError: the builder cannot do what is asked for beyond the commit, or there is no
                such interpreter.
        """
        if revision.python:
            interpreters.named(revision.python)
        if self._of_criterion:
            criterion.check(revision)
        elif self.by is None:
            self._apart.check(revision)
        elif revision.needs_environment:
            raise UsageError(
                f"{revision.text!r}: releases, --python and --with are for sides that are built as "
                f"PEP 517 says, in an environment; leave out [tool.rlox-opt.build] for that"
            )

    def build(self, revision: Revision, like: Artefact | None = None) -> Artefact:
        """Build a revision, or take the build that is kept. If an environment is made for it, the
        environment has the versions of the other side, `like`, unless the revision asks for others.

        Raises:
            NotBuiltError: it does not build (the message ends with the compiler's output, which is
                kept in full beside the builds), it says that it is another build, or its
                requirements cannot be installed.
            UsageError: there is no cargo, no uv, or no such interpreter; or it has no features and
                features are asked for.
        """
        self.check(revision)
        built = allocators.told(self._built(revision, like), self.commits)
        return dataclasses.replace(built, notes=(*built.notes, *self._from_above(revision)))

    def _from_above(self, revision: Revision) -> Iterator[str]:
        """A note on each file of the working tree that cargo or rustup heeds at a commit without
        it, since they look for it in all folders above the checkout."""
        root = Path(os.path.realpath(self.commits.root))
        above = Path(os.path.realpath(checkouts.of(self.folder))).parents
        for folder in () if revision.is_release else above:
            for names in _FROM_ABOVE if folder.is_relative_to(root) else ():
                paths = [str((folder / name).relative_to(root)) for name in names]
                there = [path for path in paths if (root / path).is_file()]
                theirs = [self.commits.text(revision.commit, path) for path in paths if there]
                ours = [read_text(root / path, errors="replace") for path in there]
                # cargo takes all such files together, rustup the nearest alone.
                merged = names[0].startswith(".cargo")
                if there and ("".join(theirs) != "".join(ours) if merged else not any(theirs)):
                    lacks = "has another" if any(theirs) else "has none"
                    yield (
                        f"{', '.join(there)} of the working tree counts for {revision.title}, "
                        f'which {lacks}; cache = "FOLDER" under [tool.rlox-opt] of pyproject.toml, '
                        "outside the repository, builds commits without it"
                    )

    @property
    def _of_criterion(self) -> bool:
        """Whether the programs of criterion benches are built."""
        return self.configuration.kind == "criterion"

    def _built(self, revision: Revision, like: Artefact | None) -> Artefact:
        if self._of_criterion:
            asked = self.suite, self.configuration, self.folder, self.beginning
            return ByCriterion(self.commits, *asked).build(revision, like)
        if self.by is None:
            return self._apart.build(revision, like)
        start = time.monotonic()
        with self.checked_out(revision) as (checkout, features):
            if isinstance(self.by, Cargo):
                built = self._cargo(self.by).build(revision, checkout, features, self.twins)
            else:
                folder = command.build(self.by, self.package, revision, checkout, self.folder)
                os.utime(folder)  # used last
                built = Artefact(revision, folder, (), {"package": digest_of(folder, "*")}, 0.0)
            forget_oldest(self.folder)
        made = {
            "builder": self.by.__class__.__name__.lower(),
            "interpreter": interpreters.running().title,
        }
        found = elf.told(path for path in built.folder.rglob("*.so*"))
        return dataclasses.replace(
            built,
            seconds=time.monotonic() - start,
            packages=(self.package,),
            env=self.configuration.run_env,
            made=made,
            found=found,
        )

    @contextlib.contextmanager
    def checked_out(self, revision: Revision) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """The one checkout at a revision, for this process alone: its folder, and the features to
        build with. If a build in the block fails, its error says what the checkout lacks."""
        source = self.commits.repository()
        with checkouts.alone(self.folder) as lock:
            with as_usage_error():
                checkout, lacking = checkouts.moved(self.folder, lock, source, revision.commit)
            features = revision.features
            with told_of_lacking(lacking):
                yield checkout, own_features(checkout) if features is None else features

    def asked(self, revision: Revision, features: tuple[str, ...]) -> str:
        """A digest of the Rust sources and build options. Raises UsageError without cargo."""
        return self._cargo(self.by).asked(revision, features)

    def cargo(self, checkout: Path, features: Iterable[str], verb: str, *options: str) -> Done:
        """Run cargo in a checkout, in the one target folder. Raises UsageError without cargo."""
        return self._cargo(self.by).cargo(checkout, features, verb, *options)

    def _cargo(self, by: Cargo | Command | None) -> ByCargo:
        if not isinstance(by, Cargo):
            raise UsageError('this project is not built by cargo alone: write build.by = "cargo"')
        return ByCargo(self.commits, by, self.package, self.suite, self.folder)
