"""Regressions that are meant: a file of entries, each with its reason.

    [[acknowledged]]
    benchmark = "data_plane.Gae.*"  # a shell pattern, or the whole name
    commit = "1a2b3c4d5e"           # at least seven digits
    reason = "checks its bounds now"

A change may be located a commit or two beside the one that did it, and move as history grows: an
entry fits changes up to `NEAR` readings from its commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rlox.files import NotReadError, read_toml
from rlox.history.levels import Change
from rlox.history.series import Series
from rlox.profiling.machine import ROOT

FILE = ROOT / "asv_bench" / "acknowledged.toml"
NEAR = 2
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class AcknowledgedError(ValueError):
    """A file that cannot be used; the message names it, the entry, the value and what would do."""


@dataclass(frozen=True)
class Acknowledgement:
    """One entry of the file."""

    benchmark: str
    commit: str
    reason: str

    def fits(self, series: Series, change: Change) -> bool:
        """Whether a change of a series is the one meant."""
        points = series.points
        place = [i for i, p in enumerate(points) if p.place == points[change.index].place]
        at = place.index(change.index)
        near = place[max(0, at - NEAR) : at + NEAR + 1]
        return fnmatchcase(series.benchmark, self.benchmark) and any(
            points[i].commit.startswith(self.commit) for i in near
        )


def load(path: Path = FILE) -> list[Acknowledgement]:
    """The entries of a file. Raises AcknowledgedError."""
    try:
        table = read_toml(path)
    except NotReadError as error:
        raise AcknowledgedError(str(error)) from error
    if wrong := sorted(table.keys() - {"acknowledged"}):
        raise AcknowledgedError(f"{path}: has `{wrong[0]}`; it takes [[acknowledged]] alone")
    rows = table.get("acknowledged", [])
    if not isinstance(rows, list):
        raise AcknowledgedError(f"{path}: `acknowledged` is a table; write [[acknowledged]]")
    return [_entry(row, f"{path}: acknowledged[{number}]") for number, row in enumerate(rows)]


def _entry(row: object, where: str) -> Acknowledgement:
    if not isinstance(row, dict):
        raise AcknowledgedError(f"{where} is {row!r}; it takes a table")
    names = Acknowledgement.__dataclass_fields__
    if wrong := sorted(row.keys() - names.keys()):
        raise AcknowledgedError(f"{where}: has `{wrong[0]}`; it takes {', '.join(names)}")
    for name in names:
        if not isinstance(row.get(name), str) or not row[name].strip():
            found = repr(row[name]) if name in row else "missing"
            raise AcknowledgedError(f"{where}: `{name}` is {found}; it takes a text")
    if not _COMMIT.fullmatch(row["commit"]):
        raise AcknowledgedError(
            f"{where}: `commit` is {row['commit']!r}; it takes 7 to 40 digits of its hash"
        )
    return Acknowledgement(**row)
