"""Builds of commits and of releases, kept by what goes into them.

All are built in one checkout, one after the other. How, the project says; where it says nothing, it
is as asv.conf.json says, and else as PEP 517 does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlox_opt.project import checkouts, interpreters, releases
from rlox_opt.project.artefacts import Artefact, NotBuiltError, digest_of, keep, same_parts
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builders import asv_command, command, pep517, wheels
from rlox_opt.project.builders.cargo import ByCargo, Cargo, Criterion, own_features
from rlox_opt.project.builders.command import Command
from rlox_opt.project.commits import Commits, Revision, as_usage_error
from rlox_opt.project.environments import (
    Environment,
    Environments,
    Locked,
    NotResolvedError,
    joined,
    known,
    name_of,
    needed_by,
)
from rlox_opt.project.interpreters import Interpreter, chosen, running
from rlox_opt.system import elf
from rlox_opt.system.commands import Done
from rlox_opt.system.scratch import scratch
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

_KEPT = 48  # of 15 MB each
_LIMIT_S = 3600.0  # of a build


_NOTHING = Configuration(
    PurePosixPath("asv.conf.json"), PurePosixPath("benchmarks"), PurePosixPath()
)


@dataclass(frozen=True)
class Builds:
    """Those of a checkout's commits: of `package`, whose benchmarks are in `suite`. They are built
    `by` what the project says; else by the commands of the suite's `configuration`, where it has
    some, or as PEP 517 says."""

    commits: Commits
    by: Cargo | Command | None
    package: str
    suite: Path
    configuration: Configuration = _NOTHING

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return self.commits.beside

    @property
    def environments(self) -> Environments:
        """Those that they run in, kept beside them."""
        return Environments(self.folder.parent / "environments")

    def check(self, revision: Revision) -> None:
        """That a revision can be built as it is asked for, as far as it tells without being built.

        Raises:
            NotBuiltError: it is no package.
            UsageError: the builder does not take what is asked for beyond the commit, or there is
                no such interpreter.
        """
        if revision.python:
            interpreters.named(revision.python)
        of_release = releases.is_one(revision.text)
        if self.by is not None:
            if of_release or revision.python or revision.extra:
                raise UsageError(
                    f"{revision.text!r}: releases, --python and --with are for projects that are "
                    f"built as PEP 517 says, in an environment; leave out [tool.rlox-opt.build] "
                    f"for that"
                )
        elif of_release and revision.features:
            raise UsageError(
                f"{revision.text!r}: a release is built already, and takes no features"
            )
        elif not of_release:
            asked = self._asked(revision)
            if not self._by_commands:
                pep517.variables(asked, revision, Path(), {})
            elif revision.features:
                raise UsageError(
                    f"{revision.text!r}: features are cargo's; this project is built by the "
                    f"commands of {self.configuration.path}"
                )

    @property
    def _by_commands(self) -> bool:
        """Whether asv.conf.json says how it is built, or installed by anything but pip."""
        asks = self.configuration
        of_their_own = any("{wheel_file}" not in of for of in asks.install_command)
        return bool(asks.build_command) or of_their_own

    def build(self, revision: Revision, like: Artefact | None = None) -> Artefact:
        """Build a revision, or take the build that is there; where an environment is made for it,
        with the versions of the other side, `like`, unless the revision asks for others.

        Raises:
            NotBuiltError: it does not build (the message ends with what the compiler said; all of
                it is kept beside the builds), says of itself that it is another, or cannot have
                what it requires.
            UsageError: there is no cargo, no uv, or no such interpreter; or features are asked
                of what has none.
        """
        self.check(revision)
        if self.by is None:
            return self._in_environment(revision, like)
        start = time.monotonic()
        with self.checked_out(revision) as (checkout, features):
            if isinstance(self.by, Cargo):
                built = self._cargo(self.by).build(revision, checkout, features)
            else:
                folder = command.build(self.by, self.package, revision, checkout, self.folder)
                os.utime(folder)  # used last
                built = Artefact(revision, folder, (), {"package": digest_of(folder, "*")}, 0.0)
            self._forget_oldest()
        made = {"builder": self.by.__class__.__name__.lower(), "interpreter": running().title}
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
        build with."""
        source = self.commits.repository()
        with checkouts.alone(self.folder) as lock:
            with as_usage_error():
                checkout = checkouts.moved(self.folder, lock, source, revision.commit)
            features = revision.features
            yield checkout, own_features(checkout) if features is None else features

    def asked(self, revision: Revision, features: tuple[str, ...]) -> str:
        """A digest of what Rust is compiled from, and how. Raises UsageError without cargo."""
        return self._cargo(self.by).asked(revision, features)

    def cargo(self, checkout: Path, features: Iterable[str], verb: str, *options: str) -> Done:
        """Run cargo in a checkout, in the one target folder. Raises UsageError without cargo."""
        return self._cargo(self.by).cargo(checkout, features, verb, *options)

    def _cargo(self, by: Cargo | Command | None) -> ByCargo:
        if not isinstance(by, Cargo):
            raise UsageError('this project is not built by cargo alone: write build.by = "cargo"')
        return ByCargo(self.commits, by, self.package, self.suite, self.folder)

    def _in_environment(self, revision: Revision, like: Artefact | None) -> Artefact:
        """A side in an environment of its own: the wheel, and what that requires."""
        start = time.monotonic()
        of_release = releases.is_one(revision.text)
        asked = pep517.Asked() if of_release else self._asked(revision)
        theirs = like.made.get("interpreter path", "") if like else ""
        if like and like.revision.python:  # it was asked for of that side alone
            theirs = ""
        asks = self.configuration
        interpreter, note = chosen(revision.python, asks.pythons, asked.python, theirs)
        if of_release:
            place, built = self._release(revision, interpreter)
        elif self._by_commands:
            place, built = self._by_asv(revision, asked, interpreter, like)
        else:
            place, built = self._by_pep517(revision, asked, interpreter, like)
        named = (*built.named, *map(name_of, asked.requires))
        wanted, left_out = known(asks.requirements, asks.not_pip, named, self.suite)
        needed = (*wanted, *needed_by(self.suite), *built.requires)
        pins = tuple(like.made.get("environment", "").splitlines()) if like else ()
        environment = self._environment(
            revision,
            interpreter,
            joined(needed, revision.extra),
            Environment(Path(), pins),
            built.name,
        )
        notes = [note, *left_out, *environment.notes]
        if self.package not in built.packages:
            there = ", ".join(built.packages)
            notes.append(f"{revision.title} has no module {self.package} at its top, but {there}")
        made = {
            **built.made,
            "interpreter": interpreter.title,
            "interpreter path": str(interpreter.path),
            "requirements": "; ".join(built.requires),
            "environment": "\n".join(environment.locked),
        }
        return Artefact(
            revision=revision,
            folder=wheels.package(place),
            features=asked.features if revision.features is None else revision.features,
            digests=built.digests,
            seconds=time.monotonic() - start,
            packages=built.packages,
            python=environment.python,
            env=asks.run_env,
            made=made,
            found=built.found,
            notes=tuple(filter(None, notes)),
        )

    def _asked(self, revision: Revision) -> pep517.Asked:
        project = self.configuration.project
        asked = pep517.asked(lambda name: self.commits.text(revision.commit, str(project / name)))
        if not asked.there and not self.configuration.build_command:
            raise NotBuiltError(
                f"{revision.title} has neither pyproject.toml nor setup.py in {project}: it is no "
                f"package that can be built; write build = … under [tool.rlox-opt]"
            )
        return asked

    def _release(self, revision: Revision, of: Interpreter) -> tuple[Path, wheels.Built]:
        with checkouts.alone(self.folder):
            kept = releases.keep(revision, of, self.folder)
            self._forget_oldest()
            return kept

    def _by_pep517(
        self, revision: Revision, asked: pep517.Asked, of: Interpreter, like: Artefact | None
    ) -> tuple[Path, wheels.Built]:
        pins = self._pins(revision, of, asked.requires, like)
        env = {**os.environ, **self.configuration.build_env}
        # Of cargo's, one target folder for each interpreter: what it compiles is for one.
        told = pep517.variables(asked, revision, self.folder / f"target-{of.abi}", env)
        made = {
            "builder": f"PEP 517, {asked.backend}",
            "build requirements": "; ".join(asked.requires),
            "build environment": "\n".join(pins),
        }

        def build(checkout: Path, out: Path, log: Path) -> Path:
            project = checkout / self.configuration.project
            env = {**self.configuration.build_env, **told}
            return pep517.build(revision, project, checkout, of, pins, env, out, log, _LIMIT_S)

        return self._kept(revision, of, made, build, told.get("MATURIN_PEP517_ARGS", ""))

    def _by_asv(
        self, revision: Revision, asked: pep517.Asked, of: Interpreter, like: Artefact | None
    ) -> tuple[Path, wheels.Built]:
        asks = self.configuration
        needed = (*asks.requirements, *asked.requires, *asv_command.ALWAYS)
        pins = self._pins(revision, of, needed, like)
        commands = asks.build_command, asks.install_command
        made = {
            "builder": f"the commands of {asks.path}",
            "build requirements": "; ".join(needed),
            "build environment": "\n".join(pins),
        }

        def build(checkout: Path, out: Path, log: Path) -> Path:
            virtual, cache, home = out / "env", out / "cache", checkout / asks.path.parent
            cache.mkdir()
            self.environments.fresh(virtual, of, Locked(pins))
            (packages,) = virtual.glob("lib/python*/site-packages")
            before = {path.name for path in packages.iterdir()}
            names = {
                "build_dir": str(checkout / asks.project),
                "build_cache_dir": str(cache),
                "env_dir": str(virtual),
                "env_name": of.abi,
                "env_type": asks.environment_type or "uv",
                "conf_dir": str(home),
                "project": self.package,
                "commit": revision.commit,
            }
            wheel = asv_command.build(
                *commands, names, virtual, checkout, asks.build_env, log, _LIMIT_S
            )
            if wheel is not None:
                return wheel
            asv_command.take_installed(virtual, before, out / "package", revision.title)
            return out / "package"

        return self._kept(revision, of, made, build, "\n".join(("", *commands[0], *commands[1])))

    def _kept(
        self,
        revision: Revision,
        of: Interpreter,
        made: dict[str, str],
        build: Callable[[Path, Path, Path], Path],
        how: str,
    ) -> tuple[Path, wheels.Built]:
        """The wheel of a revision: the one that is kept of the same, or what `build` makes in a
        checkout."""
        asks = self.configuration
        variables = wheels.heeded(os.environ, asks.build_env)
        made["variables"] = " ".join(f"{name}={variables[name]}" for name in sorted(variables))
        made["compilers"] = wheels.compilers(self.commits.root)
        parts = [self._sources(revision), str(asks.project), of.title, how, *made.values()]
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        place, log = self.folder / f"wheel-{key}", self.folder / f"wheel-{key}.log"
        source = self.commits.repository()
        with checkouts.alone(self.folder) as lock:
            built = wheels.kept(place)
            if built is None:
                with as_usage_error():
                    checkout = checkouts.moved(self.folder, lock, source, revision.commit)
                with scratch(self.folder) as out, self._without_submodules(revision):
                    wheel = build(checkout, out, log)
                    if wheel.is_dir():
                        built = wheels.described(wheel.parent, revision.commit, made, place)
                    else:
                        built = wheels.keep(wheel, of.path, revision.commit, made, place)
            self._forget_oldest()
        return place, built

    @contextlib.contextmanager
    def _without_submodules(self, revision: Revision) -> Iterator[None]:
        """A build in the block that fails is told of what is not checked out."""
        try:
            yield
        except NotBuiltError as error:
            if not self.commits.text(revision.commit, ".gitmodules"):
                raise
            first, _, said = str(error).partition("\n")
            told = f"{first} (the commit has submodules, which are not checked out)\n{said}"
            raise NotBuiltError(told.rstrip()) from None

    def _sources(self, revision: Revision) -> str:
        """What git calls the files of a commit, without those of the suite, which is no part of
        what is built."""
        asv = self.configuration.kind == "asv"  # others may lie among the sources
        suite = f"{self.configuration.suite}/" if asv else "\0"
        with as_usage_error():
            listed = self.commits.repository().run("ls-tree", "-r", "-z", revision.commit)
        rows = (row for row in listed.split("\0") if row)
        return "\0".join(row for row in rows if not row.partition("\t")[2].startswith(suite))

    def _pins(
        self, revision: Revision, of: Interpreter, asked: Sequence[str], like: Artefact | None
    ) -> tuple[str, ...]:
        """The versions of build requirements; those of the other side, where they are allowed."""
        theirs = like.made.get("build environment", "").splitlines() if like else []
        try:
            droppable = self.configuration.not_pip
            return self.environments.locked(of, asked, theirs, droppable).pins
        except NotResolvedError as error:
            raise NotBuiltError(f"{revision.title} cannot be built, for want of {error}") from None

    def _environment(
        self,
        revision: Revision,
        of: Interpreter,
        requirements: Sequence[str],
        like: Environment,
        measured: str,
    ) -> Environment:
        try:
            dropped = self.configuration.not_pip
            return self.environments.of(of, requirements, like, dropped, measured)
        except NotResolvedError as error:
            told = f"{revision.title} cannot have what it requires: {error}"
            if revision.extra:
                raise UsageError(f"--with {' --with '.join(revision.extra)}: {told}") from None
            raise NotBuiltError(told) from None

    def _forget_oldest(self) -> None:
        for pattern in ("extension-*.so", "????????????-*", "wheel-????????????????"):
            kept = sorted(self.folder.glob(pattern), key=lambda path: path.stat().st_mtime)
            for path in kept[:-_KEPT]:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                path.with_suffix(".log").unlink(missing_ok=True)
