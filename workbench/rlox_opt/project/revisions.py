"""Builds of commits, kept: the whole package `rlox` as a commit has it, with its extension.

All are built in one checkout with one target folder, one after the other, so that a commit compiles
only what it changed; two checkouts must never share one, for cargo would hand out the other's
binary. An extension is asked what it is built from, and how, before it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shutil
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.project import checkouts
from rlox_opt.system import git
from rlox_opt.system.commands import cargo, run
from rlox_opt.system.machine import ROOT
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

REVISIONS = ROOT / "target" / "revisions"
BENCHMARKS = ROOT / "asv_bench" / "benchmarks"
WORKING_TREE = "."
_KEPT = 48  # of 15 MB each
_LIBRARY = f"_core{importlib.machinery.EXTENSION_SUFFIXES[0]}"
_RUST = ("Cargo.toml", "Cargo.lock", "crates", ".cargo", "rust-toolchain.toml")
_FEATURE = re.compile(r"[a-z0-9-]+")
_END = "--end-of-options"  # what follows comes from files and people, and is none
_OPTIMISATION = re.compile(r"opt-p\d+")


class NotBuiltError(RuntimeError):
    """A revision that does not build, or whose build is not the one asked for."""


@dataclass(frozen=True)
class Revision:
    """A commit and the cargo features to build it with; None: those of its own pyproject.toml."""

    text: str
    commit: str
    features: tuple[str, ...] | None = None

    @property
    def title(self) -> str:
        """For people: as it was asked for, with its commit."""
        name, plus, listed = self.text.partition("+")
        short = self.commit[:10]
        return f"{short}{plus}{listed}" if name.startswith(short) else f"{self.text} ({short})"


@dataclass(frozen=True)
class Artefact:
    """A built package: `folder` holds `rlox`. `digests` are of the Python files and of the
    extension but for the name of its commit; `seconds` is what the build took now."""

    revision: Revision
    folder: Path
    features: tuple[str, ...]
    digests: dict[str, str]
    seconds: float

    @property
    def extension(self) -> Path:
        """The library in its package."""
        return self.folder / "rlox" / _LIBRARY


def resolve(text: str) -> Revision:
    """The revision that `text` names: REV, or REV+FEATURE,… (`main+opt-p5`, `HEAD+none`); the
    working tree is ".".

    Raises:
        UsageError: there is no such commit, or no such checkout.
    """
    name, plus, listed = text.partition("+")
    features: tuple[str, ...] | None = None
    if plus:
        features = () if listed == "none" else tuple(sorted(listed.split(",")))
        for feature in features:
            if not _FEATURE.fullmatch(feature):
                raise UsageError(f"{text!r}: {feature!r} is no cargo feature; write {name}+opt-p5")
    commit = (
        _snapshot()
        if name == WORKING_TREE
        else _git_maybe("rev-parse", "--verify", "--quiet", _END, f"{name}^{{commit}}")
    )
    if commit is None:
        shallow = _git_maybe("rev-parse", "--is-shallow-repository") == "true"
        remedy = "; the clone is shallow: `git fetch --unshallow`" if shallow else ""
        raise UsageError(f"{name!r}: is no commit of this repository{remedy}")
    return Revision(text, commit, features)


def between(good: Revision, bad: Revision) -> list[str]:
    """The commits after `good`, in order, to `bad`: along the first parents, where `good` is one.

    Raises:
        UsageError: `bad` does not descend from `good`.
    """
    if _git_maybe("merge-base", "--is-ancestor", good.commit, bad.commit) is None:
        raise UsageError(
            f"{bad.title} does not descend from {good.title}; name a GOOD that came first"
        )
    span = f"{good.commit}..{bad.commit}"
    commits = _git("rev-list", "--reverse", "--first-parent", "--ancestry-path", span).split()
    if not commits:
        raise UsageError(f"{good.title} and {bad.title} are one commit")
    return commits


def line(tip: str = "HEAD", *paths: str) -> list[str]:
    """A commit and its first parents, the oldest first, or those that changed one of the paths;
    none outside a checkout."""
    try:
        return _git("rev-list", "--first-parent", "--reverse", _END, tip, "--", *paths).split()
    except UsageError:
        return []


def described(commit: str) -> str:
    """A commit in a line: its hash, date and subject, without what would steer a terminal."""
    said = _git("show", "--no-patch", "--format=%h %as %s", _END, commit)
    return "".join(of if of.isprintable() else "\N{REPLACEMENT CHARACTER}" for of in said)


def span(text: str) -> list[Revision]:
    """The revisions that `text` names: REV, or FROM..TO along the first parents, oldest first; each
    with features as `resolve` takes them.

    Raises:
        UsageError: there is no such commit, or nothing lies between the two.
    """
    name, plus, listed = text.partition("+")
    first, dots, last = name.partition("..")
    if not dots:
        return [resolve(text)]
    ends = [resolve(f"{end or 'HEAD'}{plus}{listed}") for end in (first, last)]
    return [
        dataclasses.replace(ends[1], text=f"{commit}{plus}{listed}", commit=commit)
        for commit in between(*ends)
    ]


def about(commit: str) -> tuple[str | None, datetime.datetime, str]:
    """A commit's first parent, its time and its subject."""
    first, _, subject = _git("show", "--no-patch", "--format=%cI %P%n%s", _END, commit).partition(
        "\n"
    )
    when, *parents = first.split()
    return next(iter(parents), None), datetime.datetime.fromisoformat(when), subject


def ancestors(commit: str, most: int) -> list[str]:
    """Those before it along the first parents, the nearest first."""
    return _git("rev-list", "--first-parent", f"--max-count={most + 1}", _END, commit).split()[1:]


def text(commit: str, path: str) -> str:
    """A file as it is in a commit; "" where it is not."""
    return _git_maybe("show", _END, f"{commit}:{path}") or ""


def _repository() -> git.Repository:
    """With a folder for commits of the working tree."""
    return dataclasses.replace(git.of(ROOT), beside=REVISIONS / "objects")


def _snapshot() -> str:
    """The working tree as a commit."""
    with as_usage_error():
        repository = _repository()
        with checkouts.alone(REVISIONS) as lock:
            held = dataclasses.replace(repository, lock=lock)
            return held.commit(
                "HEAD", "working tree", "rlox-opt", lambda to: to.run("add", "--all"), REVISIONS
            )


def dirty() -> bool:
    """Whether the working tree differs from HEAD."""
    return bool(_git("status", "--porcelain"))


def build(revision: Revision) -> Artefact:
    """Build a revision, or take the build that is there. An extension is shared by commits whose
    Rust sources are the same.

    Raises:
        NotBuiltError: it does not build (the message ends with what the compiler said; all of it
            is kept beside the builds), or says of itself that it is another.
        UsageError: there is no cargo, or nothing that reads the benchmarks.
    """
    if importlib.util.find_spec("asv_runner") is None:
        raise UsageError(
            "asv_runner, which reads the benchmarks, is not installed: pip install asv"
        )
    with checked_out(revision) as (checkout, features, asked):
        extension = REVISIONS / f"extension-{asked}.so"
        folder = REVISIONS / f"{revision.commit[:12]}-{asked}"
        start = time.monotonic()
        if not (_is_as_written(extension) and _is_as_written(folder / "rlox" / _LIBRARY)):
            extension.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        if not extension.exists():
            _compile(revision, features, checkout, extension)
        if not folder.exists():
            _assemble(revision, checkout, extension, folder)
        try:
            built_at = _check(folder, revision, _optimisations(checkout, features))
        except NotBuiltError:
            extension.unlink()
            shutil.rmtree(folder)
            raise
        for path in (extension, folder):
            os.utime(path)  # used last
        _forget_oldest()
        built = Artefact(revision, folder, features, {}, time.monotonic() - start)
        built.digests["extension"] = _digest(built.extension.read_bytes(), built_at)
        built.digests["python"] = _digest_of_python(folder / "rlox")
        return built


def _is_as_written(file: Path) -> bool:
    """Whether a file is none yet or a regular one: of a link or a pipe nobody knows where it leads,
    or whether it ends."""
    return not file.is_symlink() and (file.is_file() or not file.exists())


@contextlib.contextmanager
def checked_out(revision: Revision) -> Iterator[tuple[Path, tuple[str, ...], str]]:
    """The one checkout at a revision, for this process alone: its folder, the features to build
    with, and a digest of what Rust is compiled from."""
    with as_usage_error():
        source = _repository()
    with checkouts.alone(REVISIONS) as lock:
        with as_usage_error():
            checkout = checkouts.moved(REVISIONS, lock, source, revision.commit)
        features = revision.features
        if features is None:
            features = _own_features(checkout)
        parts = [_rust_sources(revision.commit), _rustc(), *features]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
        yield checkout, features, digest


def _compile(
    revision: Revision, features: tuple[str, ...], checkout: Path, extension: Path
) -> None:
    target = REVISIONS / "target"
    done = run(
        [
            *(cargo(), "build", "--locked", "--package", "rlox-python", "--release"),
            *("--features", ",".join(features), "--target-dir", str(target)),
        ],
        checkout,
        git.environment(trusted=checkout),
    )
    log = extension.with_suffix(".log")
    log.write_text(done.output, encoding="utf-8")
    if done.status:
        raise NotBuiltError(f"{revision.title} does not build ({log}):\n{done.tail}")
    part = extension.with_suffix(".part")
    shutil.copy2(target / "release" / "lib_core.so", part)
    part.rename(extension)


def _assemble(revision: Revision, checkout: Path, extension: Path, folder: Path) -> None:
    """The package of this commit with its extension, in `folder`: whole or not at all."""
    with scratch(REVISIONS) as built:
        package = built / "rlox"
        try:
            shutil.copytree(checkout / "rlox", package)
        except FileNotFoundError:
            raise NotBuiltError(f"{revision.title} has no folder rlox/") from None
        shutil.copy2(extension, package / _LIBRARY)
        built.rename(folder)


def _check(folder: Path, revision: Revision, expected: set[str]) -> str:
    """The commit at which the extension was built. Raises NotBuiltError unless its Rust sources,
    optimisations and profile are those asked for."""
    packages = Packages("rlox", {"base": folder}, BENCHMARKS, 120.0)
    try:
        found = packages.builds()["base"]
    except ContestError as error:
        raise NotBuiltError(f"{revision.title} cannot be imported: {error}") from None
    commit: str = found.get("commit", "unknown")
    wrong = [
        f"{what} {found.get(what)}"
        for what, right in (
            ("commit", _rust_sources(commit) == _rust_sources(revision.commit)),
            ("profile", found.get("profile") == "release"),
            ("features", expected == {*found.get("features", ())}),
        )
        if not right
    ]
    if wrong:
        raise NotBuiltError(
            f"{revision.title}: the extension says {', '.join(wrong)}, which is not what was asked "
            f"for; it is not timed, and not kept"
        )
    return commit


def _rust_sources(commit: str) -> str:
    """What git calls the parts of a commit that the extension is made of."""
    listed = _git_maybe("ls-tree", _END, commit, "--", *_RUST)
    return listed if listed is not None else f"unknown commit {commit}"


def _rustc() -> str:
    found = shutil.which("rustc")
    return run([found, "--version"], ROOT).output if found else ""


def same_parts(one: Artefact, other: Artefact) -> list[str]:
    """What of two packages is byte for byte the same: "extension", "python". The name of its
    commit, which every extension holds, does not count."""
    return [part for part in one.digests if one.digests[part] == other.digests[part]]


def _own_features(checkout: Path) -> tuple[str, ...]:
    try:
        table = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return ()
    return tuple(sorted(table.get("tool", {}).get("maturin", {}).get("features", ())))


def _optimisations(checkout: Path, features: tuple[str, ...]) -> set[str]:
    """Those that cargo turns on for these features, in this checkout."""
    manifest = checkout / "crates" / "rlox-core" / "Cargo.toml"
    try:
        table = tomllib.loads(manifest.read_text(encoding="utf-8")).get("features", {})
    except (OSError, tomllib.TOMLDecodeError):
        table = {}
    on, left = set[str](), [*features]
    while left:
        feature = left.pop()
        if feature not in on:
            on.add(feature)
            left += table.get(feature, ())
    return {feature for feature in on if _OPTIMISATION.fullmatch(feature)}


def _forget_oldest() -> None:
    for pattern in ("extension-*.so", "????????????-*"):
        kept = sorted(REVISIONS.glob(pattern), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_KEPT]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
                path.with_suffix(".log").unlink(missing_ok=True)


def _digest_of_python(package: Path) -> str:
    files = sorted(path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    return _digest(b"".join(f"{p.relative_to(package)}\0".encode() + p.read_bytes() for p in files))


def _digest(content: bytes, without: str = "") -> str:
    return hashlib.sha256(
        content.replace(without.encode(), b"") if without else content
    ).hexdigest()


@contextlib.contextmanager
def as_usage_error() -> Iterator[None]:
    """What is wrong with git or with the repository, for who asked."""
    try:
        yield
    except git.GitError as error:
        raise UsageError(f"{error}") from None


def _git(*arguments: str) -> str:
    with as_usage_error():
        return _repository().run(*arguments).strip()


def _git_maybe(*arguments: str) -> str | None:
    with as_usage_error():
        said = _repository().maybe(*arguments)
    return said if said is None else said.strip()
