"""Compiled benches: a revision's criterion programs, with the suite that is asked for in place of
its own.

They are built by `cargo bench --no-run`, and so with the project's own bench profile, to which line
tables are added. They run in a copy of the sources that they were built from, since many read files
there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rlox_opt.project import bench_targets, beside_benches, checkouts
from rlox_opt.project.artefacts import (
    Artefact,
    NotBuiltError,
    digest,
    forget_oldest,
    told_of_lacking,
)
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.bench_targets import Crate
from rlox_opt.project.builders import cargo_told
from rlox_opt.project.builders.compiled_benches import Compiler, files_of
from rlox_opt.project.builders.overlay import NotLaidOverError, lay_over
from rlox_opt.project.commits import Commits, Revision, as_usage_error
from rlox_opt.system import elf, files, schema
from rlox_opt.system.commands import cargo
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_FORM = "2"  # the form of what is kept; with another number everything is built anew
_FACTS, _PROGRAMS, _SOURCES = "built.json", "programs", "sources"
_RUSTC = re.compile(r"rustc version [^,]*")
_TAG = "CACHEDIR.TAG"
_BENCHES = "benches.json"  # the file that the side's program reads
_ERROR = re.compile(r"^\s*error(?:\[\w+\])?: .*$", re.MULTILINE)
_KEPT = 16  # programs, each with its sources
_DIGITS = 16  # of a key
_OWN = "its own benches; a benchmark that both sides have may do something else in each"


class Built(msgspec.Struct, frozen=True):
    """What is known of programs that are kept."""

    digests: dict[str, str]
    features: tuple[str, ...]
    made: dict[str, str]
    found: dict[str, str]
    locks: dict[str, str]
    """The text of each Cargo.lock that they were built with, by its path in the checkout."""

    notes: tuple[str, ...] = ()


def check(revision: Revision) -> None:
    """Raises UsageError if more is asked for than cargo can do, or if there is no cargo."""
    cargo()
    if revision.needs_environment:
        raise UsageError(
            f"{revision.text!r}: releases, --python and --with are for packages of Python, and "
            "benches by criterion are compiled by cargo, from commits; leave them out, or choose "
            "another suite by --suite"
        )


@dataclass(frozen=True)
class ByCriterion:
    """The programs that are kept in `folder`, of the benches in `suite`. The `configuration` says
    where the suite lies in its checkout, and which command must run there before."""

    commits: Commits
    suite: Path
    configuration: Configuration
    folder: Path
    beginning: str = ""
    """How the names of the benchmarks that are asked for begin. Only benches that may have such are
    compiled; all of them if none may."""

    def build(self, revision: Revision, like: Artefact | None) -> Artefact:
        """The programs of a revision, built now or kept. Without a Cargo.lock they are built with
        the versions of the other side, `like`.

        Raises:
            NotBuiltError: they do not build, not even with their own suite.
            UsageError: there is no cargo.
        """
        start = time.monotonic()
        committed = {row.partition("\t")[2] for row in self.sources(revision)}
        seeds = {path: text for path, text in _locks(like).items() if path not in committed}
        with checkouts.alone(self.folder) as lock:

            def checked_out() -> tuple[Path, tuple[str, ...]]:
                with as_usage_error():
                    source = self.commits.repository()
                    return checkouts.moved(self.folder, lock, source, revision.commit)

            # Also for kept programs: they may read files where their sources lay when compiled.
            checkout, lacking = checked_out()
            place = self.folder / f"bench-{self._key(revision, checkout, seeds)}"
            built = _kept(place)
            if built is None:
                shutil.rmtree(place, ignore_errors=True)
                with scratch(self.folder) as making, told_of_lacking(lacking):
                    make = _Making(self, revision, checkout, place, making / "new", seeds)
                    built = make.build(checked_out)
                    (making / "new").rename(place)
            else:
                with contextlib.suppress(NotLaidOverError):
                    self.lay_over(checkout)
            os.utime(place)  # used last
            forget_oldest(self.folder, [f"bench-{'?' * _DIGITS}"], _KEPT)
            beside = self._beside(revision, like, checkout)
        return Artefact(
            revision=revision,
            folder=place / _PROGRAMS,
            features=built.features,
            digests=built.digests,
            seconds=time.monotonic() - start,
            made=built.made,
            found=built.found,
            notes=(*built.notes, *beside),
        )

    @property
    def home(self) -> Path:
        """The top of the checkout that the suite comes from."""
        parts = self.configuration.suite.parts
        return self.suite.parents[len(parts) - 1] if parts else self.suite

    def crates(self) -> list[Crate]:
        """The crates of the suite."""
        return bench_targets.measured(self.suite)

    def asked(self) -> list[str]:
        """The names of the benches that are asked for; empty for all of them."""
        every = [*bench_targets.prefixes(self.crates()).values()]
        begin = self.beginning
        found = [of for of in every if begin.startswith(f"{of}::") or f"{of}::".startswith(begin)]
        return [] if len(found) == len(every) else found

    def laid(self) -> list[Crate]:
        """The crates that have a bench which is asked for, each with all its benches: its
        Cargo.toml names them all."""
        folders = {crate.folder for crate in bench_targets.only(self.crates(), self.asked())}
        return [crate for crate in self.crates() if crate.folder in folders]

    def lay_over(self, checkout: Path) -> None:
        """Put the suite into a checkout, as far as it is asked for. Raises NotLaidOverError."""
        for crate in self.laid():
            lay_over(crate, self.folder_of(crate, checkout))

    def folder_of(self, crate: Crate, checkout: Path) -> Path:
        """Where a crate of the suite is in a checkout: in the same folder. If it was moved, or the
        suite comes from another repository, it is in the folder of the only crate of its name."""
        same = checkout / crate.folder.relative_to(self.home)
        if not (same / bench_targets.MANIFEST).is_file():
            named = [of.folder for of in bench_targets.crates(checkout) if of.name == crate.name]
            return named[0] if len(named) == 1 else same
        return same

    def sources(self, revision: Revision) -> list[str]:
        """Git's list of the files of a commit, one row each."""
        with as_usage_error():
            listed = self.commits.repository().run("ls-tree", "-r", "-z", revision.commit)
        return [row for row in listed.split("\0") if row]

    def _key(self, revision: Revision, checkout: Path, seeds: Mapping[str, str]) -> str:
        """A digest of what the programs are made from, and how."""
        suite = [
            f"{path.relative_to(self.home)} {digest(path.read_bytes())}"
            for crate in self.laid()
            for path in files_of(crate)
        ]
        sources = self.sources(revision)
        made = cargo_told.made(self.commits.root, checkout, sources, seeds.values())
        features = "own" if revision.features is None else ",".join(sorted(revision.features))
        before = self.configuration.build_command
        python = [f"{name}={value}" for name, value in bench_targets.of_python().items()]
        parts = [_FORM, features, *before, *sources, *suite, *made.values(), *seeds, *python]
        parts += [f"the bench {name}" for name in self.asked()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]

    def _beside(self, revision: Revision, like: Artefact | None, checkout: Path) -> list[str]:
        """Notes on what differs from the other side, `like`, and is neither the suite nor what it
        measures."""
        if like is None or like.revision.commit == revision.commit:
            return []
        asked = {
            self.folder_of(crate, checkout): {of.name for of in crate.targets}
            for crate in bench_targets.only(self.crates(), self.asked())
        }
        sides = (self.sources(of) for of in (like.revision, revision))
        return beside_benches.differing(asked, checkout, *sides)


@dataclass
class _Making:
    """Programs that are made in the folder `new` and then kept in `place`."""

    by: ByCriterion
    revision: Revision
    checkout: Path
    place: Path
    new: Path
    seeds: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    def build(self, checked_out: Callable[[], object]) -> Built:
        """Build the programs with the suite that is asked for; if that fails, with the revision's
        own suite, in the checkout as it was."""
        try:
            self.by.lay_over(self.checkout)
            return self._built([self._here(crate) for crate in self.by.crates()])
        except (NotLaidOverError, NotBuiltError) as error:
            reason = _reason(error)
            shutil.rmtree(self.new, ignore_errors=True)
            checked_out()
            own = bench_targets.measured(self.checkout / self.by.configuration.suite)
            if not (own := own or bench_targets.measured(self.checkout)):
                if isinstance(error, NotBuiltError):
                    raise
                raise NotBuiltError(
                    f"{self.revision.title} has no bench by criterion of its own, and cannot have "
                    f"those of the suite: {reason}"
                ) from None
            built = self._built(own)
            note = (
                f"{self.revision.title}: the suite cannot be compiled there ({reason}), so it has "
                f"{_OWN}"
            )
            built = msgspec.structs.replace(built, notes=(note, *built.notes))
            self._write(built)
            return built

    def _here(self, crate: Crate) -> Crate:
        """The same crate in this checkout, after the suite was put there."""
        folder = self.by.folder_of(crate, self.checkout)
        moved = [
            dataclasses.replace(of, source=folder / os.path.relpath(of.source, crate.folder))
            for of in crate.targets
        ]
        return dataclasses.replace(crate, folder=folder, targets=tuple(moved))

    def _built(self, crates: Sequence[Crate]) -> Built:
        log = self.place.with_suffix(".log")
        compiler = Compiler(
            self.revision, self.checkout, self.by.folder / "target", log, self.seeds
        )
        for command in self.by.configuration.build_command:
            compiler.run_before(command)
        named, taken = bench_targets.prefixes(crates), bench_targets.only(crates, self.by.asked())
        programs = self.new / _PROGRAMS
        programs.mkdir(parents=True)
        benches, paths = [], []
        for crate in taken:
            folder = self.place / _SOURCES / crate.folder.relative_to(self.checkout)
            for name, program in self._compiled(compiler, crate, taken).items():
                prefix = named[crate.name, name]
                paths.append(programs / prefix.replace("/", "-"))
                shutil.copy2(program, paths[-1])
                env = {"CARGO_MANIFEST_DIR": str(folder), "CARGO_PKG_NAME": crate.name}
                told = {"program": paths[-1].name, "name": prefix, "folder": str(folder)}
                benches.append({**told, "env": env})
        if not benches:
            why = "; ".join(compiler.notes)
            raise NotBuiltError(f"{self.revision.title}: no bench by criterion is built: {why}")
        shutil.copytree(
            self.checkout,
            self.new / _SOURCES,
            symlinks=True,
            ignore=_no_source,
        )
        (programs / _BENCHES).write_text(json.dumps(benches), encoding="utf-8")
        of_programs = [
            f"{path.name} {digest(elf.loaded(path.read_bytes()), self.revision.commit)}"
            for path in sorted(paths)
        ]
        rows, locks = self.by.sources(self.revision), compiler.locks
        chosen = cargo_told.found(compiler.roots, [crate.manifest for crate in taken])
        built = Built(
            digests={"package": digest("\n".join(of_programs).encode())},
            features=tuple(sorted(compiler.features)),
            made=cargo_told.made(self.by.commits.root, self.checkout, rows, locks.values()),
            found={**chosen, **_by_rustc(elf.told(paths))},
            locks=locks,
            notes=tuple(compiler.notes),
        )
        self._write(built)
        return built

    def _compiled(
        self, compiler: Compiler, crate: Crate, among: Sequence[Crate]
    ) -> dict[str, Path]:
        """The programs of a crate's benches by name. Raises NotBuiltError, which says how one of
        several crates is measured alone."""
        try:
            return compiler.compiled(crate)
        except NotBuiltError as error:
            root = self.checkout / self.by.configuration.project
            told = bench_targets.one_alone(among, root)
            raise NotBuiltError("\n".join(filter(None, (f"{error}", told)))) from None

    def _write(self, built: Built) -> None:
        files.write(self.new / _FACTS, json.dumps(msgspec.to_builtins(built), indent=1))


def compiled_in(built: Artefact) -> Path:
    """The folder of the sources when the programs were compiled. Line tables name it."""
    return checkouts.of(built.folder.parents[1])


def own_benches(built: Artefact) -> str:
    """A digest of the benches that a build has in place of the suite's, which do not compile there;
    "" if it has the suite's, or is none of these builds."""
    if not any(note.endswith(_OWN) for note in built.notes):
        return ""
    return bench_targets.digest_of_benches(built.folder.with_name(_SOURCES))


def source(built: Artefact, path: str) -> str | None:
    """The text of a Rust source that programs were compiled from; None for another file."""
    there = built.folder.with_name(_SOURCES) / path
    if there.suffix != ".rs" or not there.is_file():
        return None
    return there.read_text(encoding="utf-8", errors="replace")


def _by_rustc(told: Mapping[str, str]) -> dict[str, str]:
    """What programs show, without C compilers and their options: those belong to libraries that
    came or went with a dependency."""
    kept = {name: value for name, value in told.items() if name != "optimisation"}
    return {**kept, "compiler": ", ".join(sorted({*_RUSTC.findall(told.get("compiler", ""))}))}


def _no_source(folder: str, names: list[str]) -> set[str]:
    """Names in a folder that are not sources of the checkout: git's, and the target folder of a
    cargo that a build script has called."""
    return {name for name in names if name == ".git" or Path(folder, name, _TAG).is_file()}


def _kept(place: Path) -> Built | None:
    try:
        return schema.read(place / _FACTS, Built)
    except NotReadError:
        return None


def _locks(like: Artefact | None) -> Mapping[str, str]:
    """The lock files that the other side was built with."""
    built = _kept(like.folder.parent) if like else None
    return built.locks if built else {}


def _reason(error: Exception) -> str:
    """An error as one line: the compiler's first error."""
    said = _ERROR.search(f"{error}")
    return said[0].strip() if said else f"{error}".splitlines()[0]
