"""What a run of several processes says in the terminal: the components' trees, then the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlox_opt.sampling.samples import OUTSIDE
from rlox_opt.views import processes, units, waiting
from rlox_opt.views.component_tree import tree_lines
from rlox_opt.views.terminal import bar
from rlox_opt.views.titles import layer_title
from rlox_opt.views.wrapping import cut

_MOST_RANKED = 12
_MOST_GAINS = 6
_MOST_LINES = 8
_SOURCE = 44  # characters of a line's
_BAR = 8  # columns, so that names keep most of a terminal of 80


def show(report: Mapping[str, Any], folder: Path) -> None:
    """Print the summary to stdout."""
    Console(highlight=False).print(summary(report, folder))


def summary(report: Mapping[str, Any], folder: Path) -> Group:
    """The report in a screenful or two."""
    parts: list[RenderableType] = ["", Text(processes.summary(report), "bold")]
    parts += [Text(line, "yellow") for line in report["incomplete"] + report["warnings"]]
    for component in report["components"]:
        if lines := tree_lines(component):
            parts += ["", *(Text(line, no_wrap=True, overflow="ignore") for line in lines)]
    ranked = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    phased = processes.phased(report)
    for row in report["ranking"][:_MOST_RANKED]:
        thread = "" if row["thread"] == "MainThread" else f" [{row['thread']}]"
        phase = f": {row['phase'] or OUTSIDE}" if phased else ""
        where = f"{row['component']}{thread}{phase}"
        ranked.add_row(
            f"{row['rank']}.",
            bar(row["share"], _BAR),
            units.percent(row["share"]),
            units.seconds(row["seconds"]),
            Text(f"{layer_title(row['layer'])}, {where}", overflow="fold"),
        )
    if ranked.row_count:
        parts += ["", "[bold]Where time goes, all processes together (share of busy time)[/]"]
        parts.append(ranked)
    if rows := report["lines"][:_MOST_LINES]:
        own = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        own.add_column(justify="right")
        own.add_column(overflow="fold")
        for row in rows:
            where = f"{row['place']}:{row['line']}"
            text = Text(cut(row["text"], _SOURCE))
            own.add_row(units.percent(row["share"]), Text(where), text)
        parts += [
            "",
            "[bold]Lines of its own that take most, with what they call of libraries[/]",
            own,
        ]
        parts += [Text(told, "dim")] if (told := processes.lines_told_by(report)) else []
    if told := processes.worth_a_span(report):
        parts += ["", Text(told)]
    gains = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for what, twice, gone in waiting.worth(report.get("waiting"))[:_MOST_GAINS]:
        gains.add_row(Text(what), f"twice as fast: {twice}", f"without it: {gone}")
    if gains.row_count:
        parts += ["", "[bold]How much faster the whole would be with one part faster[/]", gains]
    parts += ["", Text(f"{folder}/report.html, report.md, report.json, trace.json")]
    return Group(*parts)
