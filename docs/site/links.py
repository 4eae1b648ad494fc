"""Links of a file of the repository, as they must be where it is a page of the site: to another
page there; of a picture, which is copied; and of any other file the path, since the site does not
have it."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```|    .*?)$", re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("http://", "https://", "mailto:", "#")


class MissingError(Exception):
    """A link leads to no file of the repository."""


def moved(
    text: str, source: str, path: str, pages: Mapping[str, str], root: Path, out: Path
) -> str:
    """The text of `source`, a path in the repository at `root`, with its links as they must be at
    `path` of the site, whose folder is `out`; pictures are copied there.

    Raises:
        MissingError: a link leads to no file.
    """

    def link(match: re.Match[str]) -> str:
        to = match["to"]
        if to.startswith(_ELSEWHERE):
            return match[0]
        file, _, anchor = to.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        if not (root / target).exists():
            raise MissingError(f"{source}: {to} leads to no file")
        here = posixpath.dirname(path) or "."
        if target in pages:
            there = posixpath.relpath(pages[target], here)
            return f"[{match['text']}]({there}{'#' * bool(anchor)}{anchor})"
        if match["image"]:
            copy = f"pictures/{PurePosixPath(target).as_posix().replace('/', '-')}"
            (out / "pictures").mkdir(exist_ok=True)
            shutil.copyfile(root / target, out / copy)
            return f"![{match['text']}]({os.path.relpath(copy, here)})"
        words = match["text"].strip("`")
        return f"`{target}`" if words == target else f"{match['text']} (`{target}`)"

    parts = _FENCE.split(text)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))
