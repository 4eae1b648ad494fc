"""How tables stand on stdout, by one rule for every verb, and the console that they are printed to.

A table stands in columns where they fit into the width: figures as wide as they are, words folded
between words, but to no less than a column of 20. Where that is not enough each row stands as a
paragraph: its words first, below them the figures, and all but what names the row behind the
heading of its column. Nothing is cut. In a pipe columns are as wide as they need, so that a row is
a line (`rlox_opt.system.output`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from rlox_opt.system import output
from rlox_opt.system.output import cells
from rlox_opt.views import units

_GAP = 2  # columns between two of a table
_LEAST = 20  # columns for words
_INDENT = 4  # of the figures of a paragraph
_BETWEEN = " · "  # two figures
_NOTHING = ("", units.MISSING)  # cells that a paragraph leaves out
_UNBOUNDED = 100_000  # columns: what rich takes for as many as are needed
# The colours of verdicts, wherever a cell is one.
VERDICTS = {
    "slower": "red",
    "more": "red",
    "faster": "green",
    "less": "green",
    "undecided": "yellow",
}


def console() -> Console:
    """What prints to stdout: as wide as the terminal, and in a pipe as wide as is needed."""
    return Console(highlight=False, width=output.columns(sys.stdout) or _UNBOUNDED)


@dataclass(frozen=True)
class Told:
    """Sentences to be printed, which fold as `rlox_opt.system.output` says."""

    text: str
    style: str = ""

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split("\n"):
            for part in output.folded(line, options.max_width):
                yield Text(part, self.style, no_wrap=True, overflow="ignore")


@dataclass(frozen=True)
class Grid:
    """Rows under the headings of `columns`, which may be "". The first `left` columns are words,
    the others figures; the first `named` of them name the row, and stand without their headings
    where the row is a paragraph. `styles` are those of cells that are one of these texts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Sequence[str]]]
    left: int = 1
    named: int = 1
    heading: str = "bold"
    styles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def bare(cls, rows: Sequence[Sequence[str]]) -> Grid:
        """Rows without headings, all of whose cells begin at the left of their columns."""
        width = len(rows[0]) if rows else 0
        return cls([""] * width, rows, left=width)

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        widths = _wide([self.columns, *self._rows()], cells)
        return Measurement(1, min(options.max_width, sum(widths) + _GAP * (len(widths) - 1)))

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is None:
            yield from self._paragraphs(options.max_width)
            return
        if any(self.columns):
            yield from self._lines(self.columns, widths, self.heading)
        for row in self._rows():
            yield from self._lines(row, widths)

    def _rows(self) -> list[list[str]]:
        return [[of if isinstance(of, str) else "; ".join(of) for of in row] for row in self.rows]

    def _widths(self, most: int) -> list[int] | None:
        """The widths of the columns; None where they do not fit."""
        rows = [self.columns, *self._rows()]
        widths, least = _wide(rows, cells), _wide(rows, output.unbroken)
        left = range(min(self.left, len(widths)))
        while (over := sum(widths) + _GAP * (len(widths) - 1) - most) > 0:
            spare = [widths[of] - max(_LEAST, least[of]) for of in left]
            if max(spare, default=0) <= 0:
                return None
            widths[spare.index(max(spare))] -= min(over, max(1, max(spare) // 2))
        return widths

    def _lines(self, row: Sequence[str], widths: Sequence[int], style: str = "") -> Iterator[Text]:
        """A row in as many lines as its words take."""
        folded = [
            [line for of in cell.split("\n") for line in output.folded(of, width)]
            for cell, width in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, folded))):
            line = Text(no_wrap=True, overflow="ignore")
            for index, (of, width) in enumerate(zip(folded, widths, strict=True)):
                text = of[number] if number < len(of) else ""
                room = " " * (width - cells(text))
                line.append(" " * _GAP if index else "")
                line.append(room if index >= self.left else "")
                line.append(text, style or self.styles.get(row[index], ""))
                line.append(room if index < self.left else "")
            line.rstrip()
            yield line

    def _paragraphs(self, width: int) -> Iterator[Text]:
        """A paragraph for each row: what names it, the other words behind their headings, and below
        them the figures; each text of a list has lines of its own."""
        for row in self.rows:
            told = [
                (f"{heading} ".lstrip(), cell.strip(), self.styles.get(cell, ""))
                for heading, cell in zip(self.columns, row, strict=True)
                if isinstance(cell, str)
            ]
            words = len([cell for cell in row[: self.left] if isinstance(cell, str)])
            named = min(self.named, words)
            name = "  ".join(
                cell for n, (_, cell, _) in enumerate(told[:named]) if not n or cell not in _NOTHING
            )
            yield from _joined(told[named:words], width, name)
            for heading, cell in zip(self.columns, row, strict=True):
                if not isinstance(cell, str):
                    yield from _listed(heading, cell, width)
            yield from _joined(told[words:], width)


def _listed(heading: str, texts: Sequence[str], width: int) -> Iterator[Text]:
    """The texts of a list below its heading."""
    indent = " " * _INDENT
    if heading and texts:
        yield Text(indent + heading, "dim", no_wrap=True, overflow="ignore")
        indent += "  "
    for text in texts:
        for line in output.folded(indent + text, width):
            yield Text(line, no_wrap=True, overflow="ignore")


def _joined(told: Sequence[tuple[str, str, str]], width: int, name: str = "") -> Iterator[Text]:
    """Cells behind their headings, each with its style, in lines that break between two; before the
    first stands the name of the row, where it is given. Cells of nothing are left out."""
    indent = Text(" " * _INDENT, no_wrap=True, overflow="ignore")
    line = indent.copy()
    if name:
        *full, rest = output.folded(name, width)
        yield from (Text(of, no_wrap=True, overflow="ignore") for of in full)
        line = Text(rest, no_wrap=True, overflow="ignore")
    between = "  " if name else ""
    for heading, cell, style in told:
        if cell in _NOTHING:
            continue
        whole = cells(line.plain + between + heading + cell)
        if line.plain.strip() and whole > width:
            yield line
            line, between = indent.copy(), ""
        line.append(between).append(heading, "dim").append(cell, style)
        between = _BETWEEN
        if cells(line.plain) > width:  # this one alone
            *full, rest = output.folded(line.plain, width)
            yield from (Text(of, no_wrap=True, overflow="ignore") for of in full)
            line = Text(rest, no_wrap=True, overflow="ignore")
    if line.plain.strip():
        yield line


def _wide(rows: Sequence[Sequence[str]], wide: Callable[[str], int]) -> list[int]:
    """How wide the widest line of each column is."""
    return [
        max(wide(line) for cell in column for line in cell.split("\n"))
        for column in zip(*rows, strict=True)
    ]
