"""The sides of a comparison, as they are asked for: commits, releases and the working tree, each
with an interpreter, requirements and features; and the suite that both are measured by."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from rlox_opt.project import releases
from rlox_opt.project.commits import WORKING_TREE, Revision
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.project.project import Project
    from rlox_opt.project.suites import Suite

SIDES = ("base", "head")


def add_suite(parser: argparse.ArgumentParser) -> None:
    """By what is measured."""
    parser.add_argument(
        "--suite", metavar="REV|FOLDER", help="benchmarks of another commit or of a folder, for "
        "both sides: also for commits that have none (default: those of the later side)"
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What each side is given beyond its commit."""
    add_suite(parser)
    add = parser.add_argument
    add("--with", metavar="[SIDE:]REQ", action="append", default=[], dest="extra",
        help="a requirement of a side's environment: base:numpy==1.26; without base: or head: of "
        "both; may be repeated")  # fmt: skip
    add("--python", metavar="[SIDE:]VERSION", action="append", default=[],
        help="an interpreter that is installed: head:3.13")  # fmt: skip
    add("--features", metavar="[SIDE:]LIST", action="append", default=[],
        help="cargo's features to build with: head:fast,simd, or none")  # fmt: skip


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
    return dataclasses.replace(
        revision, python=python[0] if python else "", extra=extra, features=named
    )


def _requirement(text: str) -> str:
    """As it is. Raises UsageError where uv could make nothing of it."""
    try:
        Requirement(text)
    except InvalidRequirement:
        if "://" not in text and not Path(text).exists():
            raise UsageError(
                f"--with {text!r}: is no requirement; write numpy, numpy==1.26 or a URL"
            ) from None
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

    of = [side for side in sides if not releases.is_one(side.text)]
    return Suites(project).lend(of[-1] if of else Revision(WORKING_TREE, ""), given)
