"""The least change that matters for single benchmarks: `[tool.rlox-opt.thresholds]`, in per cent,
by shell patterns of their names. The first pattern that matches counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rlox_opt.system.patterns import matches


def check(table: Mapping[str, Any]) -> None:
    """Raises ValueError for an invalid pattern, or a value that is no percentage over 0."""
    for pattern, percent in table.items():
        number = isinstance(percent, int | float) and not isinstance(percent, bool)
        if not pattern.strip():
            raise ValueError(
                f"`thresholds` has {percent!r} for the pattern {pattern!r}; write the name of a "
                'benchmark, or a shell pattern such as "data_plane.*"'
            )
        if not number or not 0 < percent < math.inf:
            raise ValueError(
                f"`thresholds` has {percent!r} for {pattern!r}; it takes per cent, a number over 0"
            )


def own(table: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """The thresholds, as log-ratios, of the benchmarks that a pattern matches."""
    found = {name: [p for of, p in table.items() if matches(name, of)] for name in names}
    return {name: math.log1p(of[0] / 100) for name, of in found.items() if of}


def unmatched(table: Mapping[str, float], names: Collection[str]) -> list[str]:
    """A sentence for each pattern that matches none of these benchmarks."""
    return [
        f"[tool.rlox-opt.thresholds]: {pattern!r} matches no benchmark that is measured"
        for pattern in table
        if not any(matches(name, pattern) for name in names)
    ]
