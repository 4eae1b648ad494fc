"""How our engines compare with the fastest other engine, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def fastest_other(case: Mapping[str, Any], ours: Sequence[str]) -> Mapping[str, Any] | None:
    """The row of the fastest rival in a case; None if there is none."""
    others = [row for row in case["rows"] if row["engine"] not in ours]
    return min(others, key=lambda row: float(row["s"]), default=None)


def standing(record: Mapping[str, Any], name: str) -> dict[str, int]:
    """The number of cases with each verdict, of one of our engines against the fastest other."""
    counts = dict.fromkeys(("ahead", "behind", "not told apart", "undecided"), 0)
    for case in record["cases"]:
        rival = fastest_other(case, record["ours"])
        if rival and name in rival["against"]:
            counts[rival["against"][name]["verdict"]] += 1
    return {verdict: n for verdict, n in counts.items() if n}
