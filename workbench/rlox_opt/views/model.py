"""The shapes that a report is told in: a dictionary in, sections of sentences and tables out."""

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
    """One part of the report. `id` names it in links; without tables, `text` says why. What a page
    shows before the tables: a `chart`, and `pictures`, each of which scrolls by itself."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    chart: Markup | None = None
    pictures: Sequence[Markup] = ()
