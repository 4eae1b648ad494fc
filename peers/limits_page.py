"""What a machine can do at most and how near we come, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.primitives import facts

HEADING = "How near the machine's limits"
_LIMITED_BY = {"FLOP": "multiply-adds", "exponentials": "exponentials", "bytes": "copies"}
_RATES = {"FLOP": "GFLOP/s", "exponentials": "G/s", "bytes": "GB/s"}


def summary(found: Mapping[str, Any]) -> Table:
    """A row for each operation and number of threads."""
    rows = [
        (
            row["case"],
            _LIMITED_BY[row["by"]],
            str(row["threads"]),
            units.fine_seconds(row["call_s"]),
            f"{row['amount'] / row['call_s'] / 1e9:,.1f} {_RATES[row['by']]}",
            _share(row),
        )
        for row in found["table"]
        if row["what"] == "operation"
    ]
    columns = ("operation", "limited by", "threads", "a call", "it does", "of the limit")
    return Table(columns, rows, left=2)


def limits(found: Mapping[str, Any]) -> Table:
    """A row for each limit and number of threads."""
    rows = [
        (
            row["case"],
            str(row["threads"]),
            f"{row['rate'] / 1e9:,.1f} {_RATES[row['unit']]}",
            f"{row['rate'] / row['hertz']:,.1f}",
            f"{row['hertz'] / 1e9:.2f} GHz",
        )
        for row in found["table"]
        if row["what"] == "limit"
    ]
    return Table(("limit", "threads", "it does", "a cycle", "clock"), rows, left=1)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the tables, in a few sentences."""
    level = found["table"][0]["level"]
    return (
        "Limits are loops in C that do nothing else; bytes are those read and those written, and a "
        "copy moves as many as the operation does. Each operation is timed in turn with its limit; "
        "geometric means over new processes, with 95 % intervals by Student's t. The work of an "
        "operation is counted from its formulas, so what an implementation does besides counts "
        "against it. Where a share of copies is above 100 %, the operation may move its bytes in a "
        "better way than the C library's copy. Instructions in use, by all but torch's products: "
        f"{level}."
    )


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    sections = [
        Section("operations", "Operations", [explained(found)], [summary(found)]),
        Section("limits", "The machine's limits", [], [limits(found)]),
    ]
    shares = [row["share"] for row in found["table"] if row["what"] == "operation"]
    return Document(
        "PPO, SAC and the data plane",
        HEADING,
        [("least share of a limit", f"{min(shares):.0%}")] if shares else [],
        [("Left out", list(found["left_out"]))],
        sections,
        facts(found),
    )


def _share(row: Mapping[str, Any]) -> str:
    """ "84 % (82 – 86)"."""
    ends = row["ci95"]
    most = f" ({100 * ends[0]:.0f} – {100 * ends[1]:.0f})" if ends else ""
    return f"{100 * row['share']:.0f} %{most}"
