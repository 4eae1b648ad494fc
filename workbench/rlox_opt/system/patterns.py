"""Patterns of names: shell patterns, and what a regular expression says without being tried."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

_PLAIN = re.compile(r"(?:[\w ,']|\\[^\w\s])*", re.ASCII)
_LAST = re.compile(r"\\?.\Z", re.DOTALL)
# What is one thing though it may hold a bar or a bracket, and those that are none.
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_OTHERWISE = re.IGNORECASE | re.MULTILINE | re.VERBOSE


def matches(name: str, pattern: str) -> bool:
    """Whether a shell pattern matches a whole name, or is it: a name may have brackets itself."""
    return name == pattern or fnmatchcase(name, pattern)


def beginning(pattern: re.Pattern[str]) -> str:
    """What every text in which the pattern is found begins with, as far as it begins with `^` and
    letters; "" where nothing can be said."""
    text = pattern.pattern
    if not text.startswith("^") or _is_either(text) or pattern.flags & _OTHERWISE:
        return ""
    plain = _PLAIN.match(text, 1)
    found = plain[0] if plain else ""
    if text[1 + len(found) :].startswith(("*", "?", "{")):  # of the last letter there may be none
        found = _LAST.sub("", found)
    return re.sub(r"\\(.)", r"\1", found)


def _is_either(text: str) -> bool:
    """Whether a bar stands outside all groups, so that there is more than one beginning."""
    depth = 0
    for part in _PARTS.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "|" and not depth:
            return True
    return False
