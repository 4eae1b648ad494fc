"""How comparisons of other projects' commits with known slowdowns are scored: for the program that
runs them, and for the page of their records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlox_opt.stats.paired import FLAGGED

OUTCOMES = ("found", "missed", "undecided", "blind", "failed")
AGAIN = "base again"  # the comparison of base with itself

_Row = Mapping[str, Any]


class Told(NamedTuple):
    """What a tool said about a pair of commits: an outcome; the number of benchmarks it `flagged`
    among those `beside` the expected ones; and the expected benchmark with the clearest result,
    with its ratio and 99 % interval (None: none)."""

    tool: str
    outcome: str
    flagged: int
    beside: int
    ratio: float | None
    ci99: Sequence[float] | None

    @property
    def span(self) -> str:
        """The ratio with its interval: "2.00 (1.75–2.25)"; "–" without one."""
        if self.ratio is None:
            return "–"
        return f"{self.ratio:.2f}" + (" ({:.2f}–{:.2f})".format(*self.ci99) if self.ci99 else "")


def told(row: _Row) -> list[Told]:
    """The result of each tool and setting in a pair's row, and of tools that failed."""
    if "failed" in row:
        return [Told(row["tool"], "failed", 0, 0, None, None)]
    return [_told(row, arm) for arm in row["cells"] if arm != AGAIN]


def _told(row: _Row, arm: str) -> Told:
    expected: list[_Row] = []
    others: list[_Row] = []
    for name, cell in row["cells"][arm].items():
        (expected if re.search(row["expected"], name) else others).append(cell)
    verdicts = {cell["verdict"] for cell in expected}
    if not expected:
        outcome = "blind"
    elif "slower" in verdicts:
        outcome = "found"
    elif "undecided" in verdicts:
        outcome = "undecided"
    elif verdicts == {"failed"}:
        outcome = "failed"
    else:
        outcome = "missed"
    flagged = sum(cell["verdict"] in FLAGGED for cell in others)
    slower = [cell for cell in expected if cell["verdict"] == "slower"] or expected
    most = max((cell for cell in slower if cell["ratio"]), key=_ratio, default=None)
    ratio, ci99 = (most["ratio"], most["ci99"]) if most else (None, None)
    return Told(arm, outcome, flagged, len(others), ratio, ci99)


class Reason(NamedTuple):
    """Why a benchmark of a pair is slower, as it was found: the first function that the change
    touches and that grew, the first function that grew at all ("" for none), and whether one of
    the two is the known one."""

    benchmark: str
    ratio: float
    named: bool
    touched: str
    grew: str
    seconds: float


def reasons(row: _Row) -> list[Reason]:
    """The reasons that were found for benchmarks expected to be slower, if the row's `function` is
    known."""
    return [_reason(row, of) for of in row["why"] if re.search(row["expected"], of["benchmark"])]


def _reason(row: _Row, of: _Row) -> Reason:
    first = [
        next((f"{each['place']}:{each['name']}" for each in of[kind] if each["low"] > 0), "")
        for kind in ("touched", "functions")
    ]
    named = any(name and re.search(row["function"], name) for name in first)
    return Reason(of["benchmark"], of["ratio"], named, first[0], first[1], of["seconds"])


def minutes(row: _Row) -> tuple[float, float] | None:
    """Minutes of environments and builds, and of the rest; None if it failed."""
    if "seconds" not in row:
        return None
    parts = row.get("parts", {})
    built = row.get("build_seconds", parts.get("base", 0.0) + parts.get("head", 0.0))
    return built / 60, (row["seconds"] - (built if parts else 0.0)) / 60


def _ratio(cell: _Row) -> float:
    return float(cell["ratio"])
