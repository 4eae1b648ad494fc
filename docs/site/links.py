"""Links of a file of the repository, as they must be where it is read elsewhere.

Where it is a page of the site: to another page there; of a picture, which is copied; and of any
other file the path, since the site does not have it. Where it is the long description of a
distribution: to the file as it was released.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```|    .*?)$", re.MULTILINE | re.DOTALL)
_ADDRESSES = ("http://", "https://", "mailto:")
_ELSEWHERE = (*_ADDRESSES, "#")


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
            shown = os.path.relpath(copy, here)
            return f"[![{match['text']}]({shown})]({shown})"  # which shows it at its full size
        words = match["text"].strip("`")
        if words == target:
            return f"`{target}`"
        paragraph = match.string[: match.start()].rpartition("\n\n")[2]
        in_brackets = paragraph.count("(") > paragraph.count(")")
        return f"{match['text']} " + (f"`{target}`" if in_brackets else f"(`{target}`)")

    return _relinked(text, link)


def absolute(text: str, source: str, address: str, tag: str, root: Path) -> str:
    """The text of `source`, a path in the repository at `root`, with links that lead to the files
    of a tag where the repository is published: `address` is `https://github.com/OWNER/NAME`.

    Raises:
        MissingError: a link leads to no file.
    """

    def link(match: re.Match[str]) -> str:
        to = match["to"]
        if to.startswith(_ADDRESSES):
            return match[0]
        file, hash_, anchor = to.partition("#")
        beside = posixpath.join(posixpath.dirname(source), file)
        target = posixpath.normpath(beside) if file else source
        if not (root / target).exists():
            raise MissingError(f"{source}: {to} leads to no file")
        kind = "raw" if match["image"] else "blob"
        url = f"{address}/{kind}/{tag}/{quote(target)}{hash_}{anchor}"
        return f"{match['image']}[{match['text']}]({url})"

    return _relinked(text, link)


def _relinked(text: str, link: Callable[[re.Match[str]], str]) -> str:
    """With each link outside of code as `link` makes it."""
    parts = _FENCE.split(text)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))
