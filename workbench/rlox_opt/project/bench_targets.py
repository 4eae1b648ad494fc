"""The criterion benchmarks of a checkout, read from its Cargo.toml files and sources without
compiling.

What cargo takes for a bench: https://doc.rust-lang.org/cargo/reference/cargo-targets.html#benchmarks
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlox_opt.project.artefacts import digest_of_files
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, readable_text
from rlox_opt.system.usage import UsageError

MANIFEST = "Cargo.toml"
CRITERIA = ("criterion", "codspeed-criterion-compat")
"""Crates that provide criterion: its own, and CodSpeed's, which is mostly renamed to criterion."""

_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
_PASSED_OVER = {"target", "node_modules", "vendor"}
_OF_CRITERION = re.compile(r"\b(codspeed_)?criterion(_compat|_group|_main)?\b|\bCriterion\b")
_OTHERS = ("divan", "iai_callgrind", "gungraun", "iai", "tango_bench", "brunch", "bencher")
_CALLED = re.compile(r"\.bench(?:_function|_with_input|_values)?\s*\(")
_NAMED = re.compile(r"\.bench_function\s*\(\s*\"((?:[^\"\\]|\\.)*)\"")


@dataclass(frozen=True)
class Target:
    """A bench of a crate: its name, its source, and the features that it requires."""

    name: str
    source: Path
    needs: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of its source, and of the files beside it if the source has its own folder."""
        own = self.source.name == "main.rs"
        files = sorted(self.source.parent.rglob("*.rs")) if own else [self.source]
        return "\n".join(readable_text(path) for path in files)


@dataclass(frozen=True)
class Crate:
    """A crate in `folder` with its criterion benches, and a sentence on each bench that is none."""

    folder: Path
    name: str
    targets: tuple[Target, ...]
    uncovered: tuple[str, ...] = ()

    @property
    def manifest(self) -> Path:
        """Its Cargo.toml."""
        return self.folder / MANIFEST


def place(crate: Crate, of: Target) -> Path:
    """The file or folder of a bench: its source alone where that lies at the crate's top or in
    `src`, or outside the crate; else the folder at the crate's top with all that lies there."""
    if not of.source.is_relative_to(crate.folder):
        return of.source
    inner = of.source.relative_to(crate.folder)
    return of.source if inner.parts[0] in ("src", of.source.name) else crate.folder / inner.parts[0]


def measured(path: Path, listed: Iterable[Path] | None = None) -> list[Crate]:
    """The crates with criterion benches in a folder and below. For a file or folder within a crate,
    that crate with the benches whose sources lie there. `listed` are the files to look at (all)."""
    found = [crate for crate in crates(path, listed) if crate.targets]
    if found:
        return found
    for folder in path.parents:
        if (folder / MANIFEST).is_file() and (crate := read(folder)):
            within = tuple(of for of in crate.targets if of.source.is_relative_to(path))
            return [Crate(folder, crate.name, within, crate.uncovered)] if within else []
        if (folder / ".git").exists():
            break
    return []


def digest_of_benches(path: Path) -> str:
    """The digest of all files of the benches that `measured` finds, but not of their Cargo.toml,
    which names a version that changes with each release."""
    found = [place(crate, of) for crate in measured(path) for of in crate.targets]
    return digest_of_files((each for at in found for each in (at, *at.rglob("*"))), path)


def crates(path: Path, listed: Iterable[Path] | None = None) -> list[Crate]:
    """The crates in a folder and below, with or without criterion benches."""
    found = manifests(path) if listed is None else sorted(listed)
    return [crate for of in found if (crate := read(of.parent))]


def read(folder: Path) -> Crate | None:
    """The crate in a folder; None if its Cargo.toml has no package or cannot be read."""
    try:
        table = schema.read(folder / MANIFEST, dict[str, Any])
        package = table["package"]
        entries = [of for of in table.get("bench", []) if isinstance(of, dict) and of.get("name")]
        taken, uncovered = [], []
        for entry in entries:
            source = _source(folder, entry)
            where = f"{os.path.relpath(source, folder)} of {package['name']}"
            if source.is_file():
                why = _not_covered(table, entry, source)
                needs = tuple(map(str, entry.get("required-features", ())))
                if why:
                    uncovered.append(f"{where}: {why}")
                else:
                    taken.append(Target(str(entry["name"]), source, needs))
        if package.get("autobenches", True):
            known = {_source(folder, entry) for entry in entries}
            uncovered += [
                f"{path.relative_to(folder)} of {package['name']}: {_LIBTEST}"
                for path in _discovered(folder)
                if path not in known
            ]
        return Crate(folder, str(package["name"]), tuple(taken), tuple(uncovered))
    except (NotReadError, KeyError, TypeError, ValueError):
        return None


def before_build(folder: Path) -> tuple[str, ...]:
    """The command that must run in a checkout before the benches of the crate or workspace in a
    folder compile, if there is one: `before-build` of [workspace.metadata.rlox-opt] in its
    Cargo.toml, or of the package's metadata. Raises UsageError if that is no list of words."""
    manifest = folder / MANIFEST
    try:
        table = schema.read(manifest, dict[str, Any])
    except NotReadError:
        return ()
    for of in ("workspace", "package"):
        metadata = (table.get(of) or {}).get("metadata") or {}
        said = (metadata.get("rlox-opt") or {}).get("before-build", [])
        if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
            raise UsageError(
                f"{manifest.name}, [{of}.metadata.rlox-opt]: before-build is {said!r}; it takes a "
                'list of words, such as ["cargo", "run", "--package", "generate"]'
            )
        if said:
            return (shlex.join(said),)
    return ()


def of_python() -> dict[str, str]:
    """The user's variables by which a crate that embeds Python finds it, when it is compiled and
    when its benches run."""
    return {name: os.environ[name] for name in _OF_PYTHON if name in os.environ}


_LIBTEST = (
    "is built with the harness of `#[bench]`, and only criterion's benchmarks are measured; for "
    "them its [[bench]] has harness = false"
)


def _not_covered(table: dict[str, Any], entry: dict[str, Any], source: Path) -> str:
    """Why a bench does not use criterion; "" if it does."""
    if entry.get("harness", True):
        return _LIBTEST
    text = readable_text(source)
    if has_criterion(table) and _OF_CRITERION.search(text):
        return ""
    other = next((name for name in _OTHERS if re.search(rf"\b{name}\b", text)), "another program")
    return f"is by {other}, and only criterion's benchmarks are measured"


def has_criterion(table: dict[str, Any]) -> bool:
    """Whether a crate depends on criterion, under whatever name."""
    tables = [table.get(key) for key in ("dev-dependencies", "dependencies")]
    for of in (table.get("target") or {}).values():
        tables += [of.get("dev-dependencies")] if isinstance(of, dict) else []
    for each in tables:
        for name, said in each.items() if isinstance(each, dict) else ():
            package = said.get("package", name) if isinstance(said, dict) else name
            if {name, package} & {*CRITERIA}:
                return True
    return False


def prefixes(found: Sequence[Crate]) -> dict[tuple[str, str], str]:
    """The beginning of the benchmarks' names for each bench of each crate: the bench's name, with
    the crate's name before it if several crates have a bench of that name."""
    every = Counter(of.name for crate in found for of in crate.targets)
    return {
        (crate.name, of.name): f"{crate.name}/{of.name}" if every[of.name] > 1 else of.name
        for crate in found
        for of in crate.targets
    }


def only(found: Sequence[Crate], names: Collection[str]) -> list[Crate]:
    """The crates with those benches alone whose benchmarks' names begin with one of these, without
    crates that have no such bench; all as they are if none has."""
    named = prefixes(found)
    taken = [
        replace(crate, targets=targets)
        for crate in found
        if (targets := tuple(of for of in crate.targets if named[crate.name, of.name] in names))
    ]
    return taken or [*found]


def one_alone(found: Sequence[Crate], root: Path) -> str:
    """Which crates a suite has, by their folders from the project's `root`, and how one of them is
    measured alone; "" if it has one crate."""
    places = [shlex.quote(os.path.relpath(_apart(crate, found), root)) for crate in found]
    if len(places) < 2:
        return ""
    each = ", ".join(f"{of.name} ({path})" for of, path in zip(found, places, strict=True))
    return (
        f"the suite has benches of {len(places)} crates: {each}; "
        f"rlox-opt init --suite {places[0]} takes one of them alone"
    )


def _apart(crate: Crate, among: Sequence[Crate]) -> Path:
    """The folder of a crate, or that of its benches if other crates lie below it."""
    if any(of.folder.is_relative_to(crate.folder) for of in among if of is not crate):
        return Path(os.path.commonpath([place(crate, of) for of in crate.targets]))
    return crate.folder


def benchmarks(found: Sequence[Crate]) -> list[str]:
    """The benchmarks' names as far as the sources show them, in order. Of benchmarks in a group,
    and of those made in a loop, only the beginning is known."""
    named = prefixes(found)
    names = []
    for crate in found:
        for of in crate.targets:
            prefix, text = named[crate.name, of.name], of.text
            plain = [] if "benchmark_group" in text else _NAMED.findall(text)
            more = len(_CALLED.findall(text)) - len(plain)
            names += [f"{prefix}::{name}" for name in plain] + [f"{prefix}::"] * more
    return names


def _source(folder: Path, entry: dict[str, Any]) -> Path:
    if entry.get("path"):
        return Path(os.path.normpath(folder / str(entry["path"])))
    own = folder / "benches" / str(entry["name"]) / "main.rs"
    return own if own.is_file() else folder / "benches" / f"{entry['name']}.rs"


def _discovered(folder: Path) -> Iterator[Path]:
    """The benches that cargo finds without an entry."""
    yield from sorted((folder / "benches").glob("*.rs"))
    yield from sorted((folder / "benches").glob("*/main.rs"))


def manifests(path: Path) -> list[Path]:
    """The Cargo.toml files in a folder and below, except in cargo's own folders."""
    if not path.is_dir():
        return []
    found = []
    for home, folders, names in os.walk(path):
        folders[:] = [of for of in folders if not of.startswith(".") and of not in _PASSED_OVER]
        found += [Path(home, MANIFEST)] if MANIFEST in names else []
    return sorted(found)
