"""An extension by cargo, which is kept apart from the package's Python files.

All extensions are built in one checkout with one target folder, one after the other, so that a
commit compiles only what it changed. Two checkouts must never share a target folder: cargo would
hand out the other's binary. Before an extension is used, it is asked which sources and options it
was built from.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, worker
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.project.artefacts import Artefact, NotBuiltError, digest, digest_of, keep
from rlox_opt.project.builders.wheels import outside
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.project.interpreters import running
from rlox_opt.system import git, schema
from rlox_opt.system.commands import Done, cargo, run
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch

_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
RUST = (
    "Cargo.toml", "Cargo.lock", "src", "build.rs", "crates", "vendor", ".cargo", "rust-toolchain",
    "rust-toolchain.toml",
)  # fmt: skip


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The project's criterion benchmarks of functions that asv's benchmarks time as well."""

    package: str
    """The cargo package that contains them."""

    bench: str
    """Their program."""

    names: dict[str, str]
    """By a pattern of criterion's id, asv's name of the benchmark of the same function."""


class Laboratory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An extension for development, which is not shipped. It gives Python the pairs of twins."""

    crate: str
    """Its cargo package. Commits whose `Cargo.lock` does not name this package have no
    laboratory."""

    library: str
    """Its module in the package."""


class Cargo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="cargo"):
    """An extension by cargo, which is kept apart from the package's Python files, so that commits
    that change no Rust share it. Its features are those of `[tool.maturin]`."""

    crate: str = ""
    """The extension's cargo package."""

    manifest: str = "Cargo.toml"
    """The manifest that says which other features a feature turns on."""

    told: str = ""
    """A pattern of the features that its `build_info()` lists (all)."""

    library: str = "_core"
    """Its module in the package."""

    twins: str = ""
    """The cargo package with the pairs of twins, and with the program that counts what a call
    costs."""

    laboratory: Laboratory | None = None
    """The extension that contains these pairs (the package's own)."""

    criterion: Criterion | None = None

    @property
    def libraries(self) -> tuple[str, str]:
        """The modules of the extension and of its laboratory; "" without a laboratory."""
        return self.library, self.laboratory.library if self.laboratory else ""


class _Said(msgspec.Struct):
    """What an extension says of itself."""

    commit: str = "unknown"
    profile: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class ByCargo:
    """The builds that are kept in `folder`. `package` is what is built, `suite` has its
    benchmarks."""

    commits: Commits
    by: Cargo
    package: str
    suite: Path
    folder: Path

    def build(
        self, revision: Revision, checkout: Path, features: tuple[str, ...], twins: bool = False
    ) -> Artefact:
        """The package of the revision that is checked out, built now or kept; with `twins`, its
        laboratory as well.

        Raises:
            NotBuiltError: it does not build, or says that it is another build.
            UsageError: there is no cargo.
        """
        library = f"{self.package}/{self.by.library}{_SUFFIX}"
        asked = self.asked(revision, features)
        extension = self.folder / f"extension-{asked}.so"
        folder = self.folder / f"{revision.commit[:12]}-{asked}"
        start = time.monotonic()
        if not (is_as_written(extension) and is_as_written(folder / library)):
            extension.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        if not extension.exists():
            self._compile(revision, features, checkout, extension)
        if not folder.exists():
            self._assemble(revision, checkout, extension, folder, library)
        pairs = None
        try:
            if twins:
                pairs = self._laboratory(revision, features, checkout, folder, asked)
            on = turned_on(checkout / self.by.manifest, features)
            expected = {of for of in on if re.fullmatch(self.by.told or ".*", of)}
            built_at = self._check(folder, revision, expected)
            if pairs:
                self._check_pairs(folder / pairs, revision, expected)
        except NotBuiltError:
            for of in self.folder.glob(f"extension-{asked}*.so"):
                of.unlink()
            shutil.rmtree(folder)
            raise
        for path in (extension, folder):
            os.utime(path)  # used last
        seconds = time.monotonic() - start
        built = Artefact(revision, folder, features, {}, seconds, library, twins=pairs or library)
        built.digests["extension"] = digest(built.extension.read_bytes(), built_at)
        built.digests["python"] = digest_of(folder / self.package, "*.py", "*.pyi")
        return built

    def asked(self, revision: Revision, features: tuple[str, ...]) -> str:
        """A digest of the Rust sources and of all else that decides about the build."""
        parts = [self._sources(revision.commit), *outside(self.commits.root), running().title]
        parts += features
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def cargo(self, checkout: Path, features: Iterable[str], verb: str, *options: str) -> Done:
        """Run cargo in a checkout, in the one target folder. Raises UsageError without cargo."""
        command = [cargo(), verb, "--locked", *options, "--features", ",".join(features)]
        command += ["--target-dir", str(self.folder / "target")]
        return run(command, checkout, git.trusting(checkout))

    def _compile(
        self,
        revision: Revision,
        features: tuple[str, ...],
        checkout: Path,
        extension: Path,
        laboratory: Laboratory | None = None,
    ) -> None:
        of = laboratory or self.by
        done = self.cargo(checkout, features, "build", "--package", of.crate, "--release")
        log = extension.with_suffix(".log")
        log.write_text(done.output, encoding="utf-8")
        if done.status:
            raise NotBuiltError(f"{revision.title} does not build ({log}):\n{done.tail}")
        keep(self.folder / "target" / "release" / f"lib{of.library}.so", extension)

    def _laboratory(
        self,
        revision: Revision,
        features: tuple[str, ...],
        checkout: Path,
        folder: Path,
        asked: str,
    ) -> str | None:
        """The path of the laboratory in the package in `folder`; None if the commit has none."""
        of = self.by.laboratory
        if of is None or f'name = "{of.crate}"' not in (checkout / "Cargo.lock").read_text("utf-8"):
            return None
        library = f"{self.package}/{of.library}{_SUFFIX}"
        kept = self.folder / f"extension-{asked}-{of.library}.so"
        if not is_as_written(kept):
            kept.unlink()
        if not kept.exists():
            self._compile(revision, features, checkout, kept, of)
        if not is_as_written(folder / library) or not (folder / library).exists():
            (folder / library).unlink(missing_ok=True)
            keep(kept, folder / library)
        os.utime(kept)  # used last
        return library

    def _assemble(
        self, revision: Revision, checkout: Path, extension: Path, folder: Path, library: str
    ) -> None:
        """Put this commit's package with its extension into `folder`: completely or not at all."""
        with scratch(self.folder) as built:
            try:
                shutil.copytree(checkout / self.package, built / self.package)
            except FileNotFoundError:
                raise NotBuiltError(f"{revision.title} has no folder {self.package}/") from None
            shutil.copy2(extension, built / library)
            built.rename(folder)

    def _check(self, folder: Path, revision: Revision, expected: set[str]) -> str:
        """The commit at which the extension was built. Raises NotBuiltError unless its Rust
        sources, optimisations and profile are those asked for."""
        side = Side(folder, (self.package,))
        packages = Packages({"base": side}, Suite(self.suite), 120.0)
        try:
            info = packages.builds()["base"]
        except ContestError as error:
            last = str(error).splitlines()[-1]
            raise NotBuiltError(
                f"{revision.title} cannot be imported: {last}; `PYTHONPATH={folder} "
                f"{sys.executable} -c 'import {self.package}'` shows where"
            ) from None
        return self._is_asked_for(info, revision, expected)

    def _check_pairs(self, pairs: Path, revision: Revision, expected: set[str]) -> None:
        """Check the laboratory's extension as `_check` does."""
        try:
            with worker(pairs, random.Random()) as ask:
                info = ask("build")
        except ContestError as error:
            last = str(error).splitlines()[-1]
            title = f"the laboratory of {revision.title}"
            raise NotBuiltError(f"{title} cannot be loaded: {last}") from None
        self._is_asked_for(info, revision, expected)

    def _is_asked_for(self, info: Any, revision: Revision, expected: set[str]) -> str:
        """The commit that an extension says it was built at. Raises NotBuiltError as `_check`."""
        try:
            said = msgspec.convert(info, _Said)
        except msgspec.ValidationError as error:
            raise NotBuiltError(f"{revision.title}: its build_info() is none: {error}") from None
        right = {
            "commit": self._sources(said.commit) == self._sources(revision.commit),
            "profile": said.profile == "release",
            "features": expected == {*said.features},
        }
        wrong = [f"{what} {info.get(what)}" for what, is_right in right.items() if not is_right]
        if wrong:
            raise NotBuiltError(
                f"{revision.title}: the extension says {', '.join(wrong)}, which is not what was "
                f"asked for; it is not timed, and not kept"
            )
        return said.commit

    def _sources(self, commit: str) -> str:
        """Git's ids of the parts of a commit that the extension is made of."""
        # A build may give any text as its commit.
        crates = self.commits.folders_of("Cargo.toml", commit) if commit.isalnum() else None
        if crates is None:
            return f"unknown commit {commit}"
        return self.commits.tree(commit, *dict.fromkeys([*RUST, *crates])) or ""


def own_features(checkout: Path) -> tuple[str, ...]:
    """The features that a checkout's own pyproject.toml turns on."""
    with contextlib.suppress(NotReadError, AttributeError, TypeError):
        table = schema.read(checkout / "pyproject.toml", dict[str, Any])
        return tuple(sorted(table.get("tool", {}).get("maturin", {}).get("features", ())))
    return ()


def is_as_written(file: Path) -> bool:
    """Whether a file does not exist or is a regular one. A link may lead anywhere, and reading a
    pipe may never end."""
    return not file.is_symlink() and (file.is_file() or not file.exists())


def turned_on(manifest: Path, features: tuple[str, ...]) -> set[str]:
    """The crate's features that cargo turns on for these; "dep:a" and "a/b" are not features."""
    table: dict[str, Any] = {}
    with contextlib.suppress(NotReadError):
        table = schema.read(manifest, dict[str, Any]).get("features", {})
    on, left = set[str](), [*features]
    while left:
        feature = left.pop()
        if feature not in on:
            on.add(feature)
            left += table.get(feature, ())
    return {feature for feature in on if not re.search("[:/]", feature)}
