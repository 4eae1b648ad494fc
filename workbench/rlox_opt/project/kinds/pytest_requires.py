"""The requirements of a project's tests: those of an extra, a dependency group, or a file of
requirements. The first of them that names pytest and a benchmark plug-in is taken; if none does,
the first that names either."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rlox_opt.project import requirement_files
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, readable_text
from rlox_opt.system.schema import table_in, texts_in

_PLUG_INS = {"pytest-benchmark", "pytest-codspeed", "pytest-speed"}
_MODULE = re.compile(r"\bpytest_(?:benchmark|codspeed)\b")
_RUNNER = "pytest>=7"
_DEEPEST = 8


class Taken(NamedTuple):
    """Requirements, and for users, where they come from."""

    requirements: tuple[str, ...]
    source: str


def found(root: Path) -> Taken:
    """The requirements of the tests of the project in a folder. pytest is always among them."""
    sources = [of for of in _sources(root) if of.requirements]
    with_plug_in = [of for of in sources if _names(of) & _PLUG_INS]
    with_pytest = [of for of in sources if "pytest" in _names(of)]
    both = [of for of in with_plug_in if of in with_pytest]
    chosen = both[:1] or [*with_plug_in[:1], *with_pytest[:1]]
    every = [each for of in chosen for each in of.requirements]
    more = [] if with_pytest else [_RUNNER]
    return Taken((*dict.fromkeys([*every, *more]),), " and ".join(of.source for of in chosen))


def with_imported(taken: Taken, files: Iterable[Path]) -> Taken:
    """The same, with the plug-ins whose modules files of the suite name. The plug-ins are switched
    off, but an import of one must not fail."""
    text = "\n".join(map(readable_text, files))
    lacking = {_name(module) for module in _MODULE.findall(text)} - _names(taken)
    if not lacking:
        return taken
    source = " and ".join(filter(None, (taken.source, "an import in the suite")))
    return Taken((*taken.requirements, *sorted(lacking)), source)


def _names(of: Taken) -> set[str]:
    return {*map(_name, of.requirements)}


def _sources(root: Path) -> Iterator[Taken]:
    table: Mapping[str, Any] = {}
    with contextlib.suppress(NotReadError):  # the builder raises this error
        table = schema.read(root / "pyproject.toml", dict[str, Any])
    project, tool = table_in(table, "project"), table_in(table, "tool")
    own = canonicalize_name(str(project.get("name", "")))
    groups = table_in(table, "dependency-groups")
    for name in groups:
        yield Taken(tuple(_of_group(groups, name)), f"the dependency group {name}")
    extras = table_in(project, "optional-dependencies")
    for name in extras:
        yield Taken(tuple(_of_extra(extras, name, own)), f"the extra {name}")
    poetry = table_in(tool, "poetry")
    for name, group in table_in(poetry, "group").items():
        yield Taken(_of_poetry(table_in(group, "dependencies")), f"poetry's group {name}")
    yield Taken(_of_poetry(table_in(poetry, "dev-dependencies")), "poetry's dev-dependencies")
    yield Taken(texts_in(table_in(tool, "uv").get("dev-dependencies")), "uv's dev-dependencies")
    for name, of in table_in(tool, "pdm", "dev-dependencies").items():
        yield Taken(texts_in(of), f"pdm's group {name}")
    for pattern in ("*requirements*.txt", "requirements/*.txt", "*/*requirements*.txt"):
        for path in sorted(root.glob(pattern)):
            yield Taken(tuple(_of_file(path)), f"{path.relative_to(root)}")


def _of_group(groups: Mapping[str, Any], name: str, depth: int = 0) -> Iterator[str]:
    for each in groups.get(name, ()) if depth < _DEEPEST else ():
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from _of_group(groups, str(each.get("include-group", "")), depth + 1)


def _of_extra(extras: Mapping[str, Any], name: str, own: str, depth: int = 0) -> Iterator[str]:
    """The requirements of an extra, with the project's other extras that it names written out."""
    for each in texts_in(extras.get(name)) if depth < _DEEPEST else ():
        if _name(each) != own:
            yield each
            continue
        for inner in sorted(Requirement(each).extras):
            yield from _of_extra(extras, inner, own, depth + 1)


def _of_poetry(of: Mapping[str, Any]) -> tuple[str, ...]:
    """The names alone, since poetry has a notation of its own for versions."""
    return tuple(name for name in of if name != "python")


def _of_file(path: Path) -> Iterator[str]:
    """The distributions in a file of requirements and in the files that it includes."""
    lines = requirement_files.lines(str(path), lambda file: readable_text(Path(file)))
    return filter(_name, lines)


def _name(text: str) -> str:
    """The distribution that a requirement names; "" if it is no requirement."""
    try:
        return str(canonicalize_name(Requirement(text).name))
    except InvalidRequirement:
        return ""
