"""Two threads against one, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.primitives import facts

HEADING = "Two threads against one"
_NOT_OURS = 0.1  # of a core: other programs may use this much of a machine that counts as quiet


def summary(found: Mapping[str, Any]) -> Table:
    """A row for each case and each number of busy processes beside it."""
    rows = [
        (
            row["case"],
            _beside(*row["beside"]),
            _ratio(row),
            units.fine_seconds(row["one_s"]),
            f"{row['others']:.2f}",
        )
        for row in found["table"]
    ]
    columns = ("case", "busy beside", "two threads × one", "a call, one thread", "others' cores")
    return Table(columns, rows, left=2)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the table, in a few sentences."""
    unquiet = [r for r in found["table"] if not r["beside"][0] and r["others"] > _NOT_OURS]
    warning = " The machine was not quiet where nothing was to be beside." if unquiet else ""
    return (
        "Speed with two threads over speed with one, in turn; geometric means over new processes, "
        "with 95 % intervals by Student's t. Others' cores: how many cores all other processes "
        f"took, the busy ones among them.{warning}"
    )


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    sections = [Section("threads", "Cases", [explained(found)], [summary(found)])]
    worst = min(row["ratio"] for row in found["table"])
    return Document(
        "PPO and SAC",
        HEADING,
        [("slowest", f"{worst:.2f} ×")],
        [("Left out", list(found["left_out"]))],
        sections,
        facts(found),
    )


def _beside(number: int, priority: str) -> str:
    return f"{number}, {priority} priority" if number else "nothing"


def _ratio(row: Mapping[str, Any]) -> str:
    """ "1.56 (1.51 – 1.61)"."""
    ends = row["ci95"]
    return f"{row['ratio']:.2f}" + (f" ({ends[0]:.2f} – {ends[1]:.2f})" if ends else "")
