"""A run of several processes in the terminal: the components' trees, then the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from rlox_opt.sampling.samples import OUTSIDE
from rlox_opt.views import processes, units, waiting
from rlox_opt.views.component_tree import tree_lines
from rlox_opt.views.grid import Grid, Told, console
from rlox_opt.views.terminal import Rows, bar
from rlox_opt.views.titles import layer_title

_MOST_RANKED = 12
_MOST_GAINS = 6
_MOST_LINES = 8
_BAR = 8  # columns, so that names get most of a terminal with 80 columns


def show(report: Mapping[str, Any], folder: Path) -> None:
    """Print the summary to stdout."""
    console().print(summary(report, folder))


def summary(report: Mapping[str, Any], folder: Path) -> Group:
    """The report in a screenful or two."""
    parts: list[RenderableType] = ["", Told(processes.summary(report), "bold")]
    parts += [Told(line, "yellow") for line in report["incomplete"] + report["warnings"]]
    for component in report["components"]:
        if tree := tree_lines(component):
            parts += ["", *map(Told, tree)]
    lines: Rows = [
        (units.percent(row["share"]), f"{row['place']}:{row['line']}", row["text"])
        for row in report["lines"][:_MOST_LINES]
    ]
    gains: Rows = [
        (what, f"twice as fast: {twice}", f"without it: {gone}")
        for what, twice, gone in waiting.worth(report.get("waiting"))[:_MOST_GAINS]
    ]
    for title, rows, below in (
        ("Where time goes, all processes together (share of busy time)", _ranked(report), ""),
        (
            "The program's own lines that take most, with the libraries they call",
            lines,
            processes.lines_told_by(report) if lines else "",
        ),
        ("", [], processes.worth_a_span(report)),
        ("How much faster the whole would be with one part faster", gains, ""),
    ):
        if rows:
            parts += ["", Told(title, "bold"), Grid.bare(rows)]
        if below:
            parts += [Told(below, "dim")] if rows else ["", Told(below)]
    parts += ["", Told(f"{folder}/report.html, report.md, report.json, trace.json")]
    return Group(*parts)


def _ranked(report: Mapping[str, Any]) -> Rows:
    phased = processes.phased(report)
    rows: Rows = []
    for row in report["ranking"][:_MOST_RANKED]:
        thread = "" if row["thread"] == "MainThread" else f" [{row['thread']}]"
        phase = f": {row['phase'] or OUTSIDE}" if phased else ""
        rows.append(
            (
                f"{row['rank']}.",
                bar(row["share"], _BAR),
                units.percent(row["share"]),
                units.seconds(row["seconds"]),
                f"{layer_title(row['layer'])}, {row['component']}{thread}{phase}",
            )
        )
    return rows
