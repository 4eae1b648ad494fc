"""The records of optimisations: one JSON file a measurement, written once and never changed.

They lie beside the cards, in `record/<machine>/<YYYY-MM-DD>T<HHMMSS>Z_p5.json`, a folder a
machine. The keys of a file are `schema` (1) and the fields of `Record`, its results' those of
`Result`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rlox_opt.project.cards import Card
from rlox_opt.system.files import NotReadError, check_folder, read_json, write_new
from rlox_opt.system.machine import machine, slug
from rlox_opt.system.moments import moment

SCHEMA = 1
VERDICTS = ("faster", "slower", "same", "undecided")

_ID = re.compile(r"[PR][1-9]\d*")
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z_([pr]\d+)(?:-(\d+))?\.json")
_COUNTS = ("instructions", "allocations")


class RecordError(ValueError):
    """A record that cannot be used; the message names the key, the value and what would do."""


@dataclass(frozen=True)
class Result:
    """One workload at one size: baseline time / optimised time, with its 95 % interval, which is
    None where a Ctrl-C left too few restarts.

    `restarts` are those of the process, over which the interval is. `baseline_s` and `optimized_s`
    are seconds a call; `instructions` and `allocations` counts a call, {"baseline", "optimized"};
    `aa` is the baseline against itself in the same run, {"ratio", "ci95"}. None is not measured.
    """

    workload: str
    size: Mapping[str, int]
    ratio: float
    ci95: tuple[float, float] | None
    verdict: str
    restarts: int
    baseline_s: float | None = None
    optimized_s: float | None = None
    instructions: Mapping[str, float] | None = None
    allocations: Mapping[str, float] | None = None
    aa: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Record:
    """One measurement of one optimisation; `path` is its file."""

    path: Path
    id: str
    date: datetime
    commit: str | None
    dirty: bool | None
    machine: Mapping[str, Any]
    build: Mapping[str, Any]
    seconds: float
    complete: bool
    results: tuple[Result, ...]
    also: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The machine's folder."""
        return self.path.parent.name

    def result(self, workload: str, size: Mapping[str, int]) -> Result | None:
        """What was measured of `workload` at `size`; None where it was not."""
        for result in self.results:
            if result.workload == workload and dict(result.size) == dict(size):
                return result
        return None


def records(id_: str, folder: Path) -> list[Record]:
    """The complete records of an optimisation on every machine, newest last.

    A file that is malformed or incomplete is left out, and named on stderr.
    """
    found = []
    for path in sorted(folder.glob("*/*.json")):
        name = _NAME.fullmatch(path.name)
        if name is None or name[1] != id_.lower():
            continue
        try:
            record = read(path)
            if record.id != id_.upper():
                raise RecordError(f"`id` is {record.id!r}; the file's name says {id_.upper()!r}")
            if not record.complete:
                raise RecordError("is not complete")
        except RecordError as error:
            print(f"{path}: {error}; left out", file=sys.stderr)
            continue
        found.append((record.date, int(name[2] or 1), record))
    return [record for *_, record in sorted(found, key=lambda row: row[:2])]


def newest(
    found: Sequence[Record],
    holding: tuple[str, Mapping[str, int]] | None = None,
    prefer: str | None = None,
) -> Record | None:
    """The newest of records that come newest last; None where there is none.

    With `holding`, a workload and a size, the newest one that measured it. Records of the machine
    with the slug `prefer` go before all others.
    """
    fit = [record for record in found if holding is None or record.result(*holding)]
    own = [record for record in fit if record.slug == prefer]
    return next(reversed(own or fit), None)


def realised(
    card: Card, found: Sequence[Record], folder: Path, prefer: str | None = None
) -> tuple[Record, Result] | None:
    """What came of a card's prediction: the result at its workload and size.

    From the card's own record where it names one, else from the `newest` of `found`. None where
    there is no prediction, or nothing that checks it; a card's record that cannot be used is named
    on stderr.
    """
    if card.prediction is None:
        return None
    wanted = card.prediction.workload, card.prediction.size
    record = newest(found, wanted, prefer)
    if card.record:
        path = root_of(folder) / card.record
        try:
            record = read(path)
        except RecordError as error:
            print(f"{path}: {error}; {card.id}'s card names it", file=sys.stderr)
            return None
    result = record.result(*wanted) if record else None
    return (record, result) if record and result else None


def root_of(folder: Path) -> Path:
    """The repository's root, from which paths of records are told."""
    return folder.parents[1]


def read(path: Path) -> Record:
    """The record in `path`. Raises `RecordError` when it cannot be read or breaks the schema."""
    try:
        return parse(read_json(path), path)
    except NotReadError as error:
        raise RecordError(error.why) from error


def check(folder: Path) -> None:
    """See that records of this machine can be written. Raises `NotWrittenError`."""
    check_folder(folder / slug(machine()))


def append(record: Mapping[str, Any], folder: Path) -> Path:
    """Write a record as a new file, whole or not at all; returns its path.

    It lies under its machine, named for its date and id; a name that is taken gets -2, -3, ….
    Raises `RecordError` for a record that could not be read again, and `NotWrittenError`.
    """
    try:
        text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise RecordError(f"cannot be written: {error}") from error
    parsed = parse(json.loads(text), Path())
    try:
        directory = folder / slug(dict(parsed.machine))
    except (KeyError, AttributeError) as error:
        raise RecordError(f"`machine` is {parsed.machine}; it takes cpu and cores") from error
    stem = f"{parsed.date.astimezone(timezone.utc):%Y-%m-%dT%H%M%SZ}_{parsed.id.lower()}"
    return write_new(text, directory, stem)


def parse(table: Any, path: Path) -> Record:
    """A record from what its file holds. Raises `RecordError` when it breaks the schema."""
    schema = _value(table, "schema", int)
    if schema != SCHEMA:
        raise RecordError(f"`schema` is {schema}; this version reads {SCHEMA}")
    id_ = _value(table, "id", str)
    if not _ID.fullmatch(id_):
        raise RecordError(f"`id` is {id_!r}; it takes P or R and a number")
    results = _value(table, "results", list)
    return Record(
        path=path,
        id=id_,
        date=_date(_value(table, "date", str)),
        commit=_value(table, "commit", str, None),
        dirty=_value(table, "dirty", bool, None),
        machine=_value(table, "machine", dict),
        build=_value(table, "build", dict),
        seconds=_value(table, "seconds", float),
        complete=_value(table, "complete", bool),
        results=tuple(_result(row, f"results[{i}].") for i, row in enumerate(results)),
        also=_value({"also": {}} | table, "also", dict),
    )


def _result(table: Any, where: str) -> Result:
    if not isinstance(table, dict):
        raise RecordError(f"`{where.rstrip('.')}` is {table!r}; it takes a table")
    ratio = _value(table, "ratio", float, where=where)
    ci95 = _value(table, "ci95", list, tuple, None, where=where)
    if not 0 < ratio < math.inf:
        raise RecordError(f"`{where}ratio` is {ratio}; it takes a number over 0")
    verdict = _value(table, "verdict", str, where=where)
    if verdict not in VERDICTS:
        raise RecordError(f"`{where}verdict` is {verdict!r}; it takes {', '.join(VERDICTS)}")
    # What need not have been measured may be null, or left out.
    maybe = dict.fromkeys(("baseline_s", "optimized_s", *_COUNTS, "aa")) | table
    for key in _COUNTS:
        counts = _value(maybe, key, dict, None, where=where)
        for twin in ("baseline", "optimized") if counts is not None else ():
            _value(counts, twin, float, where=f"{where}{key}.")
    size = _value(table, "size", dict, where=where)
    for name in size:
        _value(size, name, int, where=f"{where}size.")
    return Result(
        workload=_value(table, "workload", str, where=where),
        size=size,
        ratio=ratio,
        ci95=None if ci95 is None else _pair(ci95, f"{where}ci95"),
        verdict=verdict,
        restarts=_value(table, "restarts", int, where=where),
        baseline_s=_value(maybe, "baseline_s", float, None, where=where),
        optimized_s=_value(maybe, "optimized_s", float, None, where=where),
        instructions=maybe["instructions"],
        allocations=maybe["allocations"],
        aa=_value(maybe, "aa", dict, None, where=where),
    )


def _value(table: Any, key: str, *kinds: type | None, where: str = "") -> Any:
    """`table[key]`, which must be there and of one of `kinds`; float takes whole numbers too."""
    if not isinstance(table, Mapping) or key not in table:
        raise RecordError(f"the key `{where}{key}` is missing")
    value = table[key]
    allowed = [type(None) if kind is None else kind for kind in kinds]
    if isinstance(value, (*allowed, int) if float in allowed else tuple(allowed)):
        return value
    words = " or ".join("null" if kind is None else kind.__name__ for kind in kinds)
    raise RecordError(f"`{where}{key}` is {value!r}; it takes {words}")


def _pair(ends: Sequence[Any], name: str) -> tuple[float, float]:
    if len(ends) == 2 and all(isinstance(end, (int, float)) for end in ends):
        low, high = ends
        if 0 < low <= high < math.inf:
            return low, high
    raise RecordError(f"`{name}` is {ends}; it takes [low, high], both over 0")


def _date(text: str) -> datetime:
    try:
        date = moment(text)
    except ValueError:
        date = datetime.min
    if date.tzinfo is None:
        raise RecordError(
            f"`date` is {text!r}; it takes a time with its zone: 2026-01-31T12:00:00Z"
        )
    return date
