"""The history as the pages need it: commits in order, what was recorded of each, the series."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path

from rlox_opt.history import series, store
from rlox_opt.history.acknowledged import Acknowledgement, answer
from rlox_opt.history.series import Series
from rlox_opt.history.store import Entry
from rlox_opt.stats.levels import Change
from rlox_opt.views.site.writer import digest

# Kinds in the order of their charts, with a long and a short title. In the overview, the first kind
# that a benchmark has represents it.
KINDS = {
    "time": ("Time of a call from Python", "time"),
    "criterion": ("Time of a call in Rust, by criterion", "time in Rust"),
    "steps": ("Training speed", "training speed"),
    "instructions": ("Instructions of a call, by callgrind", "instructions"),
    "allocations": ("Heap allocations of a call", "allocations"),
    "peak_memory": ("Peak memory of the process", "peak memory"),
}

_LONGEST = 150  # characters of a name in a file's name, which may have 255 bytes


@dataclass(frozen=True)
class EntryFile:
    """One entry and its file."""

    path: Path
    entry: Entry

    @property
    def title(self) -> str:
        """What distinguishes it from the others of its commit."""
        return f"{features_title(self.entry.features)}, {self.entry.slug}"


@dataclass(frozen=True)
class Commit:
    """A commit and its recordings; `index` counts from the oldest."""

    index: int
    hash: str
    parent: str | None
    subject: str
    committed: datetime
    recordings: tuple[EntryFile, ...]

    @property
    def short(self) -> str:
        return self.hash[:10]

    @property
    def day(self) -> str:
        return f"{self.committed:%Y-%m-%d}"


@dataclass(frozen=True)
class Moved:
    """A level change of a series at a commit. `last` is the commit of the old level's last point.
    `commits` are so many as come after `last`, up to `commit`; None if that is not known. `answer`
    is the acknowledgement that fits it, whether or not it excuses all of it."""

    series: Series
    change: Change
    commit: Commit
    last: Commit
    commits: int | None
    answer: Acknowledgement | None = None

    @property
    def excused(self) -> bool:
        """Whether it is acknowledged, and no larger than that."""
        return self.answer is not None and self.answer.excuses(self.change.ratio)

    @property
    def machine(self) -> str:
        """Where it was measured."""
        return self.series.points[self.change.index].machine

    @property
    def recording(self) -> EntryFile:
        """The recording of its commit with its features on its machine."""
        return self._recording_of(self.commit)

    @property
    def besides(self) -> Sequence[str]:
        """What changed beside the code, one sentence each."""
        return self._besides[0]

    @cached_property
    def _besides(self) -> tuple[list[str], bool]:
        return self.recording.entry.besides(self._recording_of(self.last).entry)

    def _recording_of(self, commit: Commit) -> EntryFile:
        return next(
            recording
            for recording in commit.recordings
            if (recording.entry.features, recording.entry.slug)
            == (self.series.features, self.machine)
        )

    @property
    def worse(self) -> bool:
        return self.series.slower(self.change)

    @property
    def unexplained(self) -> bool:
        """Whether it is an open regression that is not acknowledged, or not to its full size, and
        that no change of the environment explains."""
        return self.series.unexplained(self.change, self.excused, self._besides[1])

    @property
    def kind(self) -> str:
        """The kind of figure that changed, as a short title."""
        return KINDS[self.series.kind][1]

    @property
    def figure(self) -> str:
        """The figures of the change, as text."""
        return f"{self.kind}, {features_title(self.series.features)}"

    @property
    def word(self) -> str:
        """The direction of the change: "slower", "fewer", …"""
        more, less = {
            "time": ("slower", "faster"),
            "criterion": ("slower", "faster"),
            "steps": ("faster", "slower"),
            "peak_memory": ("larger", "smaller"),
        }.get(self.series.kind, ("more", "fewer"))
        return more if self.change.ratio > 1 else less


@dataclass(frozen=True)
class History:
    """Everything that is published. `line` numbers the commits of the repository, recorded or
    not."""

    commits: tuple[Commit, ...]
    series: tuple[Series, ...]
    acknowledged: Sequence[Acknowledgement] = ()
    line: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        recordings: Iterable[EntryFile],
        order: Sequence[str] | None = None,
        least: Mapping[str, Mapping[str, float]] | None = None,
        acknowledged: Sequence[Acknowledgement] = (),
        table: Mapping[str, float] | None = None,
    ) -> History:
        """The history behind the pages; `order`, `least` and `table` are those of
        `series.of_store`."""
        every = [*recordings]
        paths = {(of.entry.slug, of.entry.commit, of.entry.date): of.path for of in every}
        kept = [
            EntryFile(paths[entry.slug, entry.commit, entry.date], entry)
            for entry in store.newest(of.entry for of in every).values()
        ]
        of_commit: defaultdict[str, list[EntryFile]] = defaultdict(list)
        for recording in kept:
            of_commit[recording.entry.commit].append(recording)
        rank = {commit: number for number, commit in enumerate(order or ())}
        first = {commit: found[0].entry for commit, found in of_commit.items()}
        ordered = sorted(
            (commit for commit in of_commit if order is None or commit in rank),
            key=lambda commit: (rank.get(commit, 0), first[commit].committed, commit),
        )
        commits = tuple(
            Commit(
                index,
                commit,
                first[commit].parent,
                first[commit].subject,
                first[commit].committed,
                tuple(
                    sorted(
                        of_commit[commit], key=lambda r: (r.entry.slug, rank_of(r.entry.features))
                    )
                ),
            )
            for index, commit in enumerate(ordered)
        )
        found = series.of_store([r.entry for r in kept], order, least, table)
        return cls(commits, tuple(found), acknowledged, rank)

    @cached_property
    def by_hash(self) -> dict[str, Commit]:
        """The commits by their whole hash."""
        return {commit.hash: commit for commit in self.commits}

    @cached_property
    def by_benchmark(self) -> dict[str, list[Series]]:
        """The series of each benchmark, in the order of `KINDS`, then of features."""
        found: defaultdict[str, list[Series]] = defaultdict(list)
        for one in self.series:
            found[one.benchmark].append(one)
        kinds = list(KINDS)
        return {
            name: sorted(of, key=lambda s: (kinds.index(s.kind), rank_of(s.features)))
            for name, of in sorted(found.items())
        }

    @cached_property
    def moved(self) -> list[Moved]:
        """All level changes, the newest first, those of one commit in the order of `KINDS`."""
        found = [self._moved(one, change) for one in self.series for change in one.changes]
        kinds = list(KINDS)
        return sorted(
            found,
            key=lambda m: (
                -m.commit.index,
                kinds.index(m.series.kind),
                m.series.benchmark,
                rank_of(m.series.features),
            ),
        )

    def _moved(self, one: Series, change: Change) -> Moved:
        commit = self.by_hash[one.points[change.index].commit]
        last = self.by_hash[one.points[change.before].commit]
        commits = series.possible(last.hash, commit.hash, commit.parent, self.line)
        meant = answer(self.acknowledged, one, change, self.line)
        return Moved(one, change, commit, last, commits, meant)

    @cached_property
    def moved_at(self) -> dict[str, list[Moved]]:
        """The level changes by the commit at which they are."""
        found: defaultdict[str, list[Moved]] = defaultdict(list)
        for moved in self.moved:
            found[moved.commit.hash].append(moved)
        return dict(found)

    @cached_property
    def moved_in(self) -> dict[tuple[str, tuple[str, ...]], list[Moved]]:
        """The level changes by benchmark and features, the newest first."""
        found: defaultdict[tuple[str, tuple[str, ...]], list[Moved]] = defaultdict(list)
        for moved in self.moved:
            found[moved.series.benchmark, moved.series.features].append(moved)
        return dict(found)

    @cached_property
    def machines(self) -> list[str]:
        """Machines by name."""
        return sorted({r.entry.slug for commit in self.commits for r in commit.recordings})

    def before(self, recording: EntryFile) -> EntryFile | None:
        """The recording before it, with the same features on the same machine."""
        return self._before.get(recording.path)

    @cached_property
    def _before(self) -> dict[Path, EntryFile]:
        last: dict[tuple[str, tuple[str, ...]], EntryFile] = {}
        found = {}
        for commit in self.commits:
            for recording in commit.recordings:
                line = recording.entry.slug, recording.entry.features
                if line in last:
                    found[recording.path] = last[line]
                last[line] = recording
        return found


def read(folder: Path) -> list[EntryFile]:
    """All recordings of a store. Raises NotReadError."""
    return [EntryFile(path, entry) for path, entry in store.entries(folder)]


def rank_of(features: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """A key that orders feature sets: the one without any comes last."""
    return not features, features


def features_title(features: Sequence[str]) -> str:
    """A feature set in words: "accepted", "opt-p3, opt-p5", "baseline" of none."""
    return ", ".join(features) or "baseline"


def cost(entry: Entry, name: str) -> float | None:
    """The time of a training step relative to the control's in the same run; None if it was not
    compared with a control."""
    for cell in entry.cells:
        if cell.kind == "steps" and cell.benchmark == f"train.{name}" and cell.ratio:
            return 1 / cell.ratio
    return None


@cache
def slug(name: str) -> str:
    """A name as a part of a file's name: "data_plane.Gae.time_gae(2048)" becomes
    "data_plane.Gae.time_gae-2048-" with six digits of a digest.

    Letters that a file's name may not have are replaced, and a long name is cut. Two names may then
    become the same, so such a name gets the digest."""
    safe = re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:_LONGEST]
    return safe if safe == name else f"{safe}-{digest([name])[:6]}"
