"""Regressions that are meant: a file of entries, each with what it excuses, how much, and why.

    [[acknowledged]]
    benchmark = "data_plane.Gae.*"  # a shell pattern, or the whole name
    commit = "1a2b3c4d5e"           # at least seven digits
    kind = "time"                   # one of `store.UNITS`
    ratio = 1.05                    # new / old level; what is further from 1 is not excused
    reason = "checks its bounds now"

A change may be located a commit or two beside the one that did it, and move as history grows: an
entry fits changes up to `NEAR` readings from its commit. Its size moves, too, so a ratio of times
leaves it some room.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rlox_opt.history.series import MORE_IS_BETTER, Series
from rlox_opt.history.store import UNITS
from rlox_opt.stats.levels import Change
from rlox_opt.system.files import NotReadError, read_toml

NEAR = 2
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


class AcknowledgedError(ValueError):
    """A file that cannot be used; the message names it, the entry, the value and what would do."""


@dataclass(frozen=True)
class Acknowledgement:
    """One entry of the file."""

    benchmark: str
    commit: str
    kind: str
    ratio: float
    reason: str

    def fits(self, series: Series, change: Change) -> bool:
        """Whether a change of a series is the regression meant, of whatever size."""
        if self.kind != series.kind or not series.slower(change):
            return False
        points = series.points
        place = [i for i, p in enumerate(points) if p.place == points[change.index].place]
        at = place.index(change.index)
        near = place[max(0, at - NEAR) : at + NEAR + 1]
        return fnmatchcase(series.benchmark, self.benchmark) and any(
            points[i].commit.startswith(self.commit) for i in near
        )

    def excuses(self, change: Change) -> bool:
        """Whether a change that it fits is no larger than was meant."""
        return abs(math.log(change.ratio)) <= abs(math.log(self.ratio))


def answer(
    known: Iterable[Acknowledgement], series: Series, change: Change
) -> Acknowledgement | None:
    """The entry that fits a change; of several, the one that excuses most."""
    fitting = [entry for entry in known if entry.fits(series, change)]
    return max(fitting, key=lambda entry: abs(math.log(entry.ratio)), default=None)


def load(path: Path) -> list[Acknowledgement]:
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

    def take(name: str, does: bool, takes: str) -> None:
        if not does:
            found = repr(row[name]) if name in row else "missing"
            raise AcknowledgedError(f"{where}: `{name}` is {found}; it takes {takes}")

    for name in ("benchmark", "commit", "reason"):
        take(name, isinstance(row.get(name), str) and bool(row[name].strip()), "a text")
    commit = bool(_COMMIT.fullmatch(row["commit"]))
    take("commit", commit, "7 to 40 digits of its hash")
    kind = row.get("kind")
    take("kind", isinstance(kind, str) and kind in UNITS, f"what is excused: {', '.join(UNITS)}")
    ratio = row["ratio"] if type(row.get("ratio")) in (int, float) else math.nan
    if kind in MORE_IS_BETTER:
        fewer = f"how much is excused, new / old level: of {kind}, over 0 and under 1"
        take("ratio", 0 < ratio < 1, fewer)
    else:
        more = f"how much is excused, new / old level: of {kind}, a number over 1"
        take("ratio", 1 < ratio < math.inf, more)
    return Acknowledgement(**row)
