"""A Markdown text as passages with their numbers, and which numbers look like measurements.

A passage is a paragraph, an item of a list, a row of a table or a heading, as one line. Numbers in
code and in the addresses of links do not count. Names with digits (P25, CartPole-v1), dates and
versions with three parts are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS = (
    *("%", "×", "ns", "µs", "ms", "s", "seconds", "minutes", "min", "hours", "times", "points"),
    *("kB", "MB", "GB", "KiB", "MiB", "GiB", "steps/s", "steps a second", "steps per second"),
)
_WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("fifteen", "twenty", "thirty", "forty", "fifty", "sixty", "hundred", "thousand"),
)
_DIGITS = re.compile(r"(?<![\w.,/-])[−+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w./-]*[A-Za-z_])")
_IN_WORDS = re.compile(
    rf"\b(?:{'|'.join(_WORDS)})(?= (?:times|seconds|minutes|milliseconds)\b)", re.I
)
_IN_A_SECOND = re.compile(r"\b(?:in|within) (?:a second|a minute)\b", re.I)
_MEASURED = re.compile(
    rf"[\s  ]?(?:{'|'.join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))})(?!\w)"
    r"|( runs| histories| cases| places)? (?:of|in) \d"
)
_NO_NUMBER = re.compile(r"\d{4}-\d{2}-\d{2}|\d+\.\d+\.\d+")
_UNREAD = re.compile(r"`[^`]*`|(?<=\])\([^)]*\)|<[^>]*>")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")


@dataclass(frozen=True)
class Number:
    """A number of a passage; `measured` says whether it looks like a measurement."""

    start: int
    end: int
    text: str
    measured: bool


@dataclass(frozen=True)
class Passage:
    """A passage as one line. `section` is all text between its headings."""

    line: int
    text: str
    section: str
    row: bool  # of a table

    @property
    def shown(self) -> str:
        """The visible text: as long as `text`, with blanks for the rest."""
        return _blank(_UNREAD, self.text)

    def numbers(self) -> Iterator[Number]:
        """All numbers in order."""
        shown = _blank(_NO_NUMBER, self.shown)
        numbers = [
            Number(m.start(), m.end(), m[0], bool(self.row or "." in m[0] or _unit(shown, m.end())))
            for m in _DIGITS.finditer(re.sub(r"^\d+\.", lambda m: " " * len(m[0]), shown))
        ]
        for pattern in (_IN_WORDS, _IN_A_SECOND):
            numbers += [Number(m.start(), m.end(), m[0], True) for m in pattern.finditer(shown)]
        yield from sorted(numbers, key=lambda number: number.start)


def passages(text: str) -> list[Passage]:
    """The passages of a text, without blocks of code."""
    sections: list[list[tuple[int, str]]] = [[]]
    fenced, before = False, ""
    for line, words in enumerate(text.splitlines(), 1):
        if words.lstrip().startswith("```"):
            fenced = not fenced
            words = ""
        code = fenced or (words.startswith("    ") and not before.strip())
        if code:  # the following lines are code as well
            continue
        if words.startswith("#"):
            sections.append([])
        begins = not before.strip() or words[:1] in "#|" or bool(_ITEM.match(words))
        before = "" if words.startswith("#") else words
        if not words.strip():
            continue
        if begins or not sections[-1]:
            sections[-1].append((line, words.strip()))
        else:
            first, so_far = sections[-1][-1]
            sections[-1][-1] = first, f"{so_far} {words.strip()}"
    return [
        Passage(line, words, " ".join(each for _, each in section), words.startswith("|"))
        for section in sections
        for line, words in section
    ]


def _unit(shown: str, at: int) -> bool:
    return bool(_MEASURED.match(shown, at))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)
