"""Builds of commits, kept: the whole package as a commit has it, with its extension.

All are built in one checkout with one target folder, one after the other, so that a commit compiles
only what it changed; two checkouts must never share one, for cargo would hand out the other's
binary. An extension is asked what it is built from, and how, before it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from rlox_opt.harness.arms import Side, Suite
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.project import checkouts
from rlox_opt.project.commits import Commits, Revision, as_usage_error
from rlox_opt.system import git, schema
from rlox_opt.system.commands import Done, cargo, run
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_KEPT = 48  # of 15 MB each
_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
_RUST = ("Cargo.toml", "Cargo.lock", "crates", ".cargo", "rust-toolchain.toml")
_OUT = "{out}"


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Benchmarks by criterion that stand beside asv's."""

    package: str
    """The cargo package that they are in."""

    bench: str
    """Their program."""

    names: dict[str, str]
    """asv's name of the benchmark of the same function, by a pattern of criterion's id."""


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

    criterion: Criterion | None = None


class Command(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="command"
):
    """A command in a checkout, which puts the package into the folder {out}."""

    command: tuple[str, ...]


class _Said(msgspec.Struct):
    """What an extension says of itself."""

    commit: str = "unknown"
    profile: str = ""
    features: tuple[str, ...] = ()


class NotBuiltError(RuntimeError):
    """A revision that does not build, or whose build is not the one asked for."""


@dataclass(frozen=True)
class Artefact:
    """A built package: `folder` holds it. `digests` are of its parts, but for the name of the
    commit in an extension; `seconds` is what the build took now."""

    revision: Revision
    folder: Path
    features: tuple[str, ...]
    digests: dict[str, str]
    seconds: float
    library: str = ""
    """The extension, from `folder`."""

    packages: tuple[str, ...] = ()
    """What it holds for others to import."""

    python: Path = Path(sys.executable)
    """The interpreter to run it with."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to run it with."""

    @property
    def extension(self) -> Path:
        """The extension's file."""
        return self.folder / self.library


def same_parts(one: Artefact, other: Artefact) -> list[str]:
    """What of two packages is byte for byte the same: "extension", "python". The name of its
    commit, which every extension holds, does not count."""
    return [part for part in one.digests if one.digests[part] == other.digests[part]]


@dataclass(frozen=True)
class Builds:
    """Those of a checkout's commits: of `package`, whose benchmarks are in `suite`."""

    commits: Commits
    by: Cargo | Command
    package: str
    suite: Path

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self.commits.beside

    def build(self, revision: Revision) -> Artefact:
        """Build a revision, or take the build that is there.

        Raises:
            NotBuiltError: it does not build (the message ends with what the compiler said; all of
                it is kept beside the builds), or says of itself that it is another.
            UsageError: there is no cargo.
        """
        if isinstance(self.by, Command):
            return self._by_command(revision, self.by)
        return self._by_cargo(revision, self.by)

    def _by_command(self, revision: Revision, by: Command) -> Artefact:
        if revision.features:
            raise UsageError(f"{revision.text!r}: features are cargo's; this project is built by "
                f"{by.command[0]!r}")  # fmt: skip
        asked = hashlib.sha256("\0".join(by.command).encode()).hexdigest()[:12]
        folder = self.folder / f"{revision.commit[:12]}-{asked}"
        start = time.monotonic()
        with self.checked_out(revision) as (checkout, _):
            if not folder.exists():
                self._run(revision, by, checkout, folder)
            os.utime(folder)  # used last
            self._forget_oldest()
        digests = {"package": _digest_of(folder, "*")}
        seconds = time.monotonic() - start
        return Artefact(revision, folder, (), digests, seconds, packages=(self.package,))

    def _run(self, revision: Revision, by: Command, checkout: Path, folder: Path) -> None:
        """The package that the command makes, in `folder`: whole or not at all."""
        with scratch(self.folder) as built:
            command = [word.replace(_OUT, str(built)) for word in by.command]
            done = run(command, checkout, git.environment(trusted=checkout))
            if done.status:
                raise NotBuiltError(f"{revision.title} does not build:\n{done.tail}")
            if not any((built / name).exists() for name in (self.package, f"{self.package}.py")):
                raise NotBuiltError(
                    f"{revision.title}: {by.command[0]!r} left no {self.package} in {_OUT}"
                )
            built.rename(folder)

    def _by_cargo(self, revision: Revision, by: Cargo) -> Artefact:
        library = f"{self.package}/{by.library}{_SUFFIX}"
        with self.checked_out(revision) as (checkout, features):
            asked = self.asked(revision, features)
            extension = self.folder / f"extension-{asked}.so"
            folder = self.folder / f"{revision.commit[:12]}-{asked}"
            start = time.monotonic()
            if not (_is_as_written(extension) and _is_as_written(folder / library)):
                extension.unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
            if not extension.exists():
                self._compile(revision, features, checkout, extension, by)
            if not folder.exists():
                self._assemble(revision, checkout, extension, folder, library)
            try:
                on = _turned_on(checkout / by.manifest, features)
                expected = {of for of in on if re.fullmatch(by.told or ".*", of)}
                built_at = self._check(folder, revision, expected)
            except NotBuiltError:
                extension.unlink()
                shutil.rmtree(folder)
                raise
            for path in (extension, folder):
                os.utime(path)  # used last
            self._forget_oldest()
            seconds = time.monotonic() - start
            built = Artefact(
                revision, folder, features, {}, seconds, library, packages=(self.package,)
            )
            built.digests["extension"] = _digest(built.extension.read_bytes(), built_at)
            built.digests["python"] = _digest_of(folder / self.package, "*.py", "*.pyi")
            return built

    @contextlib.contextmanager
    def checked_out(self, revision: Revision) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """The one checkout at a revision, for this process alone: its folder, and the features to
        build with."""
        source = self.commits.repository()
        with checkouts.alone(self.folder) as lock:
            with as_usage_error():
                checkout = checkouts.moved(self.folder, lock, source, revision.commit)
            features = revision.features
            yield checkout, _own_features(checkout) if features is None else features

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
        by: Cargo,
    ) -> None:
        done = self.cargo(checkout, features, "build", "--package", by.crate, "--release")
        log = extension.with_suffix(".log")
        log.write_text(done.output, encoding="utf-8")
        if done.status:
            raise NotBuiltError(f"{revision.title} does not build ({log}):\n{done.tail}")
        keep(self.folder / "target" / "release" / f"lib{by.library}.so", extension)

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

    def _forget_oldest(self) -> None:
        for pattern in ("extension-*.so", "????????????-*"):
            kept = sorted(self.folder.glob(pattern), key=lambda path: path.stat().st_mtime)
            for path in kept[:-_KEPT]:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                    path.with_suffix(".log").unlink(missing_ok=True)


def keep(built: Path, path: Path) -> None:
    """Copy what was built, whole or not at all."""
    part = path.with_suffix(".part")
    shutil.copy2(built, part)
    part.rename(path)


def _is_as_written(file: Path) -> bool:
    """Whether a file is none yet or a regular one: of a link or a pipe nobody knows where it leads,
    or whether it ends."""
    return not file.is_symlink() and (file.is_file() or not file.exists())


def _own_features(checkout: Path) -> tuple[str, ...]:
    with contextlib.suppress(NotReadError, AttributeError, TypeError):
        table = schema.read(checkout / "pyproject.toml", dict[str, Any])
        return tuple(sorted(table.get("tool", {}).get("maturin", {}).get("features", ())))
    return ()


def _turned_on(manifest: Path, features: tuple[str, ...]) -> set[str]:
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


def _digest_of(folder: Path, *patterns: str) -> str:
    """But for compiled Python, which holds the time of its source."""
    paths = sorted(path for of in patterns for path in folder.rglob(of))
    files = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    return _digest(b"".join(f"{p.relative_to(folder)}\0".encode() + p.read_bytes() for p in files))


def _digest(content: bytes, without: str = "") -> str:
    return hashlib.sha256(
        content.replace(without.encode(), b"") if without else content
    ).hexdigest()
