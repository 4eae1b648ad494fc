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
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from rlox_opt.history.store import MORE_IS_BETTER, UNITS
from rlox_opt.system.patterns import matches
from rlox_opt.system.schema import Positive, read

if TYPE_CHECKING:
    from rlox_opt.history.series import Series
    from rlox_opt.stats.levels import Change

NEAR = 2


class Acknowledgement(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the file."""

    benchmark: str
    commit: str
    kind: str
    ratio: Positive
    reason: str

    def __post_init__(self) -> None:
        more = self.kind in MORE_IS_BETTER
        fits = 0 < self.ratio < 1 if more else self.ratio > 1
        bounds = "over 0 and under 1" if more else "a number over 1"
        for name, does, takes in (
            ("commit", re.fullmatch("[0-9a-f]{7,40}", self.commit), "7 to 40 digits of its hash"),
            ("kind", self.kind in UNITS, f"what is excused: {', '.join(UNITS)}"),
            ("ratio", fits, f"how much is excused, new / old level: of {self.kind}, {bounds}"),
            ("benchmark", self.benchmark.strip(), "a text"),
            ("reason", self.reason.strip(), "a text"),
        ):
            if not does:
                raise ValueError(f"`{name}` is {getattr(self, name)!r}; it takes {takes}")

    def fits(self, series: Series, change: Change) -> bool:
        """Whether a change of a series is the regression meant, of whatever size."""
        if self.kind != series.kind or not series.slower(change):
            return False
        points = series.points
        place = [i for i, p in enumerate(points) if p.place == points[change.index].place]
        at = place.index(change.index)
        near = place[max(0, at - NEAR) : at + NEAR + 1]
        return matches(series.benchmark, self.benchmark) and any(
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


class _File(Struct, forbid_unknown_fields=True):
    acknowledged: tuple[Acknowledgement, ...] = ()


def load(path: Path) -> list[Acknowledgement]:
    """The entries of a file. Raises NotReadError."""
    return [*read(path, _File).acknowledged]
