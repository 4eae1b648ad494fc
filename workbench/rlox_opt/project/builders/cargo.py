"""An extension by cargo, which is kept apart from the package's Python files.

All are built in one checkout with one target folder, one after the other, so that a commit compiles
only what it changed; two checkouts must never share one, for cargo would hand out the other's
binary. An extension is asked what it is built from, and how, before it is used.
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

from rlox_opt.harness.arms import Side, Suite
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, worker
from rlox_opt.project.artefacts import Artefact, NotBuiltError, digest, digest_of, keep
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.system import git, schema
from rlox_opt.system.commands import Done, cargo, run
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch

_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
_RUST = ("Cargo.toml", "Cargo.lock", "crates", ".cargo", "rust-toolchain.toml")


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Benchmarks by criterion that stand beside asv's."""

    package: str
    """The cargo package that they are in."""

    bench: str
    """Their program."""

    names: dict[str, str]
    """asv's name of the benchmark of the same function, by a pattern of criterion's id."""


class Laboratory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An extension for development, which is not shipped: it gives Python the pairs of twins."""

    crate: str
    """The cargo package that it is. Commits whose `Cargo.lock` does not name it are without."""

    library: str
    """The module that it is in the package."""


class Cargo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="cargo"):
    """An extension by cargo, which is kept apart from the package's Python files: commits that
    change no Rust share it. Its features are those of `[tool.maturin]`."""

    crate: str = ""
    """The cargo package that the extension is."""

    manifest: str = "Cargo.toml"
    """The manifest whose features tell what a feature turns on."""

    told: str = ""
    """Of the features, those that its `build_info()` tells: a pattern (all)."""

    library: str = "_core"
    """The module that it is in the package."""

    twins: str = ""
    """The cargo package with the pairs of twins, and the program that counts what a call costs."""

    laboratory: Laboratory | None = None
    """The extension that has these pairs (the package's own)."""

    criterion: Criterion | None = None

    @property
    def libraries(self) -> tuple[str, str]:
        """The modules that it and its laboratory are; "" without one."""
        return self.library, self.laboratory.library if self.laboratory else ""


class _Said(msgspec.Struct):
    """What an extension says of itself."""

    commit: str = "unknown"
    profile: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class ByCargo:
    """The builds that are kept in `folder`: of `package`, whose benchmarks are in `suite`."""

    commits: Commits
    by: Cargo
    package: str
    suite: Path
    folder: Path

    def build(
        self, revision: Revision, checkout: Path, features: tuple[str, ...], twins: bool = False
    ) -> Artefact:
        """The package of the revision that is checked out, built now or kept; with `twins` its
        laboratory, too.

        Raises:
            NotBuiltError: it does not build, or says of itself that it is another.
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
        """A digest of what Rust is compiled from, and how."""
        parts = [self._sources(revision.commit), self._rustc(), *features]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def cargo(self, checkout: Path, features: Iterable[str], verb: str, *options: str) -> Done:
        """Run cargo in a checkout, in the one target folder. Raises UsageError without cargo."""
        command = [cargo(), verb, "--locked", *options, "--features", ",".join(features)]
        command += ["--target-dir", str(self.folder / "target")]
        return run(command, checkout, git.environment(trusted=checkout))

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
        """The laboratory in the package in `folder`, from there; None where the commit has none."""
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
        """The package of this commit with its extension, in `folder`: whole or not at all."""
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
        """As `_check`, of the laboratory's extension."""
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
        """What git calls the parts of a commit that the extension is made of."""
        # A build says what it likes of itself.
        listed = self.commits.tree(commit, *_RUST) if commit.isalnum() else None
        return listed if listed is not None else f"unknown commit {commit}"

    def _rustc(self) -> str:
        rustc = shutil.which("rustc")
        return run([rustc, "--version"], self.commits.root).output if rustc else ""


def own_features(checkout: Path) -> tuple[str, ...]:
    """The features that a checkout's own pyproject.toml turns on."""
    with contextlib.suppress(NotReadError, AttributeError, TypeError):
        table = schema.read(checkout / "pyproject.toml", dict[str, Any])
        return tuple(sorted(table.get("tool", {}).get("maturin", {}).get("features", ())))
    return ()


def is_as_written(file: Path) -> bool:
    """Whether a file is none yet or a regular one: of a link or a pipe nobody knows where it leads,
    or whether it ends."""
    return not file.is_symlink() and (file.is_file() or not file.exists())


def turned_on(manifest: Path, features: tuple[str, ...]) -> set[str]:
    """The crate's features that cargo turns on for these; "dep:a" and "a/b" are none."""
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
