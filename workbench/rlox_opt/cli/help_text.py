"""How `--help` is laid out: sentences fill the lines of the terminal; what is indented, such as
commands and exit codes, keeps its lines."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby

from rlox_opt.system.output import folded

_NOTED = re.compile(r"(\s*\S.*?)\s{2,}(\S.*)")  # a command, and what it does
_LEAST = 28  # columns for such notes; where there are fewer, each stands below its command
_BELOW = 6  # by which it is indented there


class HelpText(argparse.HelpFormatter):
    """Lays out descriptions and epilogs, which argparse itself would fill as one paragraph, or
    leave wider than the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.strip("\n").split("\n")
        kinds = groupby(lines, lambda line: "none" if not line else line[:2] == "  ")
        blocks = ((kind, [*of]) for kind, of in kinds)
        return "\n".join(line for kind, of in blocks for line in _block(kind, of, width))


def _block(kind: object, lines: list[str], width: int) -> Iterator[str]:
    if kind == "none":
        yield from lines
    elif kind:
        yield from _indented(lines, width)
    else:
        yield from textwrap.wrap(
            " ".join(lines), width, break_long_words=False, break_on_hyphens=False
        )


def _indented(lines: list[str], width: int) -> Iterator[str]:
    """Lines that stay apart; the notes of commands stay in a column, or go below."""
    noted = [_NOTED.fullmatch(line) for line in lines]
    column = max((len(of[1]) for of in noted if of), default=0) + 2
    for line, of in zip(lines, noted, strict=True):
        if of is None:
            yield from folded(line, width)
        elif column + _LEAST <= width:
            first, *more = textwrap.wrap(of[2], width - column, break_long_words=False)
            yield f"{of[1]:{column}}{first}"
            yield from (" " * column + rest for rest in more)
        else:
            yield of[1]
            yield from textwrap.wrap(
                of[2], width, initial_indent=" " * _BELOW, subsequent_indent=" " * _BELOW
            )
