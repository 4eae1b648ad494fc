"""How trials with slowdowns of known size are scored: for the program that runs trials, and for the
pages of their records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_OFF = 0.25  # of its nominal size: the largest deviation of a slowdown


def is_near(row: Mapping[str, Any]) -> bool:
    """Whether a slowdown truly has about its nominal size. Extra work comes in whole steps, and a
    slowdown that is three times as large is no example of its size."""
    return bool(abs((row["truth"] - 1) / (row["percent"] / 100) - 1) <= _OFF)


def slowed(row: Mapping[str, Any], arm: str) -> Mapping[str, Any]:
    """A tool's results on the benchmarks that were made slower."""
    (name,) = row["cells"][arm].keys() - set(row["beside"])
    cell: Mapping[str, Any] = row["cells"][arm][name]
    return cell


def spared(row: Mapping[str, Any], arm: str) -> list[Mapping[str, Any]]:
    """A tool's results on the benchmarks beside a slowdown, which it does not affect; none where
    nothing was made slower."""
    beside = set(row["beside"] if row["percent"] else ())
    return [cell for name, cell in row["cells"][arm].items() if name in beside]


def has_truth(row: Mapping[str, Any], cell: Mapping[str, Any]) -> bool:
    """Whether the interval contains the true ratio; False without an interval."""
    low, high = cell["ci99"] or (math.inf, -math.inf)
    return bool(low <= row["truth"] <= high)


def title(arm: str, row: Mapping[str, Any]) -> str:
    """A tool with its setting, and what else the machine was doing."""
    threshold = f", threshold {row['threshold']:g} %" if "threshold" in row else ""
    load = f", beside `{row['load']}`" if row.get("load") else ""
    return f"{arm}{threshold}{load}"
