"""Patterns of names: shell patterns, and the fixed beginning of a regular expression."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

_PLAIN = re.compile(r"(?:[\w ,']|\\[^\w\s])*", re.ASCII)
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
    if not text.startswith("^") or _is_either(text) or pattern.flags & _OTHERWISE:
        return ""
    plain = _PLAIN.match(text, 1)
    found = plain[0] if plain else ""
    if text[1 + len(found) :].startswith(("*", "?", "{")):  # the last letter may be absent
        found = _LAST.sub("", found)
    return re.sub(r"\\(.)", r"\1", found)


def _is_either(text: str) -> bool:
    """Whether a bar stands outside all groups, so that there are several beginnings."""
    depth = 0
    for part in _PARTS.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            return True
    return False
