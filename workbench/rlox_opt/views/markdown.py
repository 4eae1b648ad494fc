"""The report as Markdown: the page's sections and tables, for a terminal or a pull request."""

from __future__ import annotations

import re

from rlox_opt.views import tables
from rlox_opt.views.model import Cell, Report, Table


def render(report: Report) -> str:
    """The whole document."""
    lines = [f"# {tables.heading(report)}: training profile", ""]
    for title, sentences in tables.notices(report):
        lines += [f"> **{title}.**", *(f"> - {_text(text)}" for text in sentences), ""]
    lines += [f"- **{what}**: {_text(value)}" for what, value in tables.facts(report)]
    for section in tables.sections(report):
        lines += ["", f"## {section.title}", ""]
        for text in section.text:
            lines += [_text(text), ""]
        for table in section.tables:
            lines += table_lines(table)
        lines.pop()
    return "\n".join(lines).rstrip() + "\n"


def table_lines(table: Table) -> list[str]:
    """A table, with its caption above it and an empty line below."""
    rule = ["---" if index < table.left else "---:" for index in range(len(table.columns))]
    caption = [f"**{_text(table.caption)}**", ""] if table.caption else []
    rows = [[_text(cell) for cell in row] for row in (table.columns, *table.rows)]
    lines = [" | ".join(row) for row in (rows[0], rule, *rows[1:])]
    return [*caption, *(f"| {line} |" for line in lines), ""]


def _text(cell: Cell) -> str:
    """A cell on one line, with the special characters of Markdown and HTML escaped."""
    text = cell if isinstance(cell, str) else "; ".join(cell)
    # An underscore within a word has no special meaning.
    return re.sub(r"[\\`*|<>\[\]]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", " ".join(text.split("\n")))
