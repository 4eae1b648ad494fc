"""Acknowledged regressions: a file of entries that say what is excused, how much, and why.

    [[acknowledged]]
    benchmark = "data_plane.Gae.*"  # a shell pattern, or the whole name
    kind = "time"                   # one of `store.UNITS`
    ratio = 1.05                    # new / old level; changes further from 1 are not excused
    reason = "checks its bounds now"
    commit = "1a2b3c4d5e"           # at least seven digits, or left out

Without a commit, an entry belongs to the change that adds it to the file, since nobody knows that
commit's hash while writing. So it excuses that change, and no later one.

A change may be found a commit or two beside its cause, and that place may move as the history
grows. So an entry fits changes up to `NEAR` readings from its commit, or from the next reading if
the commit has none. The size of a change moves too, so an entry for times has some tolerance.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rlox_opt.history.store import MORE_IS_BETTER, UNITS
from rlox_opt.system.files import NotReadError
from rlox_opt.system.patterns import matches
from rlox_opt.system.schema import Positive, parse, read

if TYPE_CHECKING:
    from rlox_opt.history.series import Series
    from rlox_opt.project.commits import Revision
    from rlox_opt.project.project import Project
    from rlox_opt.stats.levels import Change

NEAR = 2
_KINDS = (*UNITS, "memory", "track")  # with those of `diff`


class Acknowledgement(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the file."""

    benchmark: str
    kind: str
    ratio: Positive
    reason: str
    commit: str = ""

    def __post_init__(self) -> None:
        more = self.kind in MORE_IS_BETTER
        fits = 0 < self.ratio < 1 if more else self.ratio > 1
        bounds = "over 0 and under 1" if more else "a number over 1"
        for name, does, takes in (
            (
                "commit",
                re.fullmatch("([0-9a-f]{7,40})?", self.commit),
                "7 to 40 digits of its hash",
            ),
            ("kind", self.kind in _KINDS, f"what is excused: {', '.join(_KINDS)}"),
            ("ratio", fits, f"how much is excused, new / old level: of {self.kind}, {bounds}"),
            ("benchmark", self.benchmark.strip(), "a text"),
            ("reason", self.reason.strip(), "a text"),
        ):
            if not does:
                raise ValueError(f"`{name}` is {getattr(self, name)!r}; it takes {takes}")

    def fits(self, series: Series, change: Change, line: Mapping[str, int] | None = None) -> bool:
        """Whether a change of a series is the regression of this entry, of whatever size. `line`
        numbers the commits by their whole hashes, so that the reading after a commit is known."""
        if not self.commit or self.kind != series.kind or not series.slower(change):
            return False
        points = series.points
        place = [i for i, p in enumerate(points) if p.place == points[change.index].place]
        at = place.index(change.index)
        own = self._readings([points[i].commit for i in place], line or {})
        return matches(series.benchmark, self.benchmark) and any(abs(n - at) <= NEAR for n in own)

    def _readings(self, commits: Sequence[str], line: Mapping[str, int]) -> list[int]:
        """Those of its commit, among readings of these commits in order; without any, the next."""
        own = [n for n, commit in enumerate(commits) if commit.startswith(self.commit)]
        if own or self.commit not in line:
            return own
        later = (n for n, commit in enumerate(commits) if line.get(commit, -1) > line[self.commit])
        first = next(later, 0)
        return [first] if first else []  # what comes before the first reading is no change there

    def excuses(self, ratio: float) -> bool:
        """Whether a change that the entry fits is no larger than it excuses."""
        return abs(math.log(ratio)) <= abs(math.log(self.ratio))


def answer(
    known: Iterable[Acknowledgement],
    series: Series,
    change: Change,
    line: Mapping[str, int] | None = None,
) -> Acknowledgement | None:
    """The entry that fits a change on a line; if there are several, the one that excuses most."""
    return _most(entry for entry in known if entry.fits(series, change, line))


def answer_to(
    known: Iterable[Acknowledgement], benchmark: str, kind: str
) -> Acknowledgement | None:
    """The entry for a benchmark that a comparison found slower or larger; if there are several, the
    one that excuses most."""
    return _most(of for of in known if of.kind == kind and matches(benchmark, of.benchmark))


def _most(fitting: Iterable[Acknowledgement]) -> Acknowledgement | None:
    return max(fitting, key=lambda entry: abs(math.log(entry.ratio)), default=None)


class _File(Struct, forbid_unknown_fields=True):
    acknowledged: tuple[Acknowledgement, ...] = ()


def load(path: Path) -> list[Acknowledgement]:
    """The entries of a file. Raises NotReadError."""
    return [*read(path, _File).acknowledged]


def of_change(project: Project, base: Revision, head: Revision) -> list[Acknowledgement]:
    """The entries that a change adds: head's file has them and base's does not. If they name a
    commit, it must be one of the change. A release has none. Raises NotReadError."""
    path = _inside(project, project.acknowledged)
    if path is None or base.is_release or head.is_release:
        return []
    before = _at(project, base.commit, path)
    brought = [entry for entry in _at(project, head.commit, path) if entry not in before]
    named = any(entry.commit for entry in brought)
    commits = project.commits.since(base.commit, head.commit) if named else []
    return [
        entry
        for entry in brought
        if not entry.commit or any(commit.startswith(entry.commit) for commit in commits)
    ]


def dated(project: Project, path: Path, known: Sequence[Acknowledgement]) -> list[Acknowledgement]:
    """The entries of a file, each with its commit. Without one it is the commit on HEAD's line of
    first parents that added the entry, or none if no commit has. A changed entry is a new one."""
    inside, since = _inside(project, path), dict[Acknowledgement, str]()
    if inside is not None and not all(entry.commit for entry in known):
        for commit in project.commits.line("HEAD", inside):
            with contextlib.suppress(NotReadError):
                since = {of: since.get(of, commit) for of in _at(project, commit, inside)}
    return [replace(of, commit=of.commit or since.get(of, "")[:40]) for of in known]


def whole(known: Iterable[Acknowledgement], line: Sequence[str]) -> list[Acknowledgement]:
    """The entries, with the whole hashes of commits that are on a line."""

    def commit(of: Acknowledgement) -> str:
        return next((one for one in line if of.commit and one.startswith(of.commit)), of.commit)

    return [replace(of, commit=commit(of)[:40]) for of in known]


def _inside(project: Project, path: Path) -> str | None:
    """A path from the top of the repository; None outside it."""
    inside = os.path.relpath(path.resolve(), project.top.resolve())
    return None if inside.startswith("..") else inside


def _at(project: Project, commit: str, path: str) -> Sequence[Acknowledgement]:
    """The entries in a commit's version of a file. Raises NotReadError."""
    text = project.commits.text(commit, path)
    return parse(text, _File, Path(f"{commit[:10]}:{path}")).acknowledged
