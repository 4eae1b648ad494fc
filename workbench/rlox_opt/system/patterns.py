"""Patterns of names: shell patterns; the fixed beginning and the alternatives of a regular
expression."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase

_PLAIN = re.compile(r"(?:[\w ,'/:-]|\\[^\w\s])*", re.ASCII)
_LAST = re.compile(r"\\?.\Z", re.DOTALL)
# Pieces of a regular expression in which a bar or bracket has no meaning, and bars and brackets.
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_OTHERWISE = re.IGNORECASE | re.MULTILINE | re.VERBOSE


def matches(name: str, pattern: str) -> bool:
    """Whether a shell pattern matches a whole name, or equals it: names may contain brackets."""
    return name == pattern or fnmatchcase(name, pattern)


def beginning(pattern: re.Pattern[str]) -> str:
    """The beginning of every text in which the pattern is found: its letters after `^`; "" if
    nothing is certain."""
    text = pattern.pattern
    if not text.startswith("^") or len(_alternatives(text)) > 1 or pattern.flags & _OTHERWISE:
        return ""
    plain = _PLAIN.match(text, 1)
    found = plain[0] if plain else ""
    if text[1 + len(found) :].startswith(("*", "?", "{")):  # the last letter may be absent
        found = _LAST.sub("", found)
    return re.sub(r"\\(.)", r"\1", found)


def without_use(pattern: re.Pattern[str], names: Collection[str]) -> list[str]:
    """The alternatives of a pattern, such as `a` and `b` of `a|b`, that no name holds."""
    parts = _alternatives(pattern.pattern)
    try:
        found = [re.compile(part, pattern.flags) for part in parts]
    except re.error:  # a part may need a group of another one
        return []
    return [part.pattern for part in found if not any(map(part.search, names))]


def _alternatives(text: str) -> list[str]:
    """What stands between the bars outside all groups."""
    depth, start, found = 0, 0, []
    for part in _PARTS.finditer(text):
        depth += (part[0] == "(") - (part[0] == ")")
        if part[0] == "|" and not depth:
            found.append(text[start : part.start()])
            start = part.end()
    return [*found, text[start:]]
