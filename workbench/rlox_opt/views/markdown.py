"""Reports as Markdown: the page's sections and tables, for a terminal or a pull request."""

from __future__ import annotations

import re

from rlox_opt.views import tables
from rlox_opt.views.model import Cell, Document, Report, Table


def render(report: Report) -> str:
    """The report of a training."""
    heading = f"{tables.heading(report)}: training profile"
    notices, sections = tables.notices(report), tables.sections(report)
    return text(Document("", heading, [], notices, sections, tables.facts(report)))


def text(of: Document) -> str:
    """The whole document, without its pictures and figures."""
    lines = [f"# {of.heading}", ""]
    for title, sentences in of.notices:
        if sentences:
            lines += [f"> **{title}.**", *(f"> - {escaped(each)}" for each in sentences), ""]
    lines += [f"- **{what}**: {escaped(value)}" for what, value in of.facts]
    for section in of.sections:
        lines += ["", f"## {section.title}", ""]
        for each in section.text:
            lines += [escaped(each), ""]
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
