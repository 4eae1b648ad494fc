"""The records of optimisations: one JSON file for each measurement, written once and never changed.

They lie beside the cards, in a folder for each machine:
`record/<machine>/<YYYY-MM-DD>T<HHMMSS>Z_p5.json`. The keys of a file are `schema` (1) and the
fields of `Record`; its results have those of `Result`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from rlox_opt.project.cards import Card
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, check_folder, write_new
from rlox_opt.system.machine import machine, slug
from rlox_opt.system.output import say
from rlox_opt.system.schema import Count, Id, Positive, Real

_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z_([pr]\d+)(?:-(\d+))?\.json")


@dataclass(frozen=True)
class Result:
    """One workload at one size: baseline time / optimised time, with its 95 % interval, which is
    None if a Ctrl-C left too few restarts.

    The interval is over `restarts` of the process. `baseline_s` and `optimized_s` are seconds of a
    call. `instructions` and `allocations` are counts of a call, {"baseline", "optimized"}. `aa` is
    the baseline against itself in the same run, {"ratio", "ci95"}. None means not measured.
    """

    workload: str
    size: Mapping[str, int]
    ratio: Positive
    ci95: tuple[Positive, Positive] | None
    verdict: Literal["faster", "slower", "same", "undecided"]
    restarts: Count
    baseline_s: Real | None = None
    optimized_s: Real | None = None
    instructions: Mapping[str, Real] | None = None
    allocations: Mapping[str, Real] | None = None
    aa: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.ci95 and self.ci95[0] > self.ci95[1]:
            raise ValueError(f"`ci95` is {[*self.ci95]}; it takes [low, high]")
        for name, counts in (
            ("instructions", self.instructions),
            ("allocations", self.allocations),
        ):
            for twin in ("baseline", "optimized"):
                if counts is not None and twin not in counts:
                    raise ValueError(f"`{name}.{twin}` is missing")


class Build(TypedDict, total=False):
    """The extension's own description of its build."""

    commit: str | None
    profile: str
    features: list[str]
    rustc: str | None


@dataclass(frozen=True)
class Record:
    """One measurement of one optimisation; `path` is its file."""

    path: Path = field(default=Path(), kw_only=True)
    schema: Literal[1] = field(default=1, kw_only=True)
    id: Id
    date: Annotated[datetime, Meta(tz=True)]
    commit: str | None
    dirty: bool | None
    machine: Mapping[str, Any]
    build: Build
    seconds: Real
    complete: bool
    results: tuple[Result, ...]
    also: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        slug(dict(self.machine))

    @property
    def slug(self) -> str:
        """The machine's folder."""
        return self.path.parent.name

    def result(self, workload: str, size: Mapping[str, int]) -> Result | None:
        """The result for `workload` at `size`; None if it was not measured."""
        for result in self.results:
            if result.workload == workload and dict(result.size) == dict(size):
                return result
        return None


def records(id_: str, folder: Path) -> list[Record]:
    """The complete records of an optimisation on every machine, the newest last.

    A malformed or incomplete file is left out, and named on stderr.
    """
    read_in_full = []
    for path in sorted(folder.glob("*/*.json")):
        name = _NAME.fullmatch(path.name)
        if name is None or name[1] != id_.lower():
            continue
        try:
            record = read(path)
            if record.id != id_.upper():
                why = f"`id` is {record.id!r}; the file's name says {id_.upper()!r}"
                raise NotReadError(path, why)
            if not record.complete:
                raise NotReadError(path, "is not complete")
        except NotReadError as error:
            say(f"{error}; left out", stderr=True)
            continue
        read_in_full.append((record.date, int(name[2] or 1), record))
    return [record for *_, record in sorted(read_in_full, key=lambda row: row[:2])]


def newest(
    every: Sequence[Record],
    holding: tuple[str, Mapping[str, int]] | None = None,
    prefer: str | None = None,
) -> Record | None:
    """The newest of records in order of time; None if there is none.

    With `holding`, a workload and a size, it is the newest that measured these. Records of the
    machine with the slug `prefer` come before all others.
    """
    fit = [record for record in every if holding is None or record.result(*holding)]
    own = [record for record in fit if record.slug == prefer]
    return next(reversed(own or fit), None)


def realised(
    card: Card, every: Sequence[Record], folder: Path, prefer: str | None = None
) -> tuple[Record, Result] | None:
    """The result that checks a card's prediction, at the workload and size of the prediction.

    It is taken from the record that the card names, otherwise from the `newest` of `every`. None if
    there is no prediction, or no such result. A card's record that cannot be used is named on
    stderr.
    """
    if card.prediction is None:
        return None
    wanted = card.prediction.workload, card.prediction.size
    record = newest(every, wanted, prefer)
    if card.record:
        try:
            record = read(root_of(folder) / card.record)
        except NotReadError as error:
            say(f"{error}; {card.id}'s card names it", stderr=True)
            return None
    result = record.result(*wanted) if record else None
    return (record, result) if record and result else None


def root_of(folder: Path) -> Path:
    """The repository's root, to which paths of records are relative."""
    return folder.parents[1]


def read(path: Path) -> Record:
    """The record in `path`. Raises `NotReadError` when it cannot be read or breaks the schema."""
    return replace(schema.read(path, Record), path=path)


def check(folder: Path) -> None:
    """Check that records of this machine can be written. Raises `NotWrittenError`."""
    check_folder(folder / slug(machine()))


def append(record: Mapping[str, Any], folder: Path) -> Path:
    """Write a record as a new file, completely or not at all; returns its path.

    The file lies under its machine, and is named by its date and id; a used name gets -2, -3, ….
    Raises `NotReadError` for a record that could not be read again, and `NotWrittenError`.
    """
    text = schema.written(record, Record, "record")
    parsed = schema.parse(text, Record, Path("record"))
    directory = folder / slug(dict(parsed.machine))
    stem = f"{parsed.date.astimezone(timezone.utc):%Y-%m-%dT%H%M%SZ}_{parsed.id.lower()}"
    return write_new(text, directory, stem)
