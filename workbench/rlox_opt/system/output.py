"""How lines are put on stdout and stderr: one rule for every verb.

In a terminal no line is wider than the terminal. What is longer goes on in the next line, indented,
and breaks between words. In a pipe a line stays whole, so that grep and awk find all of it; the
variable COLUMNS, where it is set, gives a pipe a width. Nothing is cut.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from typing import TextIO

_HANG = (
    2  # columns by which a line that goes on is indented, beyond the beginning of its first line
)
_LABEL = re.compile(r"\s*\S+(?: \S+)*?:?  +(?=\S)")  # "package      ", before what it is
_WIDEST_LABEL = 24  # columns; what goes on behind a longer one would have too little room
# The weaker one only where a part between the stronger ones is too long for a line of its own.
_BETWEEN = (re.compile(r"(?<=\.)(?=[^\W\d])|(?=\()|(?<=, )"), re.compile(r"(?<=[_,])(?=[^_])"))


def columns(stream: TextIO) -> int | None:
    """The most columns that a line on this stream may take; None: as many as it needs."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):  # no descriptor, or one that is closed
        return None


def say(text: str, *, stderr: bool = False) -> None:
    """Print a text, each of its lines in as many as its width asks for."""
    stream = sys.stderr if stderr else sys.stdout
    width = columns(stream)
    lines = text.split("\n")
    print("\n".join(part for line in lines for part in folded(line, width)), file=stream)


def folded(line: str, width: int | None) -> list[str]:
    """The line in lines of this width. What goes on stands below the value, where the line begins
    with a label and two spaces. A path that is longer than a line stays whole and where it is,
    since people copy it; another such word breaks where one of its parts ends."""
    if width is None or cells(line) <= width:
        return [line]
    label = _LABEL.match(line)
    hang = len(label[0]) if label else 0
    if not 0 < hang <= min(_WIDEST_LABEL, width // 2):
        hang = len(line) - len(line.lstrip()) + _HANG
    lines, indent = [line[: len(line) - len(line.lstrip())]], " " * min(hang, width // 2)
    for word in re.findall(r"\S+\s*", line):
        for part in [word] if "/" in word else parts(word, width - len(indent)):
            too_wide = cells(lines[-1] + part.rstrip()) > width
            if too_wide and lines[-1].strip() and cells(indent + part.rstrip()) <= width:
                lines.append(indent)
            lines[-1] += part
    return [of.rstrip() for of in lines]


def unbroken(line: str) -> int:
    """The width of the widest piece of a line that `folded` leaves whole, in a line of its own."""
    words = (of for word in line.split() for of in ([word] if "/" in word else parts(word, 1)))
    return max(map(cells, words), default=0) + _HANG


def parts(word: str, width: int, strength: int = 0) -> list[str]:
    """The parts of a word, those that are longer than the width in their own parts. A part that has
    none is left as it is."""
    if cells(word.rstrip()) <= width or strength == len(_BETWEEN):
        return [word]
    of = _BETWEEN[strength].split(word)
    return [part for one in of for part in parts(one, width, strength + 1)]


def cells(text: str) -> int:
    """The columns that a text takes in a terminal. (Rich has the same, but the message that rich is
    not installed goes through here.)"""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(of) in "WF" for of in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
