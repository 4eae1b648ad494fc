"""Series of the history: one benchmark's values, commit after commit, and where its level changed.

A series is one number (benchmark and kind) of one feature set, over all machines. A commit that was
measured on two machines has two points. Level changes are searched for among the points of one
machine and one control, which are its place. So a move to another machine is no change, and changes
before and after the move are found.

The searched values depend on the kind. Times and steps per second are ratios to the control of the
same run, since absolute values depend on the machine and the hour; without a control they are
shown, but not searched. Counts and memory are searched as they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rlox_opt.history.store import MORE_IS_BETTER, UNITS, Cell, Entry, newest
from rlox_opt.project import thresholds
from rlox_opt.stats import levels
from rlox_opt.stats.levels import Change, Readings
from rlox_opt.stats.student import t_quantile

COUNTS = ("instructions", "allocations")  # they repeat exactly, or nearly so
ABSOLUTE = (*COUNTS, "peak_memory")
COUNTS_FLOOR = 0.005  # for counts, as `levels.FLOOR` for times
_STRAY = 0.5  # allocations a call: a smaller difference comes from a few of all counted calls

Place = tuple[str, str]
Key = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Point:
    """One commit's number. `machine` is its folder in the history. `ratio` is to the control, with
    its 99 % interval; None without a control. `level` is the value to search for level changes,
    None if the point is left out; `error` is the standard error of its logarithm, if known."""

    commit: str
    subject: str
    committed: datetime
    machine: str
    control: str
    value: float
    ratio: float | None
    ci99: tuple[float, float] | None
    level: float | None
    error: float | None = None

    @property
    def place(self) -> Place:
        """The machine and the control: points with the same place can be compared."""
        return self.machine, self.control


@dataclass(frozen=True)
class Series:
    """`points` are in the order of the commits; the indices of `changes` are into them."""

    benchmark: str
    kind: str
    features: tuple[str, ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...] = ()
    threshold: float = 0.0
    """The least log-ratio that matters, from the project's settings."""

    @property
    def unit(self) -> str:
        """The unit of the points' values."""
        return UNITS[self.kind]

    def slower(self, change: Change) -> bool:
        """Whether the benchmark takes more since the change, or makes fewer steps a second."""
        return (change.ratio > 1) != (self.kind in MORE_IS_BETTER)

    def unexplained(self, change: Change, excused: bool, drifted: bool) -> bool:
        """Whether a change is an open regression that is not `excused`, nor may come from an
        environment that has `drifted`, changed without a commit that asks for it. What has a
        control cannot: the control ran in that environment as well."""
        explained = excused or (drifted and self.kind in ABSOLUTE)
        return self.slower(change) and self.open(change) and not explained

    def open(self, change: Change) -> bool:
        """Whether it exceeds the threshold, and later changes of its place have never taken back
        half of it or more."""
        place = self.points[change.index].place
        jump = left = math.log(change.ratio)
        if abs(jump) <= self.threshold:
            return False
        for later in self.changes:
            if later.index > change.index and self.points[later.index].place == place:
                left += math.log(later.ratio)
                if left / jump <= 0.5:
                    return False
        return True


def of_store(
    entries: Iterable[Entry],
    order: Sequence[str] | None = None,
    least: Mapping[str, Mapping[str, float]] | None = None,
    table: Mapping[str, float] | None = None,
) -> list[Series]:
    """All series, with their changes, in the order of their names.

    `order` are the commits, the oldest first; entries of other commits are left out. Without it,
    all are ordered by the time of their commit. `least` is, by machine and benchmark, the smallest
    log-ratio of a time to report: the smallest that the machine's calibration can find. `table` are
    the project's thresholds, in per cent by patterns; counts have none, as in `diff`.
    """
    kept = _in_order(newest(entries).values(), order)
    every = _points(kept)
    taking_part = {
        (key, place): at for key, points in every.items() for place, at in _by_place(points).items()
    }
    rank = {entry.commit: number for number, entry in enumerate(kept)}
    told = levels.family(
        _with_suspected(
            {
                (key, place): _readings(key, [every[key][i] for i in at], least or {})
                for (key, place), at in taking_part.items()
            },
            {of: [rank[every[of[0]][i].commit] for i in at] for of, at in taking_part.items()},
        )
    )
    changes: dict[Key, list[Change]] = {key: [] for key in every}
    for (key, place), of in told.items():
        changes[key] += [change.at(taking_part[key, place]) for change in of]
    own = thresholds.own(table or {}, {benchmark for benchmark, *_ in every})
    return [
        Series(
            *key,
            tuple(every[key]),
            tuple(sorted(changes[key], key=lambda c: c.index)),
            0.0 if key[1] in COUNTS else own.get(key[0], 0.0),
        )
        for key in sorted(every)
    ]


def unsearched(of: Iterable[Series]) -> list[str]:
    """How many times are not searched as far as their newest recording, by the reason."""
    times = [one for one in of if one.kind not in ABSOLUTE]
    whys = Counter(_why_unsearched(one) for one in times)
    return [f"{n} of {len(times)} times are not searched: {why}" for why, n in whys.items() if why]


def _why_unsearched(one: Series) -> str:
    """Why the places of a time's newest commit are not searched; "" where one of them is."""
    newest = one.points[-1].commit
    there = {point.place for point in one.points if point.commit == newest}
    lengths = [len(at) for place, at in _by_place(one.points).items() if place in there]
    if not lengths:
        return "their newest machine and control have no ratio of them"
    few = f"their newest machine and control have fewer than {levels.SHORTEST} recordings of them"
    return few if max(lengths) < levels.SHORTEST else ""


def possible(after: str, commit: str, parent: str | None, line: Mapping[str, int]) -> int | None:
    """How many commits may have made a change that is found at a commit, if the recording before is
    of the commit `after`; None if the line, which numbers its commits, does not tell."""
    if parent == after:
        return 1
    return line[commit] - line[after] if commit in line and after in line else None


def _in_order(entries: Iterable[Entry], order: Sequence[str] | None) -> list[Entry]:
    if order is None:
        return sorted(entries, key=lambda entry: (entry.committed, entry.commit, entry.slug))
    rank = {commit: number for number, commit in enumerate(order)}
    on_it = (entry for entry in entries if entry.commit in rank)
    return sorted(on_it, key=lambda entry: (rank[entry.commit], entry.slug))


def _points(entries: Iterable[Entry]) -> dict[Key, list[Point]]:
    points: dict[Key, list[Point]] = {}
    for entry in entries:
        control = _control(entry)
        for cell in entry.cells:
            points.setdefault((cell.benchmark, cell.kind, entry.features), []).append(
                Point(
                    entry.commit,
                    entry.subject,
                    entry.committed,
                    entry.slug,
                    "" if cell.kind in ABSOLUTE else control,
                    cell.value,
                    cell.ratio,
                    cell.ratio_ci99,
                    _level(cell),
                    _error(cell),
                )
            )
    return points


def _control(entry: Entry) -> str:
    """What the ratios are relative to, as one word."""
    return f"{entry.control['commit']}+{','.join(entry.control['features'])}"


def _level(cell: Cell) -> float | None:
    if cell.kind not in ABSOLUTE:
        return cell.ratio
    if cell.kind == "allocations":
        return cell.value + 1  # so that a change from 0 has a ratio too
    return cell.value or None


def _error(cell: Cell) -> float | None:
    """The standard error, from the interval, which is Student's over restarts."""
    if cell.kind in ABSOLUTE or cell.ratio_ci99 is None or (cell.restarts or 0) < 2:
        return None
    low, high = cell.ratio_ci99
    return math.log(high / low) / 2 / t_quantile(0.01, (cell.restarts or 0) - 1)


def _by_place(points: Sequence[Point]) -> dict[Place, list[int]]:
    """The indices of the points that are searched."""
    places: dict[Place, list[int]] = {}
    for index, point in enumerate(points):
        if point.level is not None:
            places.setdefault(point.place, []).append(index)
    return places


def _with_suspected(
    readings: Mapping[tuple[Key, Place], Readings], ranks: Mapping[tuple[Key, Place], Sequence[int]]
) -> dict[tuple[Key, Place], Readings]:
    """The readings with `suspected` indices added. A value that does not repeat exactly may have
    changed where a count of the same benchmark and features on the same machine did. `ranks` are
    those of the readings' commits."""
    moved: defaultdict[tuple[str, tuple[str, ...], str], set[int]] = defaultdict(set)
    for (key, place), of in readings.items():
        if of.exact:
            at = ranks[key, place]
            moved[_code(key, place)] |= {at[change.index] for change in levels.changes(of)}
    suspecting = {}
    for (key, place), of in readings.items():
        at = ranks[key, place]
        indices = {bisect_left(at, rank) for rank in moved.get(_code(key, place), ())}
        suspecting[key, place] = of if of.exact else replace(of, suspected=sorted(indices))
    return suspecting


def _code(key: Key, place: Place) -> tuple[str, tuple[str, ...], str]:
    """The counts and times with the same key belong together: a benchmark, features, a machine."""
    return key[0], key[2], place[0]


def _readings(
    key: Key, points: Sequence[Point], least: Mapping[str, Mapping[str, float]]
) -> Readings:
    benchmark, kind, _ = key
    values = [point.level or 0.0 for point in points]
    known = least.get(points[0].machine, {}).get(benchmark, 0.0) if kind == "time" else 0.0
    return Readings(
        [*_without_strays(values)] if kind == "allocations" else values,
        [point.error for point in points],
        max(known, COUNTS_FLOOR if kind in COUNTS else levels.FLOOR),
        exact=kind in COUNTS,
        like=(points[0].machine, kind),
    )


def _without_strays(values: Iterable[float]) -> Iterator[float]:
    """Each value, or the last one that is returned as long as the two differ by a stray part of an
    allocation."""
    kept = -math.inf
    for value in values:
        if abs(value - kept) >= _STRAY:
            kept = value
        yield kept
