"""Two builds side by side: times, memory and counts of each benchmark, within a budget."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import math
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from rlox_opt.harness import callgrind
from rlox_opt.harness.packages import SIDES, Failure, Packages
from rlox_opt.harness.sequential import Comparison, More
from rlox_opt.harness.side_processes import Side
from rlox_opt.project import blind, builds, calibration, kinds, parity, thresholds
from rlox_opt.project.blind import Coverage
from rlox_opt.project.builds import Artefact
from rlox_opt.project.explained import Why
from rlox_opt.project.project import Project
from rlox_opt.stats.family import Judgement
from rlox_opt.stats.paired import LOOKS
from rlox_opt.system.machine import machine
from rlox_opt.system.output import few, number_of
from rlox_opt.system.patterns import beginning, without_use
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_MEMORY_KINDS = ("peakmemory", "memory", "track")
_MEMORY_RESTARTS = LOOKS[1]
# The least shares of the budget. What one of them does not use goes to the next.
_OF_MEMORY, _OF_COUNTS = 0.15, 0.15
_OF_COVERAGE = 0.05  # at the most
_PATIENCE_S = 120.0  # for one benchmark in one process
# Shown while both sides import every benchmark, which may take long.
READING = "reading the suite"


class Meant(NamedTuple):
    """A change that is acknowledged as slower or larger: up to which ratio, and why."""

    ratio: float
    reason: str


@dataclass
class ComparedBuilds:
    """What a comparison of two builds has found so far."""

    base: Artefact
    head: Artefact
    times: Comparison
    memory: Comparison
    missing: dict[str, str]  # benchmarks that one side lacks, and which side
    broken: dict[str, dict[str, str]] = field(default_factory=dict)
    """The unreadable parts of the suite by side, with the reasons."""

    notes: tuple[str, ...] = ()
    """Notes for the user on how the sides were made, and on the suite."""
    counts: dict[str, dict[str, callgrind.Counts]] = field(default_factory=dict)
    seconds: float = 0.0
    complete: bool = False
    needless: bool = False  # both packages are the same, so nothing is measured
    calibrated: Mapping[str, Any] | None = None  # this machine's newest calibration
    coverage: Coverage | None = None  # None if the user did not ask for it
    kinds: Mapping[str, str] = field(default_factory=dict)  # of memory and values; else "time"
    meant: Mapping[str, Meant] = field(default_factory=dict)  # by the benchmark's name
    why: tuple[Why, ...] = ()  # of the benchmarks that were examined
    unexplained: tuple[str, ...] = ()  # benchmarks for which there was no time

    def slower(self) -> dict[str, Judgement]:
        """The benchmarks that are slower or larger, acknowledged or not."""
        return {n: of.judgements[n] for of in (self.times, self.memory) for n in of.slower()}

    def excused(self, name: str) -> bool:
        """Whether a benchmark is acknowledged, and its ratio is not above the acknowledged one. The
        interval is not used: after few restarts it may reach far below the ratio and would excuse
        almost anything. In the history, too, an entry is compared with the ratio."""
        return name in self.meant and self.slower()[name].ratio <= self.meant[name].ratio

    def more(self) -> More:
        """What more time would bring to times and memory together."""
        one, other = self.times.more(), self.memory.more()
        return More(
            one.settled + other.settled, one.seconds + other.seconds, one.noisy + other.noisy
        )

    def within(self) -> str:
        """The restarts within which some scatter too much for a verdict, in words."""
        of = ((self.times, "restarts"), (self.memory, "restarts of memory"))
        return " or ".join(f"{one.most} {what}" for one, what in of if one.more().noisy)

    def verdicts(self) -> list[Judgement]:
        """The verdicts of all benchmarks that could be measured."""
        return [*self.times.judgements.values(), *self.memory.judgements.values()]

    def unmeasured(self) -> list[str]:
        """Benchmarks for which the budget was too small."""
        return [*self.times.unmeasured(), *self.memory.unmeasured()]

    def failures(self) -> dict[str, Failure]:
        """The benchmarks that failed and did not ask to be skipped, with the reasons."""
        return {name: of for name, of in self._failed().items() if not of.skipped}

    def skipped(self) -> dict[str, Failure]:
        """The benchmarks that asked to be skipped, with the reasons."""
        return {name: of for name, of in self._failed().items() if of.skipped}

    def _failed(self) -> dict[str, Failure]:
        return self.times.failures | self.memory.failures


def measured(
    project: Project,
    base: Artefact,
    head: Artefact,
    arguments: argparse.Namespace,
    progress: Lines,
    notes: Sequence[str] = (),
    reserve_s: float = 0.0,
) -> ComparedBuilds:
    """Time, weigh and count within the budget. Reading the suite comes before the budget. What was
    found before a Ctrl-C is kept, and marked incomplete. If a time is slower, `reserve_s` of the
    budget are left over.

    Raises:
        ContestError: the benchmarks cannot be listed.
        UsageError: no benchmark matches.
    """
    band = math.log1p(arguments.threshold / 100)
    with side_by_side(project, base, head) as packages:
        # Calls that are processes of their own are not counted.
        wanted = not (arguments.no_counts or packages.suite.fresh)
        counted = wanted and callgrind.available()
        if wanted and not counted:
            progress.say("valgrind is not installed: instructions and allocations are not counted")
        packages.beginning = beginning(arguments.bench)
        progress.begin(READING)
        names, missing = _chosen(packages, arguments.bench)
        progress.end(f"{number_of(sum(map(len, names.values())), 'benchmark')} to measure")
        start = time.monotonic()
        until = start + arguments.budget
        weighed = [name for kind in _MEMORY_KINDS for name in names[kind]]
        own = thresholds.own(project.settings.thresholds, [*names["time"], *weighed])
        times = Comparison(names["time"], band, own=own)
        memory = Comparison(weighed, band, own=own)
        unmatched = thresholds.unmatched(project.settings.thresholds, [*names["time"], *weighed])
        for part in without_use(arguments.bench, [*names["time"], *weighed, *missing]):
            unmatched.append(f"--bench: {part!r} matches no benchmark")
        for line in unmatched:
            progress.say(line)
        broken = {side: {**of.broken} for side, of in packages.listed().items()}
        compared = ComparedBuilds(base, head, times, memory, missing, broken, (*notes, *unmatched))
        compared.kinds = {
            name: "peak_memory" if kind == "peakmemory" else kind
            for kind in _MEMORY_KINDS
            for name in names[kind]
        }
        compared.calibrated = calibration.newest(project.records)
        try:
            if not arguments.no_coverage:
                _cover(compared, project, packages, arguments.budget, progress)
            of_memory = _OF_MEMORY * arguments.budget if memory.names else 0.0
            of_counts = _OF_COUNTS * arguments.budget if counted else 0.0
            of_times = until - time.monotonic() - of_memory - of_counts
            bands = {name: times.threshold(name) for name in times.names}
            for line in calibration.plan(project.records, bands, of_times):
                progress.say(line)
            progress.begin("timing")
            times.run(
                packages.contests,
                arguments.restarts,
                of_times,
                lambda n, undecided, left: progress.note(
                    f"restart {n}, {undecided} undecided, at most {left:.0f} s to come",
                    n / arguments.restarts,
                ),
                reserve_s,
            )
            until -= reserve_s if times.slower() else 0.0
            progress.end(number_of(len(times.judgements), "verdict"))
            if memory.names:
                progress.begin("memory")
                memory.run(
                    lambda chosen, seed: chain(
                        packages.tracked([n for n in chosen if n not in names["peakmemory"]], seed),
                        packages.peaks([n for n in chosen if n in names["peakmemory"]], seed),
                    ),
                    min(_MEMORY_RESTARTS, arguments.restarts),
                    until - time.monotonic() - of_counts,
                )
                progress.end(number_of(len(memory.judgements), "verdict"))
            if counted:
                progress.begin("counting")
                _count(compared, packages, progress, until)
                progress.end(number_of(len(compared.counts["head"]), "benchmark"))
            compared.complete = True
        except KeyboardInterrupt:
            for comparison in (times, memory):
                comparison.look()
        compared.notes += tuple(f"{name}: {told}" for name, told in packages.told().items())
    compared.seconds = time.monotonic() - start
    return compared


def _cover(
    compared: ComparedBuilds, project: Project, packages: Packages, budget_s: float, progress: Lines
) -> None:
    """Find out which of the functions that the change touches are reached by the benchmarks. An
    error here does not fail the comparison."""
    with contextlib.suppress(UsageError):
        compared.coverage = blind.change(project.commits, compared.base, compared.head)
    if compared.coverage and compared.coverage.touched:
        progress.begin("coverage of the change")
        names = [*compared.times.names, *compared.memory.names]
        blind.look(compared.coverage, packages, names, _OF_COVERAGE * budget_s)
        touched, unseen = compared.coverage.touched, compared.coverage.blind()
        reached = f"{len(touched) - len(unseen)} of {len(touched)} functions reached"
        progress.end(reached if compared.coverage.traced else "not decided: nothing was traced")


@contextlib.contextmanager
def side_by_side(
    project: Project, base: Artefact, head: Artefact, *, again: bool = True
) -> Iterator[Packages]:
    """Base, head, and with `again` base once more, each in a folder of its own, since the loader
    treats a library loaded from the same file as the same library."""
    settings = project.settings
    kind = kinds.of(project.configuration)
    with scratch(project.builds.folder) as folder:
        suite = kind.laid_out(project.suite, project.configuration, settings.shared, folder)
        sides = {}
        for side, of in zip(SIDES, (base, head, base) if again else (base, head), strict=False):
            shutil.copytree(of.folder, folder / side)
            sides[side] = Side(folder / side, of.packages, of.python, of.env)
        yield Packages(sides, suite, _PATIENCE_S, share_a_process(project, base, head))


def share_a_process(project: Project, base: Artefact, head: Artefact) -> bool:
    """Whether both run in one process. The project's settings and the kind of the suite must allow
    it, and both must have the same interpreter and environment, since a process has only one."""
    same = (base.python, base.env) == (head.python, head.env)
    may = project.settings.one_process and kinds.of(project.configuration).together
    return may and same


def named(text: str, there: Collection[str], option: str) -> str:
    """The one benchmark with that name, or whose name contains the text. Raises UsageError, which
    names the `option`."""
    if text in there:
        return text
    fit = [name for name in there if text in name]
    if len(fit) == 1:
        return fit[0]
    what = f"{len(fit)} benchmarks: {few(fit)}" if fit else "no benchmark"
    such = f", such as {', '.join([*there][:3])}" if there and not fit else ""
    raise UsageError(f"{option}: {text!r} is part of the name of {what}; it takes one{such}")


def _chosen(
    packages: Packages, wanted: re.Pattern[str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The benchmarks of each kind that both sides have; of the others, the side that lacks them."""
    names: dict[str, list[str]] = {}
    missing: dict[str, str] = {}
    for kind in ("time", *_MEMORY_KINDS):
        there = packages.names(kind)
        chosen = [name for name in there if wanted.search(name)]
        names[kind] = [name for name in chosen if len(there[name]) == 2]
        gone = {"base": "head", "head": "base"}
        missing |= {name: gone[there[name][0]] for name in chosen if len(there[name]) == 1}
    if not any(names.values()) and not missing:
        packages.beginning = ""
        every = [name for kind in ("time", *_MEMORY_KINDS) for name in packages.names(kind)]
        broken = packages.listed()["head"].broken
        if not every and broken:
            module, why = next(iter(broken.items()))
            raise UsageError(f"no benchmark can be read: {module}: {why}")
        if not every:
            raise UsageError("no benchmark is collected of the suite, on either side")
        close = ", ".join(every[:3])
        raise UsageError(
            f"--bench: {wanted.pattern!r} matches no benchmark; there are "
            f"{len(every)}, such as {close}"
        )
    return names, missing


def _count(compared: ComparedBuilds, packages: Packages, progress: Lines, until: float) -> None:
    seconds = {name: compared.times.medians(name)[0] for name in compared.times.judgements}
    compared.counts = {"base": {}, "head": {}}

    def begins(name: str) -> None:
        done = sum(map(len, compared.counts.values()))
        progress.note(name, done / (2 * len(seconds)))

    def hear(side: str, name: str, counts: callgrind.Counts) -> None:
        compared.counts[side][name] = counts

    jobs = [(side, seconds) for side in compared.counts]
    if late := callgrind.count_all(packages, jobs, hear, until, begins):
        line = f"no time to count {few(late)}; a larger --budget counts more"
        progress.say(line)
        compared.notes += (line,)


def facts(compared: ComparedBuilds) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "schema": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "base": compared.base.revision.commit,
        "head": compared.head.revision.commit,
        "built": parity.facts(compared.base, compared.head),
        "features": {"base": compared.base.features, "head": compared.head.features},
        "identical": builds.same_parts(compared.base, compared.head),
        "machine": machine(),
        "threshold": math.expm1(compared.times.band),
        "results": _rows(compared, compared.times, compared.times.judgements),
        "aa": _rows(compared, compared.times, compared.times.aa(), counted=False),
        "memory": _rows(compared, compared.memory, compared.memory.judgements, counted=False),
        "failures": _reasons(compared.failures()),
        "skipped": _reasons(compared.skipped()),
        "broken": compared.broken,
        "notes": compared.notes,
        "unmeasured": compared.unmeasured(),
        **_coverage(compared.coverage),
        "missing": [{"benchmark": name, "side": side} for name, side in compared.missing.items()],
        "why": [of.facts() for of in compared.why],
        "unexplained": compared.unexplained,
        "seconds": round(compared.seconds, 1),
        "complete": compared.complete,
    }


def _coverage(of: Coverage | None) -> dict[str, Any]:
    """The coverage for `--json`. `blind` is null if it was not asked for or is not decided."""
    if of is None:
        return {"blind": None, "coverage": None}
    unseen = [{"function": e.name, "file": e.file, "line": e.line} for e in of.blind()]
    return {
        "blind": unseen if of.decided() else None,
        "coverage": {
            "touched": len(of.touched),
            "traced": of.traced,
            "untraced": [*of.untraced, *of.late],
            "compiled": of.compiled,
        },
    }


def _reasons(failures: Mapping[str, Failure]) -> list[dict[str, str | None]]:
    return [
        {"benchmark": name, "side": failure.side, "reason": failure.reason}
        for name, failure in failures.items()
    ]


def _rows(
    compared: ComparedBuilds,
    of: Comparison,
    judgements: Mapping[str, Judgement],
    *,
    counted: bool = True,
) -> list[dict[str, Any]]:
    rows = []
    for name, judgement in judgements.items():
        base, head = of.medians(name)
        meant = compared.meant.get(name)
        if judgements is not of.judgements:  # of base against itself
            head, meant = base * judgement.ratio, None
        row = {
            "benchmark": name,
            "ratio": judgement.ratio,
            "ci99": judgement.ci99,
            "verdict": judgement.verdict,
            "threshold": math.expm1(of.threshold(name)),
            "leans": judgement.leans,
            "restarts": judgement.restarts,
            "more_restarts": of.lacking(name) if judgement.verdict == "undecided" else 0,
            "acknowledged": meant.reason if meant and compared.excused(name) else None,
            "acknowledged_to": meant.ratio if meant else None,
            "base": base,
            "head": head,
        }
        for what in ("instructions", "allocations"):
            sides = {side: compared.counts.get(side, {}).get(name) for side in ("base", "head")}
            row[what] = {
                side: counts[what] if counts and counted else None for side, counts in sides.items()
            }
        rows.append(row)
    return rows
