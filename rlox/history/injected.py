"""What a trial with a slowdown of known size counts as: for the program that runs trials, and the
pages of their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OFF = 0.25  # of its nominal size: as far as a slowdown may be from it


def is_near(row: Mapping[str, Any]) -> bool:
    """Whether a slowdown is truly as large as it was meant to be: extra work comes in whole steps,
    and what is three times as large is no example of its size."""
    return bool(abs((row["truth"] - 1) / (row["percent"] / 100) - 1) <= _OFF)
