"""What benches take from outside their own files. Each side has its own of that, while both have
the same benches, so a benchmark may do something else in each."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from rlox_opt.project import asv_files, bench_targets
from rlox_opt.project.bench_targets import MANIFEST, place
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, readable_text
from rlox_opt.system.output import few

_OF_TESTS = ("dev-dependencies", "dev_dependencies")
_BUILT_IN = ("dependencies", "build-dependencies", "build_dependencies")
_NAMED = re.compile(
    r'\binclude(?:_str|_bytes)?!\s*\(\s*"([^"\\]+)"|#\[\s*path\s*=\s*"([^"\\]+)"\s*\]'
)
_MORE_OR_LESS = "may do more or less in one of them"

_Tables = Mapping[PurePosixPath, Mapping[str, Any]]  # of Cargo.toml files, by their folders


def alone(folder: Path, top: Path) -> bool:
    """Whether the crate in a folder of the checkout `top` has benches of other crates alone: it
    cannot be published, and depends on a crate that lies outside its folder."""
    return _is_alone(_from(top, folder), _tables(top, asv_files.upwards(folder)))


def differing(
    asked: Mapping[Path, Collection[str]], top: Path, base: Iterable[str], head: Iterable[str]
) -> list[str]:
    """A note on each thing beside the benches that differs between two commits, of whose files
    `base` and `head` are git's rows. `asked` are the names of benches, by the folders of their
    crates in the checkout `top`."""
    changed = {row.partition("\t")[2] for row in {*base} ^ {*head}}
    tables = _tables(top, (path.parent for path in bench_targets.manifests(top)))
    notes = [
        f"{tables[of]['package']['name']}, which only benches and tests use, differs between the "
        f"sides: a benchmark that calls it {_MORE_OR_LESS}"
        for of in sorted(_helpers([_from(top, folder) for folder in asked], tables))
        if any(path.startswith(f"{of}/") for path in changed)
    ]
    for folder, names in asked.items():
        if crate := bench_targets.read(folder):
            of_suite = {_from(top, place(crate, of)) for of in crate.targets}
            apart = sorted(path for path in changed if not _within(path, of_suite))
            targets = [of for of in crate.targets if of.name in names]
            src = _from(top, folder / "src")
            in_src = any(_within(f"{_from(top, of.source)}", [src]) for of in targets)
            if in_src and _is_alone(_from(top, folder), tables):
                if any(_within(path, [src]) for path in apart):
                    notes.append(
                        f"{src} differs between the sides, beside the benches in it: a benchmark "
                        f"that calls what is there {_MORE_OR_LESS}"
                    )
                apart = [path for path in apart if not _within(path, [src])]
            named = {*_named(top, {place(crate, of) for of in targets})}
            if found := [path for path in apart if path in named]:
                verb = "differ" if len(found) > 1 else "differs"
                notes.append(
                    f"{few(found)}, which benches include, {verb} between the sides: a benchmark "
                    f"of these {_MORE_OR_LESS}"
                )
    return notes


def _named(top: Path, places: Collection[Path]) -> Iterator[str]:
    """The files that sources in these places name by a literal, from the top."""
    for at in sorted(places):
        for source in [at] if at.suffix == ".rs" else sorted(at.rglob("*.rs")):
            for found in _NAMED.finditer(readable_text(source)):
                yield f"{_from(top, source.parent / (found[1] or found[2]))}"


def _helpers(benches: Sequence[PurePosixPath], tables: _Tables) -> set[PurePosixPath]:
    """The crates that only benches and tests use, of those on which the crates `benches` depend:
    they are dev-dependencies of what is measured, no other crate is built with them, and they
    cannot be published."""
    near = {of for bench in benches for of in _by_path(bench, tables, (*_BUILT_IN, *_OF_TESTS))}
    shipped = {of for other in tables for of in _by_path(other, tables, _BUILT_IN)}
    of_benches = {of for of in tables if "bench" in tables[of] and _is_alone(of, tables)} - shipped
    users = {*benches, *near} - of_benches
    of_tests = {of for user in users for of in _by_path(user, tables, _OF_TESTS)}
    crates = {of for of in tables if "package" in tables[of] and not _is_published(tables[of])}
    found = (near & of_tests & crates) - {*benches}
    while True:
        others = {*tables} - of_benches - found
        built_in = {of for other in others for of in _by_path(other, tables, _BUILT_IN)}
        if not found & built_in:
            return found
        found -= built_in


def _is_alone(at: PurePosixPath, tables: _Tables) -> bool:
    others = _by_path(at, tables, (*_BUILT_IN, *_OF_TESTS))
    outside = any(not other.is_relative_to(at) for other in others)
    return outside and not _is_published(tables[at])


def _is_published(table: Mapping[str, Any]) -> bool:
    """Whether a crate can be published; crates.io takes none without a description."""
    package = table.get("package")
    if not isinstance(package, dict) or package.get("publish") in (False, []):
        return False
    return "description" in package


def _by_path(at: PurePosixPath, tables: _Tables, keys: Collection[str]) -> set[PurePosixPath]:
    """The folders of the crates that the one in the folder `at` names by a path, in these tables of
    its manifest. A workspace may name the path for its members."""
    table = tables.get(at, {})
    home = next((of for of in (at, *at.parents) if "workspace" in tables.get(of, {})), at)
    found = set[PurePosixPath]()
    with contextlib.suppress(AttributeError, TypeError):  # cargo takes no such manifest
        shared = (tables.get(home, {}).get("workspace") or {}).get("dependencies") or {}
        parts = [table, *(table.get("target") or {}).values()]
        named = [pair for of in parts for key in keys for pair in (of.get(key) or {}).items()]
        for name, said in named:
            inherits = isinstance(said, dict) and said.get("workspace")
            by, where = (shared.get(name), home) if inherits else (said, at)
            if isinstance(by, dict) and "path" in by:
                found.add(PurePosixPath(posixpath.normpath(where / by["path"])))
    return found


def _tables(top: Path, folders: Iterable[Path]) -> dict[PurePosixPath, Mapping[str, Any]]:
    """The Cargo.toml files of these folders."""
    found: dict[PurePosixPath, Mapping[str, Any]] = {}
    for folder in folders:
        with contextlib.suppress(NotReadError):
            found[_from(top, folder)] = schema.read(folder / MANIFEST, dict[str, Any])
    return found


def _from(top: Path, path: Path) -> PurePosixPath:
    return PurePosixPath(os.path.relpath(path, top))


def _within(path: str, places: Collection[PurePosixPath]) -> bool:
    return any(PurePosixPath(path).is_relative_to(of) for of in places)
