"""Files of requirements, as pip reads them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

_INCLUDED = re.compile(r"(?:-r|--requirement)[ =]*(\S+)")
# What stands beside a requirement: comments, options such as --hash=…, a backslash at the end.
_BESIDE = re.compile(r"(?:^|\s)(?:#|--hash).*|\s--?[a-z][\w-]*[ =].*|\s*\\$")


def lines(file: str, read: Callable[[str], str], seen: set[str] | None = None) -> Iterator[str]:
    """The requirements and options in a file and in those that it includes, each file once. `read`
    gives a file's text; "" if there is none."""
    seen = set() if seen is None else seen
    seen.add(file)
    for line in read(file).splitlines():
        bare = _BESIDE.sub("", line.strip()).strip()
        if included := _INCLUDED.match(bare):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(file), included[1]))
            if inner not in seen:
                yield from lines(inner, read, seen)
        elif bare:
            yield bare
