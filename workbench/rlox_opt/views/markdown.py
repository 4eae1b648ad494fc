"""The report as Markdown: the page's sections and tables, for a terminal or a pull request."""

from __future__ import annotations

import re

from rlox_opt.views import tables
from rlox_opt.views.model import Cell, Report, Table


def render(report: Report) -> str:
    """The whole document."""
    lines = [f"# {tables.heading(report)}: training profile", ""]
    for title, sentences in tables.notices(report):
        lines += [f"> **{title}.**", *(f"> - {escaped(text)}" for text in sentences), ""]
    lines += [f"- **{what}**: {escaped(value)}" for what, value in tables.facts(report)]
    for section in tables.sections(report):
        lines += ["", f"## {section.title}", ""]
        for text in section.text:
            lines += [escaped(text), ""]
        for table in section.tables:
            lines += table_lines(table)
        lines.pop()
    return "\n".join(lines).rstrip() + "\n"


def table_lines(table: Table) -> list[str]:
    """A table, with its caption above it and an empty line below."""
    rule = ["---" if index < table.left else "---:" for index in range(len(table.columns))]
    caption = [f"**{escaped(table.caption)}**", ""] if table.caption else []
    rows = [[escaped(cell) for cell in row] for row in (table.columns, *table.rows)]
    lines = [" | ".join(row) for row in (rows[0], rule, *rows[1:])]
    return [*caption, *(f"| {line} |" for line in lines), ""]


def escaped(cell: Cell) -> str:
    """A cell on one line, with the special characters of Markdown and HTML escaped, and such that
    no account is told of what looks like its name (`@main`)."""
    text = " ".join((cell if isinstance(cell, str) else "; ".join(cell)).split("\n"))
    # An underscore within a word has no special meaning.
    text = re.sub(r"[\\`*|<>\[\]]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)
    # GitHub looks for names in what is shown, where a backslash is gone; this space has no width.
    return re.sub(r"(?<!\w)@(?=\w)", "@&#8203;", text)
