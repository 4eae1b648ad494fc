"""What a comparison says in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rlox_opt.views import units
from rlox_opt.views.card import change, size
from rlox_opt.views.model import Table as Report

_COLOURS = {"faster": "green", "slower": "red"}


def show(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the ratios of some records, and what else was measured."""
    console = _console()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("workload")
    for heading in ("ratio (95 %)", "verdict", "A/A", "instr.", "allocations"):
        table.add_column(heading, justify="right", no_wrap=True)
    for record in records:
        for number, result in enumerate(record["results"]):
            table.add_row("" if number else record["id"], *_row(result))
    console.print(table)
    console.print("instr. and allocations: before → after, a call", style="dim")
    for record in records:
        for name, value in record.get("also", {}).items():
            console.print(f"{record['id']} {name.replace('_', ' ')}: {_plain(value)}")
        if "record" in record:
            console.print(record["record"], style="dim")


def _console() -> Console:
    """As wide as the terminal; into a file, as wide as a table needs."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=110)


def _row(result: Mapping[str, Any]) -> tuple[str, ...]:
    colour = _COLOURS.get(result["verdict"], "dim")
    aa = result.get("aa")
    ends = units.factors(result["ci95"]).rstrip("×")
    return (
        f"{result['workload']} [dim]{size(result['size']) if result['size'] else ''}[/]",
        f"[bold]{units.factor(result['ratio'])}[/] ({ends})",
        f"[{colour}]{result['verdict']}[/]",
        units.factor(aa["ratio"]) if aa else units.MISSING,
        _instructions(result.get("instructions")),
        change(result.get("allocations")),
    )


def _instructions(counts: Mapping[str, float] | None) -> str:
    """From so many to so many, in short: "9.01k → 5.2k"."""
    if not counts:
        return units.MISSING
    return f"{_short(counts['baseline'])} → {_short(counts['optimized'])}"


def _short(value: float) -> str:
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return units.count(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(_plain(inner) for inner in value)
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_ladder(ladder: Mapping[str, Any], path: Path) -> None:
    """Print what each optimisation brings to training."""
    console = _console()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for heading in ("alone", "with the others on", "at most"):
        table.add_column(heading, justify="right", no_wrap=True)
    for step in ladder["steps"]:
        limit = step["bound"]
        most = units.factor(limit["bound"]) if limit else units.MISSING
        table.add_row(
            f"{step['id']} [dim]{step['title']}[/]",
            _gain(step["alone"]),
            _gain(step["with_the_others"]),
            most,
        )
    table.add_row("[bold]all together[/]", "", _gain(ladder["together"]), "")
    console.print(table)
    console.print(
        f"{ladder['rounds']} rounds; ratio of training times (95 %), ~ where it lies below the "
        "noise; at most: Amdahl's law on a recorded profile",
        style="dim",
    )
    console.print(f"{path}, and the picture beside it (.svg)", style="dim")


def show_race(found: Mapping[str, Any]) -> None:
    """Print how the peers stand."""
    from rlox_opt.views import race

    show_table(race.standings(found), race.explained(found), found.get("record"))


def show_table(of: Report, explained: str, record: str | None) -> None:
    """Print a table of a report, how to read it, and where it was written."""
    console = _console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, heading in enumerate(of.columns):
        table.add_column(heading, justify="left" if number < of.left else "right", no_wrap=True)
    for row in of.rows:
        table.add_row(*(cell for cell in row if isinstance(cell, str)))
    console.print(table)
    console.print(explained, style="dim")
    if record:
        console.print(f"{record}; page and picture beside it", style="dim")


def _gain(found: Mapping[str, Any]) -> str:
    text = f"{units.factor(found['ratio'])} ({units.factors(found['ci95']).rstrip('×')})"
    colour = _COLOURS.get(found["verdict"])
    return f"[{colour}]{text}  [/]" if colour else f"[dim]{text} ~[/]"
