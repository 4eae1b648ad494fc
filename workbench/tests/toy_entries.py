"""Entries of a history that nobody measured: commits of one number, of known levels."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rlox_opt.history import store
from rlox_opt.history.store import Cell, Entry

MACHINES = {
    "a": {"cpu": "Intel(R) Xeon(R) CPU @ 2.80GHz", "cores": 2},
    "b": {"cpu": "AMD EPYC 7B13", "cores": 4},
}
BENCHMARK = "data_plane.Gae.time_gae(2048)"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def commit(number: int) -> str:
    """Its hash."""
    return hashlib.sha1(str(number).encode()).hexdigest()


def cell(ratio: float, kind: str = "time", benchmark: str = BENCHMARK, **more: Any) -> Cell:
    """Of a kind with a control the ratio, else the value."""
    if kind in ("time", "steps", "criterion"):
        return Cell(benchmark, kind, 1e-5 * ratio, ratio, **more)
    return Cell(benchmark, kind, ratio, **more)


def entry(number: int, *cells: Cell, machine: str = "a", **more: Any) -> Entry:
    """Of the commit with this number; the control is the first."""
    when = START + timedelta(hours=number)
    fields: dict[str, Any] = {
        "commit": commit(number),
        "parent": commit(number - 1) if number else None,
        "subject": f"Commit {number}",
        "committed": when,
        "date": when + timedelta(minutes=30),
        "machine": MACHINES[machine],
        "toolchain": {"rustc": "1.90.0"},
        "profile": "release",
        "features": ("shipped",),
        "control": {"commit": commit(0), "features": []},
        "seconds": 100.0,
        "complete": True,
        "cells": cells,
    }
    return Entry(**fields | more)


def history(levels: Mapping[int, float], commits: int = 40, **more: Any) -> list[Entry]:
    """A commit each, with the level that holds from the last of `levels` on, and up to 0.3 %
    beside it: the same ups and downs each time."""
    ratios, level = [], 1.0
    for number in range(commits):
        level = levels.get(number, level)
        ratios.append(level * (1 + 0.001 * ((number * 7) % 5 - 2) + 0.0005 * (number * 11 % 3 - 1)))
    return [entry(number, cell(ratio, **more)) for number, ratio in enumerate(ratios)]


def written(entries: Sequence[Entry], folder: Path) -> Path:
    """The folder, with the entries in it."""
    for one in entries:
        store.append(one, folder)
    return folder
