"""The sides of a comparison, as they are asked for: commits, releases and the working tree, each
with an interpreter, requirements and features; and the suite that both are measured by."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from rlox_opt.cli.types import Once
from rlox_opt.project import cards, releases
from rlox_opt.project.builders.pep517 import asked_by
from rlox_opt.project.commits import WORKING_TREE, Revision
from rlox_opt.system.patterns import beginning
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.project.artefacts import Artefact
    from rlox_opt.project.builds import Builds
    from rlox_opt.project.project import Project
    from rlox_opt.project.suites import Suite
    from rlox_opt.system.progress import Lines

SIDES = ("base", "head")
_BUILD_S = 40.0


SUITE_OF_ALL = (
    "measure all commits by the benchmarks of this commit or folder, also those that have none"
)
SUITE_OF_ONE = "take the benchmarks of this commit or folder"


def add_suite(parser: argparse.ArgumentParser, told: str) -> None:
    """By what is measured; `told` is the option's help."""
    parser.add_argument("--suite", metavar="REV|FOLDER", help=told)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What each side is given beyond its commit."""
    add_suite(parser, "measure both sides by the benchmarks of this commit or folder; also where a "
        "side has none (default: those of the later side)")  # fmt: skip
    add = parser.add_argument
    add("--with", metavar="[SIDE:]REQ", action="append", default=[], dest="extra",
        help="a requirement for a side's environment, such as base:numpy==1.26; for both sides "
        "without base: or head:; may be repeated")  # fmt: skip
    add("--python", metavar="[SIDE:]VERSION", action="append", default=[],
        help="an interpreter that is installed, such as head:3.13")  # fmt: skip
    add("--features", metavar="[SIDE:]LIST", action="append", default=[],
        help="cargo's features to build with, such as head:fast,simd; or none")  # fmt: skip


def add_environment(parser: argparse.ArgumentParser) -> None:
    """What all commits of a search are given."""
    add = parser.add_argument
    add("--with", metavar="REQ", action="append", default=[], dest="extra",
        help="a requirement for the environment of every commit, such as numpy==1.26; may be "
        "repeated")  # fmt: skip
    add("--python", metavar="VERSION", action=Once, default="",
        help="an interpreter that is installed, such as 3.13, for every commit")  # fmt: skip


def in_one_environment(project: Project, text: str, arguments: argparse.Namespace) -> Revision:
    """A commit with what `add_environment` asks for. Raises UsageError where it is not there."""
    extra = tuple(map(_requirement, arguments.extra))
    return replace(project.commits.resolve(text), python=arguments.python, extra=extra)


def resolved(
    project: Project, texts: Sequence[str], arguments: argparse.Namespace
) -> list[Revision]:
    """Base and head as asked for. Raises UsageError where one is not there, or asked for twice."""
    return [
        _given(_revision(project, text), side, arguments)
        for side, text in zip(SIDES, texts, strict=True)
    ]


def _revision(project: Project, text: str) -> Revision:
    return releases.resolve(text) if releases.is_one(text) else project.commits.resolve(text)


def _given(revision: Revision, side: str, arguments: argparse.Namespace) -> Revision:
    python = [value for of, value in map(_split, arguments.python) if of in ("", side)]
    if len({*python}) > 1:
        raise UsageError(f"--python: {side} is given {' and '.join(python)}; it takes one")
    features = [value for of, value in map(_split, arguments.features) if of in ("", side)]
    if features and (revision.features is not None or len({*features}) > 1):
        given = [revision.text, *(f"--features {of}" for of in features)]
        raise UsageError(f"{' and '.join(given)} give {side} features twice; leave one out")
    extra = tuple(
        _requirement(value) for of, value in map(_split, arguments.extra) if of in ("", side)
    )
    named = revision.features
    if features:
        named = () if features[0] == "none" else tuple(sorted(features[0].split(",")))
    return replace(revision, python=python[0] if python else "", extra=extra, features=named)


def _requirement(text: str) -> str:
    """As it is, a path with all its folders, since uv runs in another one. Raises UsageError where
    uv could make nothing of it."""
    try:
        Requirement(text)
    except InvalidRequirement:
        if "://" in text:
            return text
        if not Path(text).exists():
            raise UsageError(
                f"--with {text!r}: is no requirement; write numpy, numpy==1.26 or a URL"
            ) from None
        return str(Path(text).resolve())
    return text


def _split(text: str) -> tuple[str, str]:
    """A side ("" for both) and what it is given. Raises UsageError where that is nothing."""
    side, colon, value = text.partition(":")
    if not colon or side not in SIDES:
        side, value = "", text
    if not value:
        raise UsageError(f"{text!r} gives {side} nothing; write {side}:VALUE")
    return side, value


def measured_by(
    project: Project, sides: Sequence[Revision], given: str | None
) -> tuple[Project, Suite]:
    """The project with the suite that all sides are measured by: the one that is given, or that of
    the last side that is a commit, or the working tree's. Raises UsageError."""
    from rlox_opt.project.suites import Suites

    of = [side for side in sides if not side.is_release]
    return Suites(project).lend(of[-1] if of else Revision(WORKING_TREE, ""), given)


def in_environments(
    project: Project, suite: Suite, sides: Sequence[Revision]
) -> tuple[Project, Suite]:
    """The project and its suite as they are where a side asks for an interpreter, for requirements
    or for a release: both sides are then built as PEP 517 says, in environments, also of a project
    that says otherwise how it is built.

    Raises:
        UsageError: a side does not say how that would be.
    """
    if project.settings.build is None or not any(side.needs_environment for side in sides):
        return project, suite
    asks = suite.configuration
    for side in sides:
        of = None if side.is_release else asked_by(project.commits, side.commit, asks.project)
        if of and not of.declared:
            raise UsageError(
                f"{side.text!r}: has no [build-system] in its pyproject.toml, by which it could be "
                f"built in an environment; write one, or leave out releases, --python and --with"
            )
    note = (
        "all sides are built in environments, by [build-system] and not by [tool.rlox-opt.build]: "
        "releases, --python and --with need that"
    )
    # Its commands are for asv: the project itself says another way.
    asks = replace(asks, build_command=(), install_command=(), notes=(*asks.notes, note))
    settings = msgspec.structs.replace(project.settings, build=None)
    lent = suite.folder, asks
    return replace(project, settings=settings, lent=lent), replace(suite, configuration=asks)


def asked_notes(project: Project, suite: Suite) -> Sequence[str]:
    """What people should know of the environments that the suite's configuration asks for. That is
    of no matter where the project says how it is built."""
    return suite.configuration.notes if project.settings.build is None else ()


def builds_for(project: Project, bench: re.Pattern[str] | str) -> Builds:
    """Those of a project for the benchmarks that `bench` asks for: a pattern of their names, or a
    part of one name. They have twins where it is found in the name of a benchmark that calls such:
    the cards tell the names, which the suite has only once the twins are built."""
    begin = "" if isinstance(bench, str) else beginning(bench)
    builds = replace(project.builds, beginning=begin)
    calls = project.settings.twins.benchmark
    if not calls:
        return builds
    names = calls, *cards.benchmarks_of_twins(project)
    if isinstance(bench, str):
        asked = calls in bench or any(bench in name for name in names)
    else:
        asked = any(map(bench.search, names))
    return replace(builds, twins=asked)


def built(builds: Builds, sides: Sequence[Revision], progress: Lines) -> list[Artefact]:
    """The builds of all sides, each like the one before. Raises as `Builds.build` does."""
    progress.plan([(f"build of {side.title}", _BUILD_S) for side in sides])
    made: list[Artefact] = []
    for side in sides:
        progress.begin(f"build of {side.title}")
        made.append(builds.build(side, *made))
        progress.end("ready")
    return made
