"""The history: what a commit measured, one JSON file a commit, feature set and recording.

They lie in a project's `history/<machine>/<YYYY-MM-DD>T<HHMMSS>Z_<commit>.json`, named for the time
of measuring, written once and never changed. The keys of a file are `schema` (1) and the fields of
`Entry`, its cells' those of `Cell`, its profiles' those of `Profile`. A commit that is recorded
again gets another file, and the newest counts.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from rlox_opt.system.files import NotReadError, read_json, write_new
from rlox_opt.system.machine import slug
from rlox_opt.system.moments import moment

SCHEMA = 1
# What a cell's value is: kind -> unit.
UNITS = {
    "time": "seconds",  # of a call, Python's, paired with the control
    "criterion": "seconds",  # of a call, Rust's
    "instructions": "instructions",  # of a call, by callgrind
    "allocations": "allocations",  # of a call
    "peak_memory": "bytes",  # of a process
    "steps": "steps/second",  # of training, in the profile's plain run
}


class HistoryError(ValueError):
    """An entry that cannot be used; the message names the key, the value and what would do."""


@dataclass(frozen=True)
class Cell:
    """One number of one benchmark.

    `benchmark` is asv's name, the same for every kind: "data_plane.Gae.time_gae(2048)"; of training
    "train.ppo", "train.sac". `ratio` is `value` / the control's in the same run, with its 99 %
    interval over restarts; None where there is no control. For "time" over 1 is slower than the
    control.
    """

    benchmark: str
    kind: str
    value: float
    ratio: float | None = None
    ratio_ci99: tuple[float, float] | None = None
    restarts: int | None = None


@dataclass(frozen=True)
class Profile:
    """Where training spent its time: `layers` and `phases` are shares of the whole (sum 1), phases
    by their path ("update/backward"), each without what lies within it; `functions` are shares of
    the largest "layer:function", each the innermost one of ours; `folded` the stacks, as text of
    `phase;…;frame;frame;… millionths of the whole`, or None."""

    samples: int
    layers: Mapping[str, float]
    phases: Mapping[str, float]
    functions: Mapping[str, float] = field(default_factory=dict)
    folded: str | None = None


@dataclass(frozen=True)
class Entry:
    """What was measured of a commit, by a feature set, on a machine.

    `committed` and `date` are times of the commit and of the measurement. `features` are those that
    were asked for: ("shipped",) is what the commit's own pyproject.toml names, () none; and
    `optimizations` what that turned on, as the extension says. `control` is what ratios are to,
    {"commit", "features"}; `toolchain` versions, {"rustc", "python", "numpy", …}; `failures` what
    could not be measured, {"benchmark", "reason"} each; `causes`, by benchmark, why it moved from
    the parent's to this commit: the fields of `cause.Cause`. An entry that is not `complete` was
    stopped, or told to measure only some benchmarks; what it holds is sound.
    """

    commit: str
    parent: str | None
    subject: str
    committed: datetime
    date: datetime
    machine: Mapping[str, Any]
    toolchain: Mapping[str, str]
    profile: str
    features: tuple[str, ...]
    control: Mapping[str, Any]
    seconds: float
    complete: bool
    cells: tuple[Cell, ...]
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    failures: tuple[Mapping[str, str], ...] = ()
    optimizations: tuple[str, ...] = ()
    causes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def slug(self) -> str:
        """The machine's folder."""
        return slug(dict(self.machine))


def append(entry: Entry, folder: Path) -> Path:
    """Write an entry as a new file, whole or not at all; returns its path.

    Raises:
        HistoryError: it could not be read again.
        NotWrittenError: it cannot be written; it is kept elsewhere.
    """
    try:
        table = {"schema": SCHEMA} | dataclasses.asdict(entry)
        text = json.dumps(table, indent=1, allow_nan=False, default=_isoformat) + "\n"
    except (TypeError, ValueError) as error:
        raise HistoryError(f"cannot be written: {error}") from error
    parse(json.loads(text))
    stem = f"{entry.date.astimezone(timezone.utc):%Y-%m-%dT%H%M%SZ}_{entry.commit[:10]}"
    return write_new(text, folder / entry.slug, stem)


def read(path: Path) -> Entry:
    """The entry in a file. Raises HistoryError."""
    try:
        return parse(read_json(path))
    except NotReadError as error:
        raise HistoryError(str(error)) from error
    except ValueError as error:
        raise HistoryError(f"{path}: {error}") from error


def entries(folder: Path) -> list[tuple[Path, Entry]]:
    """All entries of all machines, in the order of their measurement. Raises HistoryError."""
    return _in_time(folder.glob("*/*.json"))


def of_commit(commit: str, folder: Path) -> list[Entry]:
    """The entries of a commit in a machine's folder, oldest first. Raises HistoryError."""
    found = _in_time(folder.glob(f"*_{commit[:10]}*.json"))
    return [entry for _, entry in found if entry.commit == commit]


def last(folder: Path) -> Entry | None:
    """The newest entry of a machine's folder. Raises HistoryError."""
    newest_second = max((path.name.partition("_")[0] for path in folder.glob("*.json")), default="")
    found = _in_time(folder.glob(f"{newest_second}_*.json"))
    return found[-1][1] if found else None


def _in_time(paths: Iterable[Path]) -> list[tuple[Path, Entry]]:
    """By the date inside: names tell seconds only."""
    return sorted(((path, read(path)) for path in paths), key=lambda found: found[1].date)


def newest(of: Iterable[Entry]) -> dict[tuple[str, tuple[str, ...], str], Entry]:
    """The last complete entry of each (machine, features, commit), or else the last."""
    found: dict[tuple[str, tuple[str, ...], str], Entry] = {}
    for entry in of:
        key = entry.slug, entry.features, entry.commit
        if key not in found or entry.complete or not found[key].complete:
            found[key] = entry
    return found


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("commit", "subject", "profile"), str),
    **dict.fromkeys(("machine", "toolchain", "control", "profiles", "causes"), dict),
    **dict.fromkeys(("features", "optimizations", "failures", "cells"), list),
    "parent": (str, type(None)),
    "seconds": (int, float),
    "complete": bool,
}


def parse(table: Any) -> Entry:
    """An entry from what its file holds. Raises HistoryError where it breaks the schema."""
    if not isinstance(table, Mapping):
        raise HistoryError(f"is {type(table).__name__}; it takes an object")
    if table.get("schema") != SCHEMA:
        raise HistoryError(f"`schema` is {table.get('schema')!r}; this version reads {SCHEMA}")
    names = [f.name for f in dataclasses.fields(Entry)]
    if missing := [name for name in names if name not in table]:
        raise HistoryError(f"the key `{missing[0]}` is missing")
    for name, kinds in _KINDS.items():
        if not isinstance(table[name], kinds):
            kind = type(table[name]).__name__
            raise HistoryError(f"`{name}` is {table[name]!r}, of another kind: {kind}")
    try:
        slug(table["machine"])
        int.bit_length(table["machine"]["cores"])
        for features in (table["features"], table["optimizations"], table["control"]["features"]):
            "".join(features)  # or they are no names
        str.lower(table["control"]["commit"])
        for cause in table["causes"].values():
            cause.get("layer")
        for failure in table["failures"]:
            str.lower(failure["benchmark"] + failure["reason"])
        return Entry(
            **{name: table[name] for name in names}
            | {
                "committed": _time(table["committed"]),
                "date": _time(table["date"]),
                "features": tuple(table["features"]),
                "optimizations": tuple(table["optimizations"]),
                "failures": tuple(table["failures"]),
                "cells": tuple(_cell(i, row) for i, row in enumerate(table["cells"])),
                "profiles": {name: _profile(of) for name, of in table["profiles"].items()},
            }
        )
    except KeyError as error:
        raise HistoryError(f"the key {error} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise error if isinstance(error, HistoryError) else HistoryError(str(error)) from error


def _profile(table: Mapping[str, Any]) -> Profile:
    found = Profile(**table)
    sum([found.samples, *found.layers.values(), *found.phases.values(), *found.functions.values()])
    str.lower(found.folded or "")
    return found


def _cell(number: int, row: Mapping[str, Any]) -> Cell:
    interval = row.get("ratio_ci99")
    cell = Cell(**{**row, "ratio_ci99": None if interval is None else tuple(interval)})
    if cell.kind not in UNITS:
        raise HistoryError(f"`cells[{number}].kind` is {cell.kind!r}; it takes {', '.join(UNITS)}")
    if not 0 <= cell.value < math.inf:
        raise HistoryError(f"`cells[{number}].value` is {cell.value}; it takes a number from 0 up")
    if cell.ratio is not None and not 0 < cell.ratio < math.inf:
        raise HistoryError(f"`cells[{number}].ratio` is {cell.ratio}; it takes a number over 0")
    if cell.ratio_ci99 is not None:
        low, high = cell.ratio_ci99
        if not (0 < low < math.inf and 0 < high < math.inf):
            raise HistoryError(f"`cells[{number}].ratio_ci99` is {interval}; it takes [low, high]")
    if not isinstance(cell.benchmark, str):
        raise HistoryError(f"`cells[{number}].benchmark` is {cell.benchmark!r}; it takes a text")
    return cell


def _time(text: str) -> datetime:
    """A time, which takes a zone: others cannot be put in order."""
    found = moment(text)
    if found.tzinfo is None:
        raise HistoryError(f"{text!r} is a time without its zone")
    return found


def _isoformat(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")
