"""Compiles the benches of a checkout's crates by cargo, one crate after the other, whether they are
members of one workspace or not."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlox_opt.project import bench_targets
from rlox_opt.project.artefacts import NotBuiltError
from rlox_opt.project.bench_targets import Crate, place
from rlox_opt.project.builders import cargo_told, wheels
from rlox_opt.project.builders.cargo import own_features, turned_on
from rlox_opt.project.commits import Revision
from rlox_opt.system import git, schema
from rlox_opt.system.commands import Done, attempt, cargo, run
from rlox_opt.system.files import NotReadError

_LIMIT_S = 3600.0  # for a crate
_SCRIPT_FAILED = "failed to run custom build command"
_REMEDY = (
    "if the project's benches need a command to be run first, name it in Cargo.toml: "
    '[workspace.metadata.rlox-opt] before-build = ["cargo", "run", "--package", "generate"]'
)
_FOR_PYTHON = "extension-module"  # leaves symbols to an interpreter, and a bench has none


@dataclass
class Compiler:
    """Compiles benches of a revision that is in `checkout`. All revisions share the folder
    `target`, so that each compiles only what it changed. A workspace without a Cargo.lock starts
    with the one in `seeds`, by its path. `locks` are the lock files afterwards."""

    revision: Revision
    checkout: Path
    target: Path
    log: Path
    seeds: Mapping[str, str]
    locks: dict[str, str] = field(default_factory=dict)
    roots: list[Path] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def compiled(self, crate: Crate) -> dict[str, Path]:
        """The programs of a crate's benches by name. Benches that need features which are off are
        left out, with a note.

        Raises:
            NotBuiltError: one does not compile; cargo's output is in the log.
            UsageError: there is no cargo.
        """
        features = self._features(crate)
        on = turned_on(crate.manifest, (*features, "default"))
        names = []
        for of in crate.targets:
            lacking = sorted({*of.needs} - on)
            if lacking:
                asked = ",".join([*features, *lacking])
                self.notes.append(
                    f"{of.name} of {crate.name} is left out: it needs the features "
                    f"{', '.join(lacking)}; --features {asked} builds it"
                )
            else:
                names.append(of.name)
        if not names:
            return {}
        root = self._root(crate)
        lock = root.with_name("Cargo.lock")
        inner = str(lock.relative_to(self.checkout))
        if not lock.exists() and inner in self.seeds:
            lock.write_text(self.seeds[inner], encoding="utf-8")
        words = ["bench", "--no-run", "--message-format", "json-render-diagnostics"]
        words += ["--manifest-path", str(crate.manifest), "--target-dir", str(self.target)]
        words += [word for name in names for word in ("--bench", name)]
        words += ["--features", ",".join(features)] if features else []
        lines = _line_tables(root)
        done = self._cargo(crate, *words, **lines)
        if done.status and self._scripts_touched():
            done = self._cargo(crate, *words, **lines)
        made = _programs(done.output)
        if done.status or not {*names} <= {*made}:
            said = (line for line in done.output.splitlines() if not line.startswith("{"))
            told = dataclasses.replace(done, output="\n".join(said))
            raise self._failed(crate, told)
        self.features |= {*features}
        self.roots.append(root)
        if lock.exists():
            self.locks[inner] = lock.read_text(encoding="utf-8")
        return {name: made[name] for name in names}

    def _failed(self, crate: Crate, done: Done) -> NotBuiltError:
        """An error with cargo's output, and if a build script failed, with what may be lacking."""
        error = wheels.failed(f"{crate.name} of {self.revision.title}", done, self.log)
        return NotBuiltError(f"{error}\n{_REMEDY}") if _SCRIPT_FAILED in done.output else error

    def run_before(self, command: str) -> None:
        """Run a command that the suite asks for in the checkout. Raises NotBuiltError if it
        fails."""
        trusted = git.trusting(self.checkout)
        done = attempt(shlex.split(command), self.checkout, trusted, _LIMIT_S)
        if done.status:
            what = f"{self.revision.title}, by {command!r} before its benches,"
            raise wheels.failed(what, done, self.log)

    def _features(self, crate: Crate) -> list[str]:
        """The features to build a crate with: those that it has among the ones asked for, or among
        those that the project's pyproject.toml turns on."""
        table: dict[str, Any] = {}
        with contextlib.suppress(NotReadError):
            table = schema.read(crate.manifest, dict[str, Any])
        known = {*(table.get("features") or {}), *(table.get("dependencies") or {})}
        asked = self.revision.features
        if asked is not None:
            return [of for of in asked if of in known or "/" in of] or [*asked]
        own = [of for of in own_features(self.checkout) if of in known]
        return [of for of in own if not _of_python(crate.manifest, of)]

    def _scripts_touched(self) -> bool:
        """Make cargo run the checkout's build scripts again. A file that a script wrote among the
        sources is gone since the last commit, which cargo does not know. Returns whether there are
        build scripts."""
        folders = (path.parent for path in bench_targets.manifests(self.checkout))
        scripts = [path for of in folders if (path := of / "build.rs").is_file()]
        for path in scripts:
            os.utime(path)
        return bool(scripts)

    def _root(self, crate: Crate) -> Path:
        """The manifest of a crate's workspace. A crate that is in no workspace of the checkout gets
        one of its own, since cargo would also look for one above the checkout. Raises
        NotBuiltError."""
        path, done = self._located(crate)
        if path is None and "workspace" not in _keys(crate.manifest):
            with crate.manifest.open("a", encoding="utf-8") as file:
                file.write("\n[workspace]\n")
            path, done = self._located(crate)
        if path is None:
            raise wheels.failed(f"{crate.name} of {self.revision.title}", done, self.log)
        return path

    def _located(self, crate: Crate) -> tuple[Path | None, Done]:
        """The manifest of the workspace to which cargo assigns a crate, if it is within the
        checkout; and cargo's output."""
        asked = ("locate-project", "--workspace", "--message-format", "plain")
        done = self._cargo(crate, *asked, "--manifest-path", str(crate.manifest))
        path = Path((done.output.strip().splitlines() or [""])[-1])
        there = not done.status and path.is_relative_to(self.checkout)
        return (path if there else None), done

    def _cargo(self, crate: Crate, *words: str, **variables: str) -> Done:
        env = {**git.trusting(self.checkout), **variables}
        return run([cargo(), *words], crate.folder, env, limit_s=_LIMIT_S)


def files_of(crate: Crate) -> Iterator[Path]:
    """Its Cargo.toml, and all files of its benches."""
    yield crate.manifest
    for at in sorted({place(crate, of) for of in crate.targets}):
        yield from (path for path in sorted([at, *at.rglob("*")]) if path.is_file())


def _line_tables(root: Path) -> dict[str, str]:
    """Variables that make cargo write line tables into a workspace's benches, without which a
    profile cannot name inlined functions. None if the workspace or the user chooses how much debug
    information is written."""
    own = cargo_told.bench_profiles(root).values()
    chosen = {"CARGO_PROFILE_BENCH_DEBUG", "CARGO_PROFILE_RELEASE_DEBUG"} & {*os.environ}
    if chosen or any("debug" in of for of in own):
        return {}
    lines = {"CARGO_PROFILE_BENCH_DEBUG": "1"}  # old versions do not know "line-tables-only"
    if any("strip" in of for of in own):
        lines["CARGO_PROFILE_BENCH_STRIP"] = "none"
    return lines


def _programs(output: str) -> dict[str, Path]:
    """The programs of the benches, from cargo's JSON messages among its output."""
    found = {}
    for line in output.splitlines():
        with contextlib.suppress(json.JSONDecodeError, KeyError, TypeError):
            message = json.loads(line) if line.startswith("{") else {}
            if message.get("executable") and "bench" in message["target"]["kind"]:
                found[message["target"]["name"]] = Path(message["executable"])
    return found


def _of_python(manifest: Path, feature: str) -> bool:
    """Whether a feature makes a Python extension, which cannot be linked into a program."""
    with contextlib.suppress(NotReadError):
        table = schema.read(manifest, dict[str, Any]).get("features") or {}
        left, seen = [feature], set[str]()
        while left:
            of = left.pop()
            if of not in seen:
                seen.add(of)
                left += table.get(of, ())
        return any(of.rpartition("/")[2] == _FOR_PYTHON for of in seen)
    return False


def _keys(manifest: Path) -> set[str]:
    with contextlib.suppress(NotReadError):
        return {*schema.read(manifest, dict[str, Any])}
    return set()
