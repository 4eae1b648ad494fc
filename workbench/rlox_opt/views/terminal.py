"""What a profile says in the terminal: the ranked layers, the phases, the bottlenecks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rlox_opt.sampling.layers import TITLES
from rlox_opt.views import tables, units
from rlox_opt.views.model import Section

_BAR = 16  # characters of a share of 100 %
_MOST_BOTTLENECKS = 6
_MOST_CARDS = 4
_EIGHTHS = " ▏▎▍▌▋▊▉"


def show(report: Mapping[str, Any], folder: Path) -> None:
    """Print the summary to stdout."""
    Console(highlight=False).print(summary(report, folder))


def summary(report: Mapping[str, Any], folder: Path) -> Group:
    """The report in a screenful."""
    parts: list[RenderableType] = ["", _headline(report)]
    parts += [Text(line, "yellow") for line in report["incomplete"] + report["warnings"]]
    for title, table in (
        (_layers_title(report), _layers(report)),
        ("Phases (share of training)", _phases(report)),
        ("Bottlenecks, and how much faster training could be at most", _bottlenecks(report)),
        ("Tools", _tools(report)),
    ):
        if table.row_count:
            parts += ["", f"[bold]{title}[/]", table]
    parts += ["", Text(f"{folder}/report.html, report.md, report.json, trace.json")]
    return Group(*parts)


def show_sections(heading: str, sections: Sequence[Section]) -> None:
    """Print sections as the report has them, to stdout."""
    console = Console(highlight=False)
    console.print(Text(heading, "bold"))
    for section in sections:
        for text in section.text:
            console.print(Text(text))
        for told in section.tables:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
            for index, column in enumerate(told.columns):
                words = index < told.left
                table.add_column(
                    column, justify="left" if words else "right", overflow="fold", no_wrap=not words
                )
            for row in told.rows:
                cells = (cell if isinstance(cell, str) else ", ".join(cell) for cell in row)
                table.add_row(*map(Text, cells))
            console.print(table)
        console.print()


def _headline(report: Mapping[str, Any]) -> str:
    name = f"[bold]{report['algo'].upper()} on {report['env_id']}[/]"
    if report["sps"] is None:
        return f"{name}: the plain run did not finish"
    line = (
        f"{name}: {report['end_to_end']['steps']:,} steps in {units.seconds(report['train_s'])}, "
        f"[bold]{report['sps']:,.0f} steps/s[/]"
    )
    if report["mean_return"] is not None:
        line += f", mean return {report['mean_return']:,.1f}"
    if report["random_return"] is not None:
        line += f" (random policy {report['random_return']:,.1f})"
    return line


def _layers_title(report: Mapping[str, Any]) -> str:
    return f"Layers (from {report['layer_source']}, 95 % interval)"


def _layers(report: Mapping[str, Any]) -> Table:
    table = _table()
    for layer in tables.ranked_layers(report):
        table.add_row(
            TITLES.get(layer["name"], layer["name"]),
            bar(layer["share"]),
            units.percent(layer["share"]),
            units.interval(layer["ci95"]),
            units.seconds(layer["seconds"]),
        )
    return table


def _phases(report: Mapping[str, Any]) -> Table:
    table = _table()
    for phase in report["phases"]:
        outer, _, name = phase["name"].rpartition("/")
        indent = "  " * (outer.count("/") + 1 if outer else 0)
        table.add_row(
            indent + name,
            bar(phase["share"]),
            units.percent(phase["share"]),
            f"{phase['calls']:,} x",
            units.seconds(phase["seconds"]),
        )
    return table


def _bottlenecks(report: Mapping[str, Any]) -> Table:
    table = _table()
    for spot in report["bottlenecks"][:_MOST_BOTTLENECKS]:
        cards = spot["optimizations"]
        listed = ", ".join(f"{c['id']} ≤ {units.factor(c['bound'])}" for c in cards[:_MOST_CARDS])
        more = f" and {len(cards) - _MOST_CARDS} more" if len(cards) > _MOST_CARDS else ""
        where = f"{TITLES.get(spot['layer'], spot['layer'])} in {spot['what']}"
        table.add_row(
            f"{spot['rank']}.",
            units.percent(spot["share"]),
            Text.assemble(where, "\n", (listed + more or "no card touches it", "dim")),
        )
    return table


def _tools(report: Mapping[str, Any]) -> Table:
    table = _table()
    for name, tool in report["tools"].items():
        if tool["status"] == "ok":
            slowdown = tool["slowdown"]
            what = "events" if name == "torch.profiler" else "samples"
            slower = f"training slowed {units.factor(slowdown)}" if slowdown else ""
            table.add_row(name, f"{tool['samples']:,} {what}", slower)
        else:
            why = " ".join(filter(None, (tool.get("reason"), tool.get("remedy"))))
            table.add_row(name, tool["status"], Text(why))
    return table


def bar(share: float, width: int = _BAR) -> str:
    """A share of 1 as a bar of `width` characters, to an eighth of a character."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).strip().ljust(width)


def _table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
