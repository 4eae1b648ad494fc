"""A package by a command that the project names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from rlox_opt.project.artefacts import NotBuiltError
from rlox_opt.project.builders import wheels
from rlox_opt.project.commits import Revision
from rlox_opt.project.interpreters import running
from rlox_opt.system import git
from rlox_opt.system.commands import attempt
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_OUT = "{out}"


class Command(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="by", tag="command"
):
    """A command that runs in a checkout and puts the package into the folder {out}."""

    command: tuple[str, ...]
    """The command's words; {out} is replaced by that folder."""


def build(by: Command, package: str, revision: Revision, checkout: Path, kept: Path) -> Path:
    """The folder within `kept` into which the command has put the package, completely or not at
    all.

    Raises:
        NotBuiltError: the command cannot be started, fails, or leaves no package.
        UsageError: features are asked for, which only cargo has.
    """
    if revision.features:
        raise UsageError(
            f"{revision.text!r}: features are cargo's; this project is built by {by.command[0]!r}"
        )
    parts = (*by.command, running().title, *wheels.outside(checkout))
    asked = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    folder = kept / f"{revision.commit[:12]}-{asked}"
    if not folder.exists():
        with scratch(kept) as built:
            command = [word.replace(_OUT, str(built)) for word in by.command]
            done = attempt(command, checkout, git.trusting(checkout))
            if done.status:
                raise NotBuiltError(f"{revision.title} does not build:\n{done.tail}")
            if not any((built / name).exists() for name in (package, f"{package}.py")):
                raise NotBuiltError(
                    f"{revision.title}: {by.command[0]!r} left no {package} in {_OUT}"
                )
            built.rename(folder)
    return folder
