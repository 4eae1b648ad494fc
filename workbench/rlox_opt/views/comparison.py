"""Comparisons in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.card import change, size
from rlox_opt.views.grid import VERDICTS, Grid, Told, console
from rlox_opt.views.model import Table as Report


def show(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the ratios of some records, and what else was measured."""
    headings = ("id", "workload", "size", "ratio (95 %)", "verdict", "A/A", "instr.", "allocations")
    rows = [(record["id"], *_row(result)) for record in records for result in record["results"]]
    to = console()
    to.print(Grid(headings, rows, left=3, styles=VERDICTS))
    to.print(Told("instr. and allocations: baseline → optimised, a call", "dim"))
    for record in records:
        for name, value in record.get("also", {}).items():
            to.print(Told(f"{record['id']} {name.replace('_', ' ')}: {_plain(value)}"))
        if "record" in record:
            to.print(Told(record["record"], "dim"))


def _row(result: Mapping[str, Any]) -> tuple[str, ...]:
    aa = result.get("aa")
    ends = units.factors(result["ci95"]).rstrip("×")
    return (
        result["workload"],
        size(result["size"]) if result["size"] else "",
        f"{units.factor(result['ratio'])} ({ends})",
        result["verdict"],
        units.factor(aa["ratio"]) if aa else units.MISSING,
        _instructions(result.get("instructions")),
        change(result.get("allocations")),
    )


def _instructions(counts: Mapping[str, float] | None) -> str:
    """The two counts in short form: "9.01k → 5.2k"."""
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
    headings = ("id", "title", "alone", "with the others on", "at most")
    rows = [
        (
            step["id"],
            step["title"],
            _gain(step["alone"]),
            _gain(step["with_the_others"]),
            units.factor(step["bound"]["bound"]) if step["bound"] else units.MISSING,
        )
        for step in ladder["steps"]
    ]
    to = console()
    to.print(
        Grid(headings, [*rows, ("all", "together", "", _gain(ladder["together"]), "")], left=2)
    )
    to.print(
        Told(
            f"{ladder['rounds']} rounds; ratio of training times (95 %), ~ where it lies below the "
            "noise; at most: Amdahl's law on a recorded profile",
            "dim",
        )
    )
    to.print(Told(f"{path}, and the picture beside it (.svg)", "dim"))


def show_table(of: Report, explained: str, record: str | None) -> None:
    """Print a table of a report, how to read it, and where it was written."""
    to = console()
    to.print(Grid(of.columns, of.rows, of.left))
    to.print(Told(explained, "dim"))
    if record:
        to.print(Told(f"{record}; page beside it", "dim"))


def _gain(found: Mapping[str, Any]) -> str:
    text = f"{units.factor(found['ratio'])} ({units.factors(found['ci95']).rstrip('×')})"
    return text if found["verdict"] in ("faster", "slower") else f"{text} ~"
