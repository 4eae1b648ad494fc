"""How lines are printed on stdout and stderr, by one rule for every verb.

In a terminal no line is wider than the terminal. A longer line continues in the next one, indented,
and breaks between words. In a pipe a line stays whole, so that grep and awk find all of it; if the
variable COLUMNS is set, it gives a pipe a width. Nothing is cut off.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

_HANG = 2  # columns by which a continued line is indented, beyond the beginning of its first line
_LABEL = re.compile(r"\s*\S+(?: \S+)*?:?  +(?=\S)")  # "package      " before a value
_WIDEST_LABEL = 24  # columns; after a longer one a continued line would have too little room
# The second pattern is used only if a part between matches of the first is wider than a line.
_BETWEEN = (re.compile(r"(?<=\.)(?=[^\W\d])|(?=\()|(?<=, )"), re.compile(r"(?<=[_,])(?=[^_])"))


def columns(stream: TextIO) -> int | None:
    """The most columns that a line on this stream may have; None: any number."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):  # it has no descriptor, or is closed
        return None


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def say(text: str, *, stderr: bool = False) -> None:
    """Print a text, folding each line to the stream's width."""
    stream = sys.stderr if stderr else sys.stdout
    width = columns(stream)
    lines = text.split("\n")
    print("\n".join(part for line in lines for part in folded(line, width)), file=stream)


def number_of(number: int, what: str) -> str:
    """So many of a thing: "1 benchmark", "2 benchmarks"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def folded(line: str, width: int | None) -> list[str]:
    """The line as several lines of this width. If the line begins with a label and two spaces, it
    continues below the value. A path that is longer than a line is not broken, since people copy
    it; another such word breaks at the end of one of its parts."""
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
    """The width of the widest piece of a line that `folded` does not break."""
    words = (of for word in line.split() for of in ([word] if "/" in word else parts(word, 1)))
    return max(map(cells, words), default=0) + _HANG


def parts(word: str, width: int, strength: int = 0) -> list[str]:
    """The parts of a word; parts that are longer than the width are divided further. What cannot be
    divided is left as it is."""
    if cells(word.rstrip()) <= width or strength == len(_BETWEEN):
        return [word]
    of = _BETWEEN[strength].split(word)
    return [part for one in of for part in parts(one, width, strength + 1)]


def cells(text: str) -> int:
    """The columns that a text takes in a terminal. (Rich has such a function, but the message that
    rich is not installed is printed here too.)"""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(of) in "WF" for of in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
