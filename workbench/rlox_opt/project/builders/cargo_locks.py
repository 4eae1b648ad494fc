"""The Cargo.lock files of what back-ends build. Where a commit has none, cargo takes the newest
versions there are. Two sides that are built on different days would have different crates, and what
these gained or lost would be put down to the commit."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from rlox_opt.project.artefacts import Artefact
from rlox_opt.system import files, schema
from rlox_opt.system.files import NotReadError, read_text

_NAME, _FILE = "Cargo.lock", "locks.json"


def lent(like: Artefact | None, sources: str) -> Mapping[str, str]:
    """Those that the other side was built with and a commit lacks, by their paths in a checkout.
    `sources` are git's rows of the commit's files."""
    own = {row.partition("\t")[2] for row in sources.split("\0")}
    with contextlib.suppress(NotReadError):
        theirs = schema.read(like.folder.parent / _FILE, dict[str, str]) if like else {}
        return {inner: text for inner, text in theirs.items() if inner not in own}
    return {}


def lay(locks: Mapping[str, str], checkout: Path) -> None:
    """Write those that a checkout lacks. A link, which may lead out of it, is left as it is."""
    for inner, text in locks.items():
        place = checkout / inner
        if place.parent.resolve() == checkout.resolve() / Path(inner).parent:
            with contextlib.suppress(OSError), place.open("x", encoding="utf-8") as file:
                file.write(text)


def are_noted(place: Path) -> bool:
    """Whether the build in `place` has them noted beside it."""
    return (place / _FILE).is_file()


def note(checkout: Path, place: Path) -> None:
    """Note those of a checkout that was built beside the build in `place`, also if there is none: a
    build without a note is made anew."""
    found = {}
    for path in sorted(checkout.rglob(_NAME)):
        with contextlib.suppress(NotReadError):
            found[f"{path.relative_to(checkout)}"] = read_text(path)
    files.write(place / _FILE, json.dumps(found))
