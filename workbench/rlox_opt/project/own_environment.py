"""Sides with environments of their own: a wheel, made by its back-end or by asv's commands or taken
from an index, and its requirements."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.project import checkouts, releases
from rlox_opt.project.artefacts import Artefact, NotBuiltError, forget_oldest, told_of_lacking
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builders import asv_command, cargo_locks, pep517, wheels
from rlox_opt.project.commits import Commits, Revision, as_usage_error
from rlox_opt.project.environments import (
    Environment,
    Environments,
    Locked,
    NotResolvedError,
    giving_way,
    imported_by,
    joined,
    known,
    name_of,
    named_in,
    needed_by,
)
from rlox_opt.project.interpreters import Interpreter, chosen
from rlox_opt.system import files, schema
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_LIMIT_S = 3600.0  # of a build
_LACKING = "not checked out"


@dataclass(frozen=True)
class OwnEnvironment:
    """The builds of a checkout's commits and of releases. `package` is what is built, `suite` has
    its benchmarks. They are built by the commands of the suite's `configuration` if it has some,
    otherwise by PEP 517, and kept in `folder`."""

    commits: Commits
    package: str
    suite: Path
    configuration: Configuration
    folder: Path

    @property
    def environments(self) -> Environments:
        """The environments that they are built and run in, which are kept beside them."""
        return Environments(self.folder.parent / "environments")

    def check(self, revision: Revision) -> None:
        """Check that a revision can be built as asked for, as far as that shows without building.
        Raises NotBuiltError where it is no package; UsageError where its back-end does not know the
        features that are asked for, or a command of asv.conf.json has an error."""
        if revision.is_release:
            if revision.features:
                raise UsageError(
                    f"{revision.text!r}: a release is built already, and takes no features"
                )
            return
        asked = self._asked(revision)
        if not self.configuration.by_commands:
            pep517.variables(asked, revision, Path(), {})
        elif revision.features:
            raise UsageError(
                f"{revision.text!r}: features are cargo's; this project is built by the "
                f"commands of {self.configuration.path}"
            )
        else:
            asv_command.check(self.configuration.build_command)

    def build(self, revision: Revision, like: Artefact | None) -> Artefact:
        """Build a revision, or take the build that is kept, and make the environment it runs in.
        The environment has the versions of the other side, `like`, unless the revision asks for
        others. Raises NotBuiltError and UsageError as `Builds.build` does."""
        start = time.monotonic()
        asked = pep517.Asked() if revision.is_release else self._asked(revision)
        theirs = like.made.get("interpreter path", "") if like else ""
        if like and like.revision.python:  # it was asked for on the other side alone
            theirs = ""
        asks = self.configuration
        interpreter, note = chosen(revision.python, asks.pythons, asked.python, theirs)
        notes: list[str] = []
        try:
            if revision.is_release:
                place, built = self._release(revision, interpreter)
            elif asks.by_commands:
                place, built = self._by_asv(revision, asked, interpreter, like, notes)
            else:
                place, built = self._by_pep517(revision, asked, interpreter, like)
        except NotResolvedError as error:
            other = ", and --with NAME==VERSION another version" if asks.by_commands else ""
            raise NotBuiltError(
                f"{revision.title} cannot be built, for want of {error}; --python VERSION takes "
                f"another interpreter{other}"
            ) from None
        needs = built.needs(asks.extras)
        named = {*map(name_of, (*built.requirements, *asked.requires, *asv_command.ALWAYS))}
        wanted, left_out = known(asks.requirements, asks.not_pip, named, self.suite)
        needed = (*needed_by(self.suite), *needs)
        pins = tuple(like.made.get("environment", "").splitlines()) if like else ()
        fixed = Environment(Path(), pins)
        environment = self._environment(revision, interpreter, wanted, needed, fixed, built.name)
        notes += [note, *left_out, *environment.notes, *self._offered(asked, environment)]
        notes.append(built.made.get(_LACKING, ""))
        if self.package not in built.packages:
            there = ", ".join(built.packages)
            notes.append(f"{revision.title} has no module {self.package} at its top, but {there}")
        made = {
            **built.made,
            "interpreter": interpreter.title,
            "interpreter path": str(interpreter.path),
            "requirements": "; ".join(needs),
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
            notes=tuple(dict.fromkeys(filter(None, notes))),
        )

    def _asked(self, revision: Revision) -> pep517.Asked:
        asked = pep517.asked_by(self.commits, revision.commit, self.configuration.project)
        if not asked.there and not self.configuration.build_command:
            raise NotBuiltError(
                f"{revision.title} has neither pyproject.toml nor setup.py in "
                f"{self.configuration.project}: it is no package that can be built; write "
                f"build = … under [tool.rlox-opt]"
            )
        return asked

    def _offered(self, asked: pep517.Asked, environment: Environment) -> list[str]:
        """A note on what the suite imports and the environment lacks, if the project names it in an
        extra or a group. Without it benchmarks are skipped or fail."""
        there, imported = {*map(name_of, environment.locked)}, imported_by(self.suite)
        return [
            f"{name_of(of)} is not in the environment: the suite imports it, and the project names "
            f"it in {where} alone; --with {of!r} adds it"
            for of, where in asked.offered.items()
            if name_of(of) in imported - there
        ]

    def _release(self, revision: Revision, of: Interpreter) -> tuple[Path, wheels.Built]:
        with checkouts.alone(self.folder):
            kept = releases.keep(revision, of, self.folder)
            forget_oldest(self.folder)
            return kept

    def _by_pep517(
        self, revision: Revision, asked: pep517.Asked, of: Interpreter, like: Artefact | None
    ) -> tuple[Path, wheels.Built]:
        env = {**os.environ, **self.configuration.build_env}
        # One target folder for each interpreter, since cargo compiles for one.
        told = pep517.variables(asked, revision, self.folder / f"target-{of.abi}", env)
        env = {**self.configuration.build_env, **told}
        asks = asked.requires
        more, pins = self._fixed(revision, asked, of, asks, like, env)
        made = {
            "builder": f"PEP 517, {asked.backend}",
            "build requirements": "; ".join((*asks, *more)),
            "build environment": "\n".join(pins),
        }

        def build(checkout: Path, out: Path, log: Path) -> Path:
            project = checkout / self.configuration.project
            return pep517.build(revision, project, checkout, of, pins, env, out, log, _LIMIT_S)

        return self._kept(revision, of, made, build, told.get("MATURIN_PEP517_ARGS", ""), like)

    def _fixed(
        self,
        revision: Revision,
        asked: pep517.Asked,
        of: Interpreter,
        needed: Sequence[str],
        like: Artefact | None,
        env: Mapping[str, str],
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the back-end requires besides `needed`, and the versions of all. Raises
        NotResolvedError."""
        own = (*asked.requires, *asv_command.ALWAYS)
        pins = self._pins(of, needed, like, own)
        if more := self._also_required(revision, asked, of, pins, env):
            pins = self._pins(of, (*needed, *more), like, (*own, *more), pins)
        return more, pins

    def _also_required(
        self,
        revision: Revision,
        asked: pep517.Asked,
        of: Interpreter,
        pins: Sequence[str],
        env: Mapping[str, str],
    ) -> tuple[str, ...]:
        """What the back-end requires besides. It is asked once for the same sources and build
        requirements."""
        if not asked.there:
            return ()
        parts = [self._sources(revision), of.title, *pins, *wheels.variables(env)]
        path = self.folder / f"asks-{_digest(*parts)}.json"
        with contextlib.suppress(NotReadError):
            return schema.read(path, tuple[str, ...])
        python = self.environments.having(of, Locked(tuple(pins))).python
        with checkouts.alone(self.folder) as lock:
            with as_usage_error():
                source = self.commits.repository()
                checkout, _ = checkouts.moved(self.folder, lock, source, revision.commit)
            project = checkout / self.configuration.project
            more = pep517.also_required(asked, project, checkout, python, env, _LIMIT_S)
            if more is not None:
                files.write(path, json.dumps(more))
        return more or ()

    def _by_asv(
        self,
        revision: Revision,
        asked: pep517.Asked,
        of: Interpreter,
        like: Artefact | None,
        notes: list[str],
    ) -> tuple[Path, wheels.Built]:
        asks = self.configuration
        named = named_in(asked.text, *asks.build_command)
        wanted, _ = known(asks.requirements, asks.not_pip, named, self.suite)

        def having(
            wanted: Sequence[str],
        ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
            needed = joined((*wanted, *asked.requires, *asv_command.ALWAYS), revision.extra)
            return needed, *self._fixed(revision, asked, of, needed, like, asks.build_env)

        (needed, more, fixed), told = giving_way(wanted, having, asks.path, of)
        notes += told
        pins = self._pins(of, needed, like, asked.requires, fixed)  # asv does not install `more`
        commands = asks.build_command, asks.install_command
        made = {
            "builder": f"the commands of {asks.path}",
            "build requirements": "; ".join((*needed, *more)),
            "build environment": "\n".join(fixed),
        }

        def build(checkout: Path, out: Path, log: Path) -> Path:
            virtual, cache, home = out / "env", out / "cache", checkout / asks.path.parent
            cache.mkdir()
            self.environments.fresh(virtual, of, Locked(pins))
            (packages,) = virtual.glob("lib/python*/site-packages")
            before = {path.name for path in packages.iterdir()}
            names = asv_command.Names(
                build_dir=str(checkout / asks.project),
                build_cache_dir=str(cache),
                env_dir=str(virtual),
                env_name=of.abi,
                env_type=asks.environment_type or "uv",
                conf_dir=str(home),
                project=asks.distribution or self.package,
                commit=revision.commit,
            )
            words, target = (*commands[0], *commands[1]), self.folder / f"target-{of.abi}"
            with _without_spaces(out) as folder:
                constraints = folder / "constraints.txt"
                constraints.write_text("".join(f"{pin}\n" for pin in fixed))
                told = asv_command.variables(words, asked, constraints, target)
                env = {**told, **asks.build_env}
                wheel = asv_command.build(*commands, names, virtual, checkout, env, log, _LIMIT_S)
            if wheel is not None:
                return wheel
            asv_command.take_installed(virtual, before, out / "package", revision.title)
            return out / "package"

        how = "\n".join((asks.distribution, *asks.build_command, *asks.install_command))
        return self._kept(revision, of, made, build, how, like)

    def _kept(
        self,
        revision: Revision,
        of: Interpreter,
        made: dict[str, str],
        build: Callable[[Path, Path, Path], Path],
        how: str,
        like: Artefact | None,
    ) -> tuple[Path, wheels.Built]:
        """The wheel of a revision: the one that is kept for the same sources and build, or what
        `build` makes in a checkout, with the crates of the other side, `like`."""
        asks = self.configuration
        made["variables"] = " ".join(wheels.variables(asks.build_env))
        made["compilers"] = wheels.compilers(self.commits.root)
        sources = self._sources(revision)
        locks = cargo_locks.lent(like, sources)
        parts = sources, str(asks.project), of.title, how
        key = _digest(*parts, *made.values(), *locks, *locks.values())
        place, log = self.folder / f"wheel-{key}", self.folder / f"wheel-{key}.log"
        source = self.commits.repository()
        with checkouts.alone(self.folder) as lock:
            built = wheels.kept(place) if cargo_locks.are_noted(place) else None
            if built is None or built.made.get(_LACKING):
                with as_usage_error():
                    checkout, lacking = checkouts.moved(self.folder, lock, source, revision.commit)
                made[_LACKING] = "; ".join(lacking)
                if built is None or built.made[_LACKING] != made[_LACKING]:
                    with scratch(self.folder) as out, told_of_lacking(lacking):
                        cargo_locks.lay(locks, checkout)
                        wheel = build(checkout, out, log)
                        if wheel.is_dir():
                            built = wheels.described(wheel.parent, revision.commit, made, place)
                        else:
                            built = wheels.keep(wheel, of.path, revision.commit, made, place)
                        cargo_locks.note(checkout, place)
            forget_oldest(self.folder)
        return place, built

    def _sources(self, revision: Revision) -> str:
        """Git's ids of the files of a commit, without those of the suite, which is not built."""
        asv = self.configuration.kind == "asv"  # other suites may lie among the sources
        suite = f"{self.configuration.suite}/" if asv else "\0"
        with as_usage_error():
            listed = self.commits.repository().run("ls-tree", "-r", "-z", revision.commit)
        rows = (row for row in listed.split("\0") if row)
        return "\0".join(row for row in rows if not row.partition("\t")[2].startswith(suite))

    def _pins(
        self,
        of: Interpreter,
        asked: Sequence[str],
        like: Artefact | None,
        needed: Sequence[str],
        own: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """The versions of build requirements, of which the commit itself has the `needed` ones: the
        `own` ones, and those of the other side where they are allowed. Raises NotResolvedError."""
        theirs = like.made.get("build environment", "").splitlines() if like else []
        asks = self.configuration
        # What asv's commands install there must not be there before.
        without = asks.distribution if asks.by_commands else ""
        likes = joined(theirs, own)
        return self.environments.locked(of, asked, likes, asks.not_pip, without, needed).pins

    def _environment(
        self,
        revision: Revision,
        of: Interpreter,
        wanted: Sequence[str],
        needed: Sequence[str],
        like: Environment,
        measured: str,
    ) -> Environment:
        """The environment with what the configuration has `wanted` and with what is `needed` in any
        case."""

        asks = self.configuration

        def having(wanted: Sequence[str]) -> Environment:
            asked = joined((*wanted, *needed), revision.extra)
            return self.environments.of(of, asked, like, asks.not_pip, measured, needed)

        try:
            made, told = giving_way(wanted, having, asks.path, of)
        except NotResolvedError as error:
            why = f"{revision.title} cannot have what it requires: {error}"
            if revision.extra:
                raise UsageError(f"--with {' --with '.join(revision.extra)}: {why}") from None
            raise NotBuiltError(why) from None
        return dataclasses.replace(made, notes=(*made.notes, *told))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _without_spaces(folder: Path) -> Iterator[Path]:
    """A folder for files that variables of pip and uv name: this one, or a temporary one where its
    path has spaces, at which both cut a variable into several paths."""
    if not re.search(r"\s", str(folder)):
        yield folder
        return
    with scratch() as elsewhere:
        yield elsewhere
