"""A profile in the terminal: the ranked layers, the phases, the bottlenecks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from rlox_opt.views import details, tables, units
from rlox_opt.views.grid import Grid, Told, console
from rlox_opt.views.model import Section
from rlox_opt.views.titles import layer_title

Rows = list[tuple[str, ...]]

_BAR = 16  # characters of a share of 100 %
_MOST_BOTTLENECKS = 6
_MOST_CARDS = 4
_EIGHTHS = " ▏▎▍▌▋▊▉"


def show(report: Mapping[str, Any], folder: Path) -> None:
    """Print the summary to stdout."""
    console().print(summary(report, folder))


def summary(report: Mapping[str, Any], folder: Path) -> Group:
    """The report in a screenful."""
    parts: list[RenderableType] = ["", Told(_headline(report), "bold")]
    parts += [Told(line, "yellow") for line in report["incomplete"] + report["warnings"]]
    for title, rows in (
        (_layers_title(report), _layers(report)),
        ("Phases (share of training)", _phases(report)),
        ("Bottlenecks, and how much faster training could be at most", _bottlenecks(report)),
        ("Tools", _tools(report)),
    ):
        if rows:
            parts += ["", Told(title, "bold"), Grid.bare(rows)]
    parts += ["", Told(f"{folder}/report.html, report.md, report.json, trace.json")]
    return Group(*parts)


def show_sections(heading: str, sections: Sequence[Section]) -> None:
    """Print the report's sections to stdout."""
    to = console()
    to.print(Told(heading, "bold"))
    for section in sections:
        for text in section.text:
            to.print(Told(text))
        for of in section.tables:
            to.print(Grid(of.columns, of.rows, of.left))
        to.print()


def _headline(report: Mapping[str, Any]) -> str:
    name = f"{report['algo'].upper()} on {report['env_id']}"
    if report["sps"] is None:
        return f"{name}: the plain run did not finish"
    line = (
        f"{name}: {report['end_to_end']['steps']:,} steps in {units.seconds(report['train_s'])}, "
        f"{report['sps']:,.0f} steps/s"
    )
    if report["mean_return"] is not None:
        line += f", mean return {report['mean_return']:,.1f}"
    if report["random_return"] is not None:
        line += f" (random policy {report['random_return']:,.1f})"
    return line


def _layers_title(report: Mapping[str, Any]) -> str:
    return f"Layers (from {report['layer_source']}, 95 % interval)"


def _layers(report: Mapping[str, Any]) -> Rows:
    return [
        (
            layer_title(layer["name"]),
            bar(layer["share"]),
            units.percent(layer["share"]),
            units.interval(layer["ci95"]),
            units.seconds(layer["seconds"]),
        )
        for layer in tables.ranked_layers(report)
    ]


def _phases(report: Mapping[str, Any]) -> Rows:
    rows: Rows = []
    for phase in report["phases"]:
        outer, _, name = phase["name"].rpartition("/")
        indent = "  " * (outer.count("/") + 1 if outer else 0)
        rows.append(
            (
                indent + name,
                bar(phase["share"]),
                units.percent(phase["share"]),
                f"{phase['calls']:,} x",
                units.seconds(phase["seconds"]),
            )
        )
    return rows


def _bottlenecks(report: Mapping[str, Any]) -> Rows:
    rows: Rows = []
    for spot in report["bottlenecks"][:_MOST_BOTTLENECKS]:
        cards = spot["optimizations"]
        listed = ", ".join(f"{c['id']} ≤ {units.factor(c['bound'])}" for c in cards[:_MOST_CARDS])
        more = f" and {len(cards) - _MOST_CARDS} more" if len(cards) > _MOST_CARDS else ""
        where = f"{layer_title(spot['layer'])} in {spot['what']}"
        told = [listed + more, *tables.settled(spot)]
        what = f"{where}\n{'; '.join(filter(None, told)) or 'no card touches it'}"
        rows.append((f"{spot['rank']}.", units.percent(spot["share"]), what))
    return rows


def _tools(report: Mapping[str, Any]) -> Rows:
    rows: Rows = []
    for name, tool in report["tools"].items():
        if tool["status"] == "ok":
            slowdown = tool["slowdown"]
            what = "events" if name == "torch.profiler" else "samples"
            slower = f"training slowed {units.factor(slowdown)}" if slowdown else ""
            ended = details.window(tool)
            rows.append((name, f"{tool['samples']:,} {what}\n{ended}", slower))
        else:
            why = " ".join(filter(None, (tool.get("reason"), tool.get("remedy"))))
            rows.append((name, tool["status"], why))
    return rows


def bar(share: float, width: int = _BAR) -> str:
    """A share of 1 as a bar of `width` characters, to an eighth of a character."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).strip().ljust(width)
