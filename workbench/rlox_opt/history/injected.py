"""What a trial with a slowdown of known size counts as: for the program that runs trials, and the
pages of their records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_OFF = 0.25  # of its nominal size: as far as a slowdown may be from it


def is_near(row: Mapping[str, Any]) -> bool:
    """Whether a slowdown is truly as large as it was meant to be: extra work comes in whole steps,
    and what is three times as large is no example of its size."""
    return bool(abs((row["truth"] - 1) / (row["percent"] / 100) - 1) <= _OFF)


def slowed(row: Mapping[str, Any], arm: str) -> Mapping[str, Any]:
    """What a tool said of the benchmark that was made slower."""
    (name,) = row["cells"][arm].keys() - set(row["beside"])
    cell: Mapping[str, Any] = row["cells"][arm][name]
    return cell


def has_truth(row: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether the interval of what was made slower has its true ratio; without one it has not."""
    low, high = cell["ci99"] or (math.inf, -math.inf)
    return bool(low <= row["truth"] <= high)


def title(arm: str, row: Mapping[str, Any]) -> str:
    """A tool as it was set, and what else the machine did."""
    threshold = f", threshold {row['threshold']:g} %" if "threshold" in row else ""
    load = f", beside `{row['load']}`" if row.get("load") else ""
    return f"{arm}{threshold}{load}"
