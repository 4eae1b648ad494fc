"""What is measured of one commit for the history: stages in the order of importance, until the
budget is used up. The first one, the times, runs once however small the budget is. A stage that
fails leaves its reason, and the others go on."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import random
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rlox_opt.harness import callgrind, restarts
from rlox_opt.harness.packages import Outcome, Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.sequential import Comparison, Restart
from rlox_opt.history import causes, condensed, criterion, why
from rlox_opt.history.store import Cell, Entry, Profile
from rlox_opt.project import cards, parity
from rlox_opt.project.builds import Artefact, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import READING, side_by_side
from rlox_opt.sampling import brief, workloads
from rlox_opt.sampling.layers import Classifier
from rlox_opt.stats.paired import LOOKS
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system.output import few
from rlox_opt.system.patterns import beginning
from rlox_opt.system.process import ChildError
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

RESTARTS, MORE = LOOKS[0], LOOKS[-1]  # of a benchmark; the second if time is left at the end
STAGES = ("time", "counts", "memory", "profile", "pairs", "criterion")
NO_TIME = "no time was left"
CAUSE = "cause of"  # a benchmark, among the failures
BEARABLE = (
    *(ContestError, ChildError, NotBuiltError, UsageError),
    *(ValueError, OSError, subprocess.SubprocessError),
)
_MEMORY_RESTARTS = 3
_PAIR_S = 0.15  # of a contest between twins
_CALLS = 10  # in a call of the twins' benchmark
_OUTSIDE = 0.01  # the probability outside the printed interval
_MOST_CAUSES = 3


@dataclass
class Recording:
    """The results for a commit so far. Its ratios are to the `control`; there are none if the two
    have `other_benches`, so that one name may mean two things. `before` is the entry of an ancestor
    with the same features and control, and `pattern` selects benchmarks."""

    project: Project
    commit: Artefact
    control: Artefact
    pattern: re.Pattern[str]
    budget_s: float
    progress: Lines
    before: Entry | None = None
    other_benches: bool = False
    build: dict[str, Any] = field(default_factory=dict)
    others: list[Cell] = field(default_factory=list)
    profiles: dict[str, Profile] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    causes: dict[str, dict[str, Any]] = field(default_factory=dict)
    times: Comparison = field(default_factory=lambda: Comparison([], patient=True))
    alone: frozenset[str] = frozenset()  # benchmarks that the control lacks, or does not run
    noticed: dict[str, str] = field(default_factory=dict)  # notes for the user, by benchmark
    unkept: int = 0  # benchmarks of kinds that a history does not keep
    _packages: Packages = field(init=False)
    _itself: Packages | None = field(init=False, default=None)
    _stack: contextlib.ExitStack = field(init=False)
    _names: dict[str, list[str]] = field(init=False)  # the commit's benchmarks, by kind
    _restart: Restart = field(init=False)
    _until: float = field(init=False)

    def measure(self) -> None:
        """Run all stages. What was measured before a KeyboardInterrupt stays."""
        with contextlib.ExitStack() as self._stack:
            packages = self._packages = self._stack.enter_context(
                side_by_side(self.project, self.control, self.commit, again=False)
            )
            packages.beginning = beginning(self.pattern)
            if self.commit.library:  # only an extension says how it was built
                self.build = packages.builds()["head"]
            self.progress.note(READING)
            there = packages.names("time")
            self._names = {
                kind: [name for name, sides in packages.names(kind).items() if "head" in sides]
                for kind in ("time", "peakmemory")
            }
            self.times.names = [
                name
                for name in self._names["time"]
                if self.pattern.search(name) and not causes.of_twins(self.project, name)
            ]
            unkept = packages.names("memory", "track").items()
            self.unkept = len([n for n, of in unkept if "head" in of and self.pattern.search(n)])
            broken = packages.listed()["head"].broken.items()
            self.failures |= {of: why for of, why in broken if not why.startswith("skipped:")}
            self.alone = frozenset(
                n for n in self.times.names if self.other_benches or "base" not in there[n]
            )

            def restart(names: Sequence[str], seed: int) -> Iterator[Outcome]:
                yield from packages.contests([n for n in names if n not in self.alone], seed)
                if alone := [n for n in names if n in self.alone]:
                    yield from self._by_itself().contests(alone, seed)

            self._until = time.monotonic() + self.budget_s
            self._restart = restart
            for stage in filter(self._has, STAGES):
                self.progress.note(stage, 1 - self._left() / self.budget_s)
                if stage == STAGES[0] or self._left() > 0:
                    self._bear(stage, getattr(self, f"_{stage}"))
                else:
                    self.failures[stage] = self._late()
            self._find_causes()
            if self._left() > 0:
                self.times.run(restart, MORE, self._left())
            by_itself = self._itself.told() if self._itself else {}
            self.noticed = by_itself | packages.told()

    def _by_itself(self) -> Packages:
        """The commit beside itself."""
        if self._itself is None:
            pair = side_by_side(self.project, self.commit, self.commit, again=False)
            self._itself = self._stack.enter_context(pair)
            self._itself.beginning = self._packages.beginning
        return self._itself

    @property
    def skipped(self) -> list[str]:
        """The benchmarks that asked to be skipped."""
        return [name for name, failure in self.times.failures.items() if failure.skipped]

    @property
    def cells(self) -> list[Cell]:
        """All numbers so far."""
        cells = []
        for name, readings in self.times.readings.items():
            value = statistics.median(reading.head for reading in readings)
            ratios = [] if name in self.alone else [reading.log_ratio for reading in readings]
            cells.append(_cell(name, "time", value, ratios, len(readings)))
        return cells + self.others

    @property
    def rustc(self) -> dict[str, str]:
        """The compiler's version, if the commit's build names it."""
        return {"rustc": self.build["rustc"]} if "rustc" in self.build else {}

    def _has(self, stage: str) -> bool:
        """Whether the project, with the wanted benchmarks, has anything for a stage."""
        if stage == "memory":
            return any(map(self.pattern.search, self._names["peakmemory"]))
        if stage == "profile":
            return bool(self._workloads())
        if stage == "pairs":
            return bool(self._predicted())
        return stage != "criterion" or criterion.declared(self.project.builds) is not None

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _late(self, what: str = "") -> str:
        return f"{NO_TIME} of the budget of {self.budget_s:g} s{what}"

    def _bear(self, what: str, does: Callable[[], None]) -> None:
        try:
            does()
        except BEARABLE as error:
            self.failures[what] = str(error)

    def _time(self) -> None:
        self.times.run(
            self._restart,
            RESTARTS,
            self._left(),
            lambda n, *_: self.progress.note(f"restart {n}", 1 - self._left() / self.budget_s),
        )
        self._time_without_control()
        for name, failure in self.times.failures.items():
            control = failure.side == "base" and name not in self.alone
            where = "the control: " if control else ""
            self.failures[name] = where + failure.reason

    def _time_without_control(self) -> None:
        """Time by themselves the benchmarks that the control never ran to their end."""
        known = {*self.alone, *self.times.readings}
        lacking = [
            name
            for name, failure in self.times.failures.items()
            if failure.side == "base" and name not in known
        ]
        if not lacking:
            return
        for name in lacking:
            del self.times.failures[name]
        self.alone |= {*lacking}
        more = Comparison(
            lacking, patient=True, readings=self.times.readings, failures=self.times.failures
        )
        more.run(self._restart, RESTARTS, self._left())

    def _counts(self) -> None:
        if not self.times.readings:
            return
        if not callgrind.available():
            raise ValueError("valgrind is not installed")
        seconds = {name: self.times.medians(name)[1] for name in sorted(self.times.readings)}
        halves = [dict([*seconds.items()][half::2]) for half in (0, 1)]

        def hear(_: str, name: str, counts: callgrind.Counts) -> None:
            for kind in ("instructions", "allocations"):
                # The commands' own cost is subtracted, and may be a little larger.
                self.others.append(Cell(name, kind, max(0.0, counts[kind])))

        jobs = [("head", half) for half in halves if half]
        if late := callgrind.count_all(self._packages, jobs, hear, self._until):
            raise ValueError(self._late(f" to count {few(late)}"))

    def _memory(self) -> None:
        wanted = [name for name in self._names["peakmemory"] if self.pattern.search(name)]
        for n, name in enumerate(wanted):
            if self._left() <= 0:
                raise ValueError(self._late(f" to weigh {few(wanted[n:])}"))
            self._bear(name, partial(self._peak, name))

    def _peak(self, name: str) -> None:
        rng = random.Random()
        peaks = [
            self._packages.peak("head", name, rng, rng.getrandbits(63))
            for _ in range(_MEMORY_RESTARTS)
        ]
        value = statistics.median(peaks)
        self.others.append(Cell(name, "peak_memory", value, restarts=len(peaks)))

    def _profile(self) -> None:
        if importlib.util.find_spec("torch") is None:
            raise ValueError("torch is not installed: pip install torch")
        for algo in self._workloads():
            self._bear(f"train.{algo}", partial(self._train, algo))

    def _workloads(self) -> list[str]:
        """The training runs that the project has of those to record."""
        names = workloads.names(self.project)
        return [algo for algo in names if self.pattern.search(f"train.{algo}")]

    def _train(self, algo: str) -> None:
        """Train the commit and the control, in random order."""
        spec, sampler = workloads.reference(self.project, algo), brief.tool()
        control: list[float] = []

        def of_control() -> None:
            speed = brief.speed(spec, self.control.folder, self.progress)
            control.append(speed.steps_per_s)

        if first := random.random() < 0.5:
            self._bear(f"train.{algo} of the control", of_control)
        classifier = Classifier(self.project.settings.layers)
        speed, samples = brief.profile(spec, self.commit.folder, sampler, classifier, self.progress)
        if not first:
            self._bear(f"train.{algo} of the control", of_control)
        ratio = speed.steps_per_s / control[0] if control else None
        self.others.append(Cell(f"train.{algo}", "steps", speed.steps_per_s, ratio))
        text = causes.sources(self.project, self.commit.revision.commit)
        self.profiles[algo] = condensed.profile(samples, speed.self_seconds, text)

    def _pairs(self) -> None:
        """Time the twins of this build against each other; the baseline is the control."""
        wanted = self._predicted()
        rng = random.Random()
        readings: dict[str, list[restarts.Reading]] = {}
        for _ in range(RESTARTS):
            for name, cell in rng.sample([*wanted.items()], len(wanted)):
                if self._left() > 0 and name not in self.failures:
                    seed = rng.getrandbits(63)
                    try:
                        of = restarts.twins(self.commit.laboratory, [cell], _PAIR_S, seed)
                        readings.setdefault(name, []).extend(reading for _, reading in of)
                    except ContestError as error:
                        self.failures[name] = str(error)
        for name, of_name in readings.items():
            value = _CALLS * statistics.median(reading.optimized_s for reading in of_name)
            ratios = [-reading.log_ratio for reading in of_name]
            self.others.append(_cell(name, "time", value, ratios, len(of_name)))

    def _predicted(self) -> dict[str, restarts.Cell]:
        """The cells of cards to measure, if this commit has their twins."""
        return {
            name: cell
            for name, cell in predicted(self.project).items()
            if self.pattern.search(name)
            and any(f"('{cell.id} {cell.workload} " in there for there in self._names["time"])
        }

    def _criterion(self) -> None:
        start = time.monotonic()
        program = criterion.build(self.project.builds, self.commit.revision)
        self._until += time.monotonic() - start  # builds are not part of the budget
        ids = {
            n: id_
            for n, id_ in criterion.ids(self.project.builds, program).items()
            if n in self.times.names
        }
        for name, seconds in criterion.times(program, ids).items():
            self.others.append(Cell(name, "criterion", seconds))

    def _find_causes(self) -> None:
        """Find the causes of the largest changes since the entry before. It is done beyond the
        budget, since it is seldom needed."""
        if self.before is None:
            return
        before = self.before
        moved: list[tuple[str, float]] = []
        self._bear(
            f"{CAUSE} changes",
            lambda: moved.extend(causes.moved(self.project, self.cells, before.cells)),
        )
        for name, ratio in moved[:_MOST_CAUSES]:
            self.progress.note(f"cause of {name}")
            self._bear(f"{CAUSE} {name}", partial(self._cause, name, ratio, before.commit))

    def _cause(self, name: str, ratio: float, before: str) -> None:
        revision = Revision(before, before, self.commit.revision.features)
        built = self.project.builds.build(revision)
        _, cause = why.with_cause(self.project, built, self.commit, name, ratio)
        self.causes[name] = {"before": before, **asdict(cause)}


def toolchain(project: Project, built: Artefact) -> dict[str, str]:
    """Versions of what a build runs with: in its environment, or in this one if it has none."""
    pins = [pin.partition("==") for pin in built.made.get("environment", "").splitlines()]
    if "environment" in built.made:
        python = parity.facts_of(built)["interpreter"]
        return {"python": python} | {name: version for name, _, version in pins if version}
    return {name: version for name, version in project.installed.around().items() if version}


def predicted(project: Project) -> dict[str, restarts.Cell]:
    """The cell that each card with a pair predicts, by asv's name of its optimised twin."""
    cells: dict[str, restarts.Cell] = {}
    calls = project.settings.twins.benchmark
    for card in cards.load(project) if calls else ():
        if card.prediction and card.prediction.size:
            workload, of = card.prediction.workload, card.prediction.size
            cell = restarts.Cell(card.id, workload, tuple(sorted(of.items())))
            cells[cards.benchmark(calls, card.id, workload, of, "optimized")] = cell
    return cells


def _cell(name: str, kind: str, value: float, log_ratios: Sequence[float], n: int) -> Cell:
    """A cell with Student's 99 % interval over restarts."""
    if not log_ratios:
        return Cell(name, kind, value, restarts=n)
    ends = ratio_interval(log_ratios, _OUTSIDE) if len(log_ratios) > 1 else None
    return Cell(name, kind, value, math.exp(statistics.fmean(log_ratios)), ends, n)
