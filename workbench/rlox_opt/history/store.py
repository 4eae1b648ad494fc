"""The history: the measurements of commits, one JSON file for each commit, feature set and
recording.

They lie in a project's `history/<machine>/<YYYY-MM-DD>T<HHMMSS>Z_<commit>.json`. A file is named by
the time of measuring, written once and never changed. Its keys are `schema` (1) and the fields of
`Entry`; its cells have those of `Cell`, its profiles those of `Profile`. A commit that is recorded
again gets another file, and the newest numbers count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from rlox_opt.system import schema
from rlox_opt.system.files import write_new
from rlox_opt.system.machine import slug
from rlox_opt.system.output import few
from rlox_opt.system.schema import Count, NotNegative, Positive, Real

# The kinds of values, with their units.
UNITS = {
    "time": "seconds",  # of a call, Python's, paired with the control
    "criterion": "seconds",  # of a call, Rust's
    "instructions": "instructions",  # of a call, by callgrind
    "allocations": "allocations",  # of a call
    "peak_memory": "bytes",  # of a process
    "steps": "steps/second",  # of training, in the profile's plain run
}
MORE_IS_BETTER = ("steps",)
_WATCHING = ("perf", "py-spy", "scalene")  # of a toolchain; they make no benchmark slower
_ASKING = ("requirements", "toolchain")  # of how it was built: a commit's own files say so


@dataclass(frozen=True)
class Cell:
    """One number of one benchmark.

    `benchmark` is asv's name, the same for every kind: "data_plane.Gae.time_gae(2048)"; for
    training it is "train." and the name of the run. `ratio` is `value` / the control's in the same
    run, with its 99 % interval over restarts; None without a control. For "time", over 1 is slower
    than the control.
    """

    benchmark: str
    kind: str
    value: NotNegative
    ratio: Positive | None = None
    ratio_ci99: tuple[Positive, Positive] | None = None
    restarts: Count | None = None

    def __post_init__(self) -> None:
        if self.kind not in UNITS:
            raise ValueError(f"`kind` is {self.kind[:80]!r}; it takes {', '.join(UNITS)}")


@dataclass(frozen=True)
class Profile:
    """Where training spent its time. `layers` and `phases` are shares of the whole (sum 1); phases
    have their path ("update/backward"), and each is without its inner phases. `functions` are the
    shares of the largest "layer:function", each the innermost function of the project's own.
    `folded` are the stacks, as text of `phase;…;frame;frame;… millionths of the whole`, or None."""

    samples: Count
    layers: Mapping[str, Real]
    phases: Mapping[str, Real]
    functions: Mapping[str, Real] = field(default_factory=dict)
    folded: str | None = None


@dataclass(frozen=True)
class Entry:
    """The measurements of a commit with a feature set on a machine.

    `committed` and `date` are the times of the commit and of the measurement. `features` are those
    that were asked for: ("shipped",) are those of the commit's own pyproject.toml, () none.
    `optimizations` are those that were on, as the extension says. `control` is what ratios are
    relative to, {"commit", "features"}. `toolchain` has versions, {"rustc", "python", "numpy", …}.
    `built` says how it was built ({} in recordings from before it was kept). `failures` are what
    could not be measured, {"benchmark", "reason"} each. `causes` say, by benchmark, why it changed
    since the parent's recording: the fields of `cause.Cause`. An entry that is not `complete` was
    `stopped`, or measured only some benchmarks on request, those whose names the pattern `asked`
    finds; its contents are valid. `suite` is a digest of the benchmarks that measured it ("" in
    recordings from before it was kept). `notes` say what people should know of its build, of the
    control's, and of how the two differ.
    """

    schema: Literal[1] = field(default=1, kw_only=True)
    commit: str
    parent: str | None
    subject: str
    committed: Annotated[datetime, Meta(tz=True)]
    date: Annotated[datetime, Meta(tz=True)]
    machine: Mapping[str, Any]
    toolchain: Mapping[str, str]
    profile: str
    features: tuple[str, ...]
    control: Mapping[str, Any]
    seconds: Real
    complete: bool
    cells: tuple[Cell, ...]
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    failures: tuple[Mapping[str, str], ...] = ()
    optimizations: tuple[str, ...] = ()
    causes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    built: Mapping[str, str] = field(default_factory=dict)
    suite: str = ""
    notes: tuple[str, ...] = ()
    asked: str = ""
    stopped: bool = False

    def __post_init__(self) -> None:
        slug(dict(self.machine))
        try:
            "".join([self.control["commit"], *self.control["features"]])
        except (LookupError, TypeError):
            takes = "it takes a commit and features"
            raise ValueError(f"`control` is {dict(self.control)}; {takes}") from None
        for failure in self.failures:
            if not failure.keys() >= {"benchmark", "reason"}:
                raise ValueError(f"`failures` has {dict(failure)}; it takes benchmark and reason")

    @cached_property
    def slug(self) -> str:
        """The machine's folder."""
        return slug(dict(self.machine))

    def built_unlike(self, before: Entry) -> list[str]:
        """What differs between its build and environment and those of the entry `before`."""
        pairs = [(before.toolchain, self.toolchain)]
        if before.built and self.built:
            pairs.append((before.built, self.built))
        return [
            f"{what}: {old.get(what, 'none')} → {new.get(what, 'none')}"
            for old, new in pairs
            for what in dict.fromkeys([*old, *new])
            if old.get(what) != new.get(what)
        ]

    def besides(self, before: Entry) -> tuple[list[str], bool]:
        """What changed besides the code since the entry `before`, one sentence each: the suite, the
        environment; and whether the environment did so without being asked for by a commit. Nothing
        where one of the two is from before the suite was kept."""
        if not (self.suite and before.suite):
            return [], False
        old, new = (
            {**of.toolchain, "compilers": of.built.get("compilers", "none")}
            for of in (before, self)
        )
        differ = [
            f"{what} {old.get(what, 'none')} → {new.get(what, 'none')}"
            for what in dict.fromkeys([*old, *new])
            if old.get(what) != new.get(what) and what not in _WATCHING
        ]
        asked = any(self.built.get(of) != before.built.get(of) for of in _ASKING)
        told = ["the suite changed here too"] if self.suite != before.suite else []
        if differ:
            as_asked = ", as the commits ask" if asked else ""
            told.append(f"the environment changed here too{as_asked}: {few(differ)}")
        return told, bool(differ) and not asked


def append(entry: Entry, folder: Path) -> Path:
    """Write an entry as a new file, completely or not at all; returns its path.

    Raises:
        NotReadError: it could not be read again.
        NotWrittenError: it cannot be written; its text is kept elsewhere.
    """
    text = schema.written(dataclasses.asdict(entry), Entry, "recording")
    stem = f"{entry.date.astimezone(timezone.utc):%Y-%m-%dT%H%M%SZ}_{entry.commit[:10]}"
    return write_new(text, folder / entry.slug, stem)


def read(path: Path) -> Entry:
    """The entry in a file. Raises NotReadError."""
    return schema.read(path, Entry)


def entries(folder: Path) -> list[tuple[Path, Entry]]:
    """All entries of all machines, in the order of their measurement. Raises NotReadError."""
    return _in_time(folder.glob("*/*.json"))


def of_commit(commit: str, folder: Path) -> list[Entry]:
    """The entries of a commit in a machine's folder, oldest first. Raises NotReadError."""
    recorded = _in_time(folder.glob(f"*_{commit[:10]}*.json"))
    return [entry for _, entry in recorded if entry.commit == commit]


def last(folder: Path) -> Entry | None:
    """The newest entry of a machine's folder. Raises NotReadError."""
    newest_second = max((path.name.partition("_")[0] for path in folder.glob("*.json")), default="")
    recorded = _in_time(folder.glob(f"{newest_second}_*.json"))
    return recorded[-1][1] if recorded else None


def _in_time(paths: Iterable[Path]) -> list[tuple[Path, Entry]]:
    """In the order of the dates inside, since names are exact to the second only."""
    return sorted(((path, read(path)) for path in paths), key=lambda row: row[1].date)


def newest(of: Iterable[Entry]) -> dict[tuple[str, tuple[str, ...], str], Entry]:
    """What is known of each (machine, features, commit), from its entries, oldest first: the newest
    complete entry, with the numbers of later ones of some benchmarks. An entry without numbers
    replaces none, one that was stopped adds only what was lacking, and ratios to different controls
    are not mixed."""
    kept: dict[tuple[str, tuple[str, ...], str], Entry] = {}
    for entry in of:
        key = entry.slug, entry.features, entry.commit
        kept[key] = _with_later(kept[key], entry) if key in kept else entry
    return kept


def _with_later(before: Entry, later: Entry) -> Entry:
    if not before.cells or not later.cells:
        return before if before.cells else later
    if later.complete:
        return later
    if dict(before.control) != dict(later.control):
        return before if before.complete or later.stopped else later
    old, new = (later, before) if later.stopped else (before, later)
    anew, measured = ({cell.benchmark for cell in of.cells} for of in (new, later))
    cells = {(cell.benchmark, cell.kind): cell for cell in (*old.cells, *new.cells)}
    causes = {name: cause for name, cause in old.causes.items() if name not in anew}
    return dataclasses.replace(
        before,
        cells=tuple(cells.values()),
        profiles={**old.profiles, **new.profiles},
        failures=tuple(of for of in before.failures if of["benchmark"] not in measured),
        causes={**causes, **new.causes},
        suite=before.suite if before.suite == later.suite else "",
        notes=tuple(dict.fromkeys([*before.notes, *later.notes])),
    )
