"""`rlox-opt init`: what is found of a project, and what is written where that is not enough."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from rlox_opt.project import (
    bench_targets,
    beside_benches,
    blind,
    interpreters,
    kinds,
    package_name,
    table,
    unmeasured,
)
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.bench_targets import Crate
from rlox_opt.project.builders import pep517
from rlox_opt.project.builds import Cargo, Command
from rlox_opt.project.commits import WORKING_TREE
from rlox_opt.project.project import Project, Settings
from rlox_opt.project.suites import Suite, Suites, uncovered
from rlox_opt.system import exits, files, output, schema
from rlox_opt.system.exits import CANNOT_TELL, GOOD
from rlox_opt.system.files import NotReadError, read_text, readable_text
from rlox_opt.system.output import number_of, say
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt init                            what is found, and the command to run next
  rlox-opt init --suite bench/asv.conf.json    choose, where there are several suites
  rlox-opt init --dry-run --json | jq .lacking

Nothing is built, and nothing is fetched. Only --suite writes: the suite's name, where another one
is found and nothing is lacking.
"""

# Sources of extensions, as patterns for git, which match in all folders. A Cargo.toml is not among
# them, since it may change for the sake of a bench alone.
_COMPILED = (*(f"*{ending}" for ending in sorted(blind.COMPILED - {".rs"})), "*Cargo.lock")
_BENCHES = ":(exclude,glob)**/benches/**"  # both sides have those of the same suite
_OURS = "what rlox-opt runs by"


@dataclass
class _Found:
    """What is known of a project: for each thing what it is and what says so; what people should
    know of it; and what is lacking for commits to be compared."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    benchmarks: list[str] = field(default_factory=list)
    command: str = ""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "init",
        help="find a project's package, build and benchmarks",
        description="Find what is needed to compare two commits of the project in the current "
        "folder: its package, its build, its suite of benchmarks and what the suite needs. "
        "What cannot be found is set in [tool.rlox-opt] of pyproject.toml.",
        epilog=_EXAMPLES
        + exits.told(
            good="commits can be compared", cannot_tell="something is lacking, which is told"
        ),
    )
    add = parser.add_argument
    add(
        "--suite",
        metavar="PATH",
        help="a folder of asv benchmarks, an asv.conf.json, a file or folder of pytest "
        "benchmarks, or a folder with a crate",
    )
    add("--dry-run", action="store_true", help="tell what would be written, and write nothing")
    add("--json", action="store_true", help="print what is found as JSON")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Tell what is found, and write what is not; returns the exit code.

    Raises:
        UsageError: `--suite` is no suite of the project, or cannot be written.
        NotWrittenError: pyproject.toml cannot be written.
    """
    project: Project = arguments.project
    text = ""
    if arguments.suite is not None:
        project, text = _chosen(project, arguments.suite)
    found = _found(project)
    text = "" if found.lacking else text
    path = project.root / "pyproject.toml"
    if text and not arguments.dry_run:
        files.write(path, text)
    if arguments.json:
        written = {"path": str(path), "suite": project.settings.suite_path} if text else None
        print(json.dumps(_facts(project, found) | {"written": written}, indent=1))
    else:
        for line in _lines(project, found):
            say(line)
        if text:
            verb = "would write" if arguments.dry_run else "written"
            say(f"{verb:<13}suite = {project.settings.suite_path!r} in [tool.rlox-opt] of {path}")
        if found.command:
            print(f"\n{_next(found.command)}")
    for lacking in found.lacking:
        say(f"{arguments.parser.prog}: {lacking}", stderr=True)
    return CANNOT_TELL if found.lacking else GOOD


def _next(command: str) -> str:
    """The command to run next, in two lines that can be copied where the terminal is narrow."""
    line = f"run next:    {command}"
    width = output.columns(sys.stdout)
    return line if width is None or len(line) <= width else line.replace(" --", " \\\n    --")


def _chosen(project: Project, given: str) -> tuple[Project, str]:
    """The project with the suite that is given, and the text of pyproject.toml that says so; "" is
    for one that need not say it."""
    path = Path(given)
    if not given or not path.exists():
        raise UsageError(f"--suite {given!r}: is not there; name {kinds.names()}")
    top = project.top.resolve()
    inside = path.resolve().is_relative_to(top)
    if path.is_file() and path.suffix not in (".json", ".jsonc"):
        within = PurePosixPath(path.resolve().relative_to(top)) if inside else None
        if within and not kinds.taking(top, within):
            raise UsageError(f"--suite {given}: is no suite; name {kinds.names()}")
    if not inside:
        raise UsageError(
            f"--suite {given}: lies outside {project.top}; name a folder in it, or give each "
            "comparison its suite: rlox-opt diff --suite FOLDER"
        )
    named = os.path.relpath(path.resolve(), project.root.resolve())
    settings = msgspec.structs.replace(project.settings, suite=named)
    asked = dataclasses.replace(project, settings=settings)
    Suites(asked).here()
    try:
        if project.configuration == asked.configuration:
            return project, ""
    except UsageError:
        pass  # which is why one is given
    pyproject = project.root / "pyproject.toml"
    text = read_text(pyproject) if os.path.lexists(pyproject) else ""
    return asked, table.with_setting(text, "suite", named, pyproject)


def _found(project: Project) -> _Found:
    found = _Found()
    try:
        found.known["package"] = project.named
    except UsageError as error:
        found.lacking.append(f"{error}")
    _repository(project, found)
    suite = None
    try:
        suite = Suites(project).here()
    except UsageError as error:
        found.lacking.append(f"{error}")
    _build(project, suite.configuration if suite else None, found)
    if suite:
        _suite(project, suite, found)
    if found.lacking:
        if not suite and project.settings == Settings():
            found.lacking = _elsewhere(project) or found.lacking
        return found
    base, head = _sides(project, suite)
    named = [name for name in found.benchmarks if project.compared.search(name)]
    found.command = f"rlox-opt diff {base} {head}"
    if suite and named:  # the module alone is read, by its ^
        name = suite.kind.lightest(suite.folder, named)
        pattern = name if re.fullmatch(r"[\w.:/]+", name) else re.escape(name)
        found.command += f" --bench {shlex.quote(f'^{pattern}')}"
    if suite and head != WORKING_TREE and _is_new(project, suite, head):
        found.command += f" --suite {WORKING_TREE}"
    return found


def _elsewhere(project: Project) -> list[str]:
    """Where to start instead, if the root is no project and several below it have suites."""
    below = kinds.below(project.top, project.within, project.files() or ())
    if len(below) < 2:
        return []
    places = ", ".join(f"{folder.relative_to(project.within)}" for folder in below)
    return [f"{project.root}: is no project; start rlox-opt in one of: {places}"]


def _repository(project: Project, found: _Found) -> None:
    commits = project.commits
    try:
        head = commits.resolve("HEAD").commit
        branch = commits.repository().maybe("rev-parse", "--abbrev-ref", "HEAD") or "HEAD"
        changed = ", with changes that are in no commit" if unmeasured.dirty(project) else ""
    except UsageError as error:
        found.lacking.append(f"{error}")
        return
    name = branch.strip()
    on = "" if name == "HEAD" else f"{name} at "
    found.known["repository"] = f"git, {on}{head[:10]}{changed}", f"{project.top}"


def _sides(project: Project, suite: Suite | None) -> tuple[str, str]:
    """The newest commit that changes sources, or otherwise what is measured, and the one before
    it."""
    commits = project.commits
    if not commits.ancestors("HEAD", 1):
        return "HEAD", WORKING_TREE
    for paths in filter(None, (_sources(project, suite), project.measured)):
        newest = commits.newest("HEAD", *paths)
        if newest == commits.resolve("HEAD").commit:
            break
        if newest and commits.ancestors(newest, 1):
            return f"{newest[:10]}~1", newest[:10]
    return "HEAD~1", "HEAD"


def _sources(project: Project, suite: Suite | None) -> tuple[str, ...]:
    """Patterns for git of what a build most likely takes: the package's folder, and sources of
    extensions. For benches of crates, sources in Rust count where they lie in the project, not
    beside it, as those of bindings do, unless the project is a crate that measures others; benches
    themselves do not count. What is measured besides may change no build, such as a list of
    changes. Empty where the settings name what is measured, and where the package lies in no usual
    folder."""
    places = package_name.places(project.root, project.package)
    if project.settings.measured or not (places or package_name.is_crate(project.root)):
        return ()
    own = (f":(literal){project.within / place}" for place in places)
    left_out = (path for path in project.measured if path.startswith(":(exclude"))
    crates, top = _crates(suite), project.top
    beside = not crates or beside_benches.alone(project.root, top)
    rust = f"{'' if beside else unmeasured.as_it_is(project.within)}*.rs"
    benches = {bench_targets.place(crate, of) for crate in crates for of in crate.targets}
    inside = sorted(path.relative_to(top) for path in benches if path.is_relative_to(top))
    but = (f":(exclude,literal){path}" for path in inside)
    return (*own, *_COMPILED, rust, *left_out, _BENCHES, *but)


def _crates(suite: Suite | None) -> list[Crate]:
    """Those that a suite of criterion has; none of another suite."""
    by_criterion = suite is not None and suite.configuration.kind == "criterion"
    return bench_targets.measured(suite.folder) if suite and by_criterion else []


def _is_new(project: Project, suite: Suite, head: str) -> bool:
    """Whether a commit lacks the working tree's suite, or a part of it."""
    of = suite.configuration
    paths = {f"{of.suite}", f"{of.path}"}
    return any(project.commits.lacks(head, path) for path in paths if (project.top / path).exists())


def _build(project: Project, configuration: Configuration | None, found: _Found) -> None:
    by = project.settings.build
    folder = project.top / configuration.project if configuration else project.root
    if configuration and configuration.kind == "criterion":
        found.known["build"] = "cargo bench --no-run, by the project's own profile", "Cargo.toml"
        if shutil.which("cargo") is None:
            found.lacking.append("cargo: is not on PATH; install Rust from https://rustup.rs")
    elif isinstance(by, Cargo):
        found.known["build"] = f"cargo, {by.crate}", "pyproject.toml, [tool.rlox-opt.build]"
    elif isinstance(by, Command):
        told = shlex.join(by.command)
        found.known["build"] = told, "pyproject.toml, [tool.rlox-opt.build]"
    elif configuration and configuration.by_commands:
        commands = configuration.build_command or configuration.install_command
        found.known["build"] = f"asv's commands: {'; '.join(commands)}", f"{configuration.path}"
    else:
        try:
            found.known["build"] = _back_end(folder)
        except (NotReadError, UsageError) as error:
            if f"{error}" not in found.lacking:
                found.lacking.append(f"{error}")


def _back_end(folder: Path) -> tuple[str, str]:
    """The build back-end of a folder, and what names it. Raises NotReadError for a pyproject.toml
    that cannot be read, and UsageError where nothing says how it is built."""
    path = folder / "pyproject.toml"
    pyproject = schema.read(path, dict[str, Any]) if path.exists() else {}
    system = pyproject.get("build-system")
    if isinstance(system, dict):
        name = system.get("build-backend", "setuptools, the default")
        own = ", which lies in the project" if system.get("backend-path") else ""
        return f"{name}{own}", "pyproject.toml, [build-system]"
    if (folder / "setup.py").is_file():
        return "setuptools", "setup.py"
    if "project" in pyproject:
        return "setuptools, the default", "pyproject.toml, which has no [build-system]"
    raise UsageError(
        f"{folder}: nothing says how it is built: there is no pyproject.toml with [build-system] "
        "and no setup.py; write build_command in asv.conf.json, or build = "
        '{ by = "command", command = [ … ] } under [tool.rlox-opt] of pyproject.toml'
    )


def _suite(project: Project, suite: Suite, found: _Found) -> None:
    of = suite.configuration
    found.benchmarks = suite.kind.benchmarks(suite.folder)
    found.uncovered = uncovered(suite)
    where = f"{of.path}" if of.path != of.suite else "pyproject.toml, [tool.rlox-opt]"
    if of.kind != "asv" and not project.settings.suite:
        where = f"{of.kind}'s: {suite.kind.found_by}"
    inside = suite.folder.is_relative_to(project.top)
    folder = suite.folder.relative_to(project.top) if inside else suite.folder
    functions = number_of(len(found.benchmarks), "benchmark function")
    found.known["suite"] = f"{folder}, {functions}", where
    if of.kind == "asv" and not project.settings.suite:
        found.notes += kinds.beside_asv(project.top, project.within, project.files())
    if of.kind == "criterion":
        told = bench_targets.one_alone(_crates(suite), project.root)
        found.notes += filter(None, [told])
        return
    if project.settings.build is not None:
        its = "pyproject.toml, [tool.rlox-opt.build]"
        found.known["environment"] = "that of rlox-opt itself", its
        found.known["python"] = interpreters.running().version, _OURS
        return
    extras = [f"the package's extra {extra}" for extra in of.extras]
    needs = ", ".join((*extras, *of.requirements)) or "nothing beside the package"
    if of.run_env:
        needs += f"; variables {', '.join(of.run_env)}"
    found.known["environment"] = f"by uv: {needs}", where
    _python(project, of, where, found)
    found.notes += of.notes


def _python(project: Project, of: Configuration, where: str, found: _Found) -> None:
    """The interpreter that a comparison takes."""
    requires = pep517.asked(lambda name: readable_text(project.top / of.project / name)).python
    try:
        python, note = interpreters.chosen("", of.pythons, requires)
    except UsageError as error:
        found.lacking.append(f"{error}")
        return
    by = _OURS
    if python != interpreters.running():
        by = f"the project's requires-python, {requires}"
    for name in of.pythons:
        with contextlib.suppress(UsageError):
            by = where if interpreters.named(name) == python else by
    found.known["python"] = python.version, by
    found.notes += filter(None, [note])


def _lines(project: Project, found: _Found) -> Iterator[str]:
    """For people."""
    yield f"{'project':<13}{project.root}"
    for name, (what, where) in found.known.items():
        yield f"{name:<13}{what}  ({where})"
    if project.settings.one_process:
        yield f"{'processes':<13}one for both sides  (pyproject.toml, [tool.rlox-opt])"
    for note in found.notes:
        yield f"{'note':<13}{note}"
    for one in found.uncovered:
        yield f"{'uncovered':<13}{one}"


def _facts(project: Project, found: _Found) -> dict[str, Any]:
    """What `--json` prints."""
    known = {name: {"is": what, "from": where} for name, (what, where) in found.known.items()}
    return {
        "schema": 1,
        "root": str(project.root),
        "one_process": project.settings.one_process,
        "known": known,
        "benchmarks": found.benchmarks,
        "notes": found.notes,
        "uncovered": found.uncovered,
        "lacking": found.lacking,
        "next": found.command,
    }
