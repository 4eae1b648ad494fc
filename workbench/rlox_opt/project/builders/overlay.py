"""One suite for both sides: the benches of one checkout's crate replace those of the same crate in
another checkout.

The folders of the benches are copied, and those tables of Cargo.toml that only benches need:
[[bench]] and the dev-dependencies. The measured code and how it is compiled stay as they are.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from rlox_opt.project.bench_targets import MANIFEST, Crate, Target, place
from rlox_opt.system.files import NotReadError, read_text

_HEADER = re.compile(r"^\s*\[\[?\s*([^\[\]]+(?:\[[^\]]*\])?[^\[\]]*?)\s*\]\]?\s*(?:#.*)?$")
_OF_BENCHES = re.compile(
    r"bench|(?:target\..+\.)?(?:dev-dependencies|dev_dependencies)(?:\..+)?", re.DOTALL
)


class NotLaidOverError(Exception):
    """A suite that cannot be put into another checkout; the message says why."""


def lay_over(crate: Crate, there: Path) -> None:
    """Put the benches of `crate` in place of those of the same crate in the folder `there`. Files
    that are equal are not touched, so that cargo does not compile them again. Raises
    NotLaidOverError."""
    manifest, places = there / MANIFEST, sorted(_places(crate))
    try:
        ours, theirs = read_text(crate.manifest), read_text(manifest)
        text = merged(ours, theirs)
    except NotReadError as error:
        raise NotLaidOverError(f"it has no {crate.name} in that folder: {error.why}") from None
    for path in places:
        inner = path.relative_to(crate.folder)
        if path.is_dir():
            _mirror(path, there / inner)
        else:
            _copy(path, there / inner)
    if text != theirs:
        manifest.write_text(text, encoding="utf-8")


def merged(ours: str, theirs: str) -> str:
    """The text of a Cargo.toml with another's tables for benches. Raises NotLaidOverError."""
    try:
        before, of = (_decoded(text) for text in (theirs, ours))
        if _name(before) != _name(of):
            raise NotLaidOverError(f"its crate there is {_name(before)}, and not {_name(of)}")
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise NotLaidOverError(f"its Cargo.toml cannot be read: {error}") from None
    if _of_benches(before) == _of_benches(of):
        return theirs
    kept = "".join(text for name, text in _blocks(theirs) if not _OF_BENCHES.fullmatch(name))
    more = "".join(text for name, text in _blocks(ours) if _OF_BENCHES.fullmatch(name))
    text = f"{kept.rstrip()}\n\n{more.rstrip()}\n"
    made: dict[str, Any] = {}
    with contextlib.suppress(msgspec.DecodeError, TypeError):
        made = _decoded(text)
    if not made or _of_benches(made) != _of_benches(of) or _rest(made) != _rest(before):
        raise NotLaidOverError("its Cargo.toml is written in a way that cannot be taken apart")
    return text


def _places(crate: Crate) -> set[Path]:
    """The files and folders of its benches."""
    return {_place(crate, of) for of in crate.targets}


def _place(crate: Crate, of: Target) -> Path:
    if not of.source.is_relative_to(crate.folder):
        raise NotLaidOverError(f"the source of {of.name} lies outside its crate")
    return place(crate, of)


def _mirror(ours: Path, theirs: Path) -> None:
    """Make a folder equal to another one."""
    there = {path.relative_to(ours) for path in ours.rglob("*")}
    for path in sorted(theirs.rglob("*"), reverse=True):
        if path.relative_to(theirs) not in there:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for inner in sorted(there):
        if (ours / inner).is_file():
            _copy(ours / inner, theirs / inner)


def _copy(ours: Path, theirs: Path) -> None:
    if theirs.is_file() and theirs.read_bytes() == ours.read_bytes():
        return
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.unlink(missing_ok=True)
    shutil.copyfile(ours, theirs)


def _decoded(text: str) -> dict[str, Any]:
    table = msgspec.toml.decode(text)
    if not isinstance(table, dict):
        raise TypeError("it is no table")
    return table


def _name(table: dict[str, Any]) -> str:
    return str(table["package"]["name"])


def _of_benches(table: dict[str, Any]) -> dict[str, Any]:
    """The tables of a Cargo.toml that only benches (and tests) need."""
    found = {name: of for name, of in table.items() if _OF_BENCHES.fullmatch(name)}
    of_targets = {
        name: {key: value for key, value in of.items() if _OF_BENCHES.fullmatch(key)}
        for name, of in (table.get("target") or {}).items()
    }
    return found | {"target": {name: of for name, of in of_targets.items() if of}}


def _rest(table: dict[str, Any]) -> dict[str, Any]:
    """The other tables."""
    rest = {name: of for name, of in table.items() if not _OF_BENCHES.fullmatch(name)}
    of_targets = {
        name: {key: value for key, value in of.items() if not _OF_BENCHES.fullmatch(key)}
        for name, of in (rest.pop("target", None) or {}).items()
    }
    return rest | {"target": {name: of for name, of in of_targets.items() if of}}


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The tables of a TOML text: the name of each, and its lines with the header."""
    name, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line):
            yield name, "".join(lines)
            name, lines = header[1].strip(), []
        lines.append(line if line.endswith("\n") else f"{line}\n")
    yield name, "".join(lines)
