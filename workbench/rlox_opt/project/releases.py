"""Releases as sides: `pypi:NAME==VERSION`, as an index has them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from rlox_opt.project.artefacts import NotBuiltError
from rlox_opt.project.builders import wheels
from rlox_opt.project.commits import RELEASE, Revision
from rlox_opt.project.interpreters import Interpreter
from rlox_opt.system.usage import UsageError

_EXACT = re.compile(r"==\s*[^*\s,]+")
FROM_SOURCES = "a release, built here from its sources (it has no wheel for this interpreter)"
_FROM_WHEEL = "a release, from its wheel"


def is_one(text: str) -> bool:
    """Whether a revision, as the user wrote it, is a release."""
    return text.startswith(RELEASE)


def resolve(text: str) -> Revision:
    """The revision of `pypi:NAME==VERSION`. Raises UsageError unless it names one version."""
    name = text.removeprefix(RELEASE)
    try:
        of = Requirement(name)
    except InvalidRequirement:
        of = None
    if of is None or not _EXACT.fullmatch(str(of.specifier)) or of.url or of.extras or of.marker:
        raise UsageError(f"{text!r} names no release: write one version of it, pypi:networkx==3.2")
    return Revision(text, text)


def keep(revision: Revision, interpreter: Interpreter, folder: Path) -> tuple[Path, wheels.Built]:
    """The release, installed into a folder of its own in `folder` unless it is there: from its
    wheel, or from its sources if it has no wheel for this interpreter. Raises NotBuiltError."""
    name = revision.text.removeprefix(RELEASE)
    key = hashlib.sha256(f"{name}\0{interpreter.title}".encode()).hexdigest()[:16]
    place = folder / f"wheel-{key}"
    if built := wheels.kept(place):
        return place, built
    made = {"builder": _FROM_WHEEL, "interpreter": interpreter.title}
    python, commit = interpreter.path, revision.commit
    try:
        return place, wheels.keep(name, python, commit, made, place, "--only-binary", ":all:")
    except NotBuiltError as error:
        without = error
    made |= {"builder": FROM_SOURCES, "compilers": wheels.compilers(folder)}
    try:
        return place, wheels.keep(name, python, commit, made, place)
    except NotBuiltError as error:
        told = f"{error}" if f"{error}" == f"{without}" else f"{error}; from a wheel: {without}"
        raise NotBuiltError(f"{revision.text}: {told}") from None
