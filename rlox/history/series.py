"""Series of the store: what one benchmark took, commit after commit, and where its level changed.

A series is one number (benchmark and kind) of one feature set, over all machines. Each of its
points knows its machine, and levels are found among the points of one machine and one control: a
commit measured on two machines gives two points, and a move to another machine no change.

What levels are found on depends on the kind. Times are ratios to the control of the same run, since
absolute times belong to the machine and the hour: without a control they are shown, but have no
levels. Counts and memory are values relative to the machine's first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rlox.history import levels
from rlox.history.levels import Change, Readings
from rlox.history.store import UNITS, Entry, newest

# Kinds that repeat closely, or to the last digit, on one machine: no control is needed.
ABSOLUTE = ("instructions", "allocations", "peak_memory")
MORE_IS_BETTER = ("steps",)
_Z99 = 2.5758  # standard errors from the middle of a 99 % interval to its end


@dataclass(frozen=True)
class Point:
    """One commit's number. `machine` is its folder in the store. `ratio` is to the control, with
    its 99 % interval; None where there is no control. `control` says what that is. `level` is what
    levels are found on; None where the point takes no part."""

    commit: str
    subject: str
    committed: datetime
    machine: str
    value: float
    ratio: float | None
    ci99: tuple[float, float] | None
    level: float | None
    control: str = ""


@dataclass(frozen=True)
class Series:
    """`points` are in the order of the commits; `changes` have indices into them."""

    benchmark: str
    kind: str
    features: tuple[str, ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...] = field(default=())

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    def slower(self, change: Change) -> bool:
        """Whether a change is for the worse: longer, more, or fewer steps a second."""
        return (change.ratio > 1) != (self.kind in MORE_IS_BETTER)


Key = tuple[str, str, tuple[str, ...]]


def of_store(
    entries: Iterable[Entry],
    order: Sequence[str] | None = None,
    least: Mapping[str, float] | None = None,
) -> list[Series]:
    """All series with their changes, by benchmark, kind and features.

    `order` are the commits, the oldest first, and others are left out; without it they are ordered
    by the time of the commit. `least` is the smallest log-ratio worth telling of a benchmark, from
    the machine's calibration; none is below `levels.FLOOR`.
    """
    found = _points(entries, order)
    known = least or {}
    readings = {
        key: _readings(points, max(levels.FLOOR, known.get(key[0], 0.0)))
        for key, points in found.items()
    }
    changes = levels.family({key: of for key, (of, _) in readings.items()})
    out = []
    for key, points in found.items():
        at = readings[key][1]
        moved = tuple(c.at(at) for c in changes[key])
        out.append(Series(*key, tuple(points), moved))
    return sorted(out, key=lambda s: (s.benchmark, s.kind, s.features))


def _points(entries: Iterable[Entry], order: Sequence[str] | None) -> dict[Key, list[Point]]:
    kept = newest(entries).values()
    if order is None:
        ranked = sorted(kept, key=lambda entry: (entry.committed, entry.commit, entry.slug))
    else:
        rank = {commit: number for number, commit in enumerate(order)}
        ranked = sorted(
            (entry for entry in kept if entry.commit in rank),
            key=lambda entry: (rank[entry.commit], entry.slug),
        )
    found: dict[Key, list[Point]] = {}
    first: dict[tuple[Key, str], float] = {}
    for entry in ranked:
        control = _control(entry)
        for cell in entry.cells:
            key = cell.benchmark, cell.kind, entry.features
            level, to = cell.ratio, control
            if cell.kind in ABSOLUTE:
                base = first.setdefault((key, entry.slug), cell.value)
                level, to = (cell.value / base if base and cell.value else None), ""
            found.setdefault(key, []).append(
                Point(
                    entry.commit,
                    entry.subject,
                    entry.committed,
                    entry.slug,
                    cell.value,
                    cell.ratio,
                    cell.ratio_ci99,
                    level,
                    to,
                )
            )
    return found


def _control(entry: Entry) -> str:
    """What the ratio is to, in words. A control that is the entry's own commit, built without the
    optimisations, moves along with the commits and stays the same control."""
    commit = entry.control.get("commit")
    own = commit is None or commit == entry.commit
    return f"{'same commit' if own else commit}+{','.join(entry.control.get('features') or ())}"


def _readings(points: Sequence[Point], least: float) -> tuple[Readings, list[int]]:
    """The points that take part, and their indices."""
    at = [i for i, point in enumerate(points) if point.level is not None]
    taking_part = [points[i] for i in at]
    return (
        Readings(
            [point.level or 1.0 for point in taking_part],
            [_error(point.ci99) for point in taking_part],
            [(point.machine, point.control) for point in taking_part],
            least,
        ),
        at,
    )


def _error(ci99: tuple[float, float] | None) -> float | None:
    """The standard error of a log-ratio, from its interval."""
    return None if ci99 is None else math.log(ci99[1] / ci99[0]) / 2 / _Z99
