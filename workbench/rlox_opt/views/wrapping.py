"""What is wider than its column: names of benchmarks are folded between their parts, lines cut."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

_INDENT = "  "
# The weaker only where a part between the stronger ones is too long for a line of its own.
_BETWEEN = (re.compile(r"(?<=\.)(?=[^\W\d])|(?=\()|(?<=, )"), re.compile(r"(?<=_)(?=[^_])"))
_LEAST = 20  # columns, for a name


def room(console: Console, others: Sequence[Sequence[str]]) -> int:
    """The columns that are left for names beside these `others`, each with its heading and one
    between two."""
    taken = sum(1 + max(map(cell_len, column), default=0) for column in others)
    return max(_LEAST, console.width - taken)


def wrapped(name: str, width: int) -> str:
    """A name in as many lines of this width as it takes, broken where one of its parts ends. A part
    that is longer than a line is left for the table to fold."""
    lines = [""]
    for part in _parts(name, width - len(_INDENT)):
        if lines[-1].strip() and cell_len(lines[-1] + part.rstrip()) > width:
            lines.append(_INDENT)
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters; of a longer one its beginning, and a sign."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _parts(text: str, width: int, strength: int = 0) -> list[str]:
    if (cell_len(text) <= width and strength) or strength == len(_BETWEEN):
        return [text]
    parts = []
    for part in _BETWEEN[strength].split(text):
        parts += _parts(part, width, strength + 1)
    return parts
