"""The form of reports: sections of sentences and tables, made from the report's dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

Report = Mapping[str, Any]
Cell = str | list[str]


@dataclass(frozen=True)
class Table:
    """Rows of text under `columns`; the first `left` columns are words, the others figures."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    caption: str = ""
    left: int = 1


@dataclass(frozen=True)
class Section:
    """One part of the report. `id` names it in links. Without tables, `text` says why. A page shows
    a `chart` and `pictures` before the tables; each picture can be scrolled alone."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    chart: Markup | None = None
    pictures: Sequence[Markup] = ()


@dataclass(frozen=True)
class Document:
    """A report as a page (`html.page`) and as Markdown (`markdown.text`). `over` stands above the
    heading, `figures` below it; notices without a sentence are left out. `script` is run at the
    page's end."""

    over: str
    heading: str
    figures: Sequence[tuple[str, str]]
    notices: Sequence[tuple[str, Sequence[str]]]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]]
    script: str = ""
