"""Both forms of an optimisation, timed in turn: what `rlox-opt cmp` measures."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlox_opt.harness import restarts
from rlox_opt.harness.restarts import Cell, ContestError, Reading, TwinsDifferError
from rlox_opt.history import records
from rlox_opt.project.cards import Card
from rlox_opt.project.commits import WORKING_TREE
from rlox_opt.project.project import Project
from rlox_opt.stats import paired
from rlox_opt.system import plugins
from rlox_opt.system.machine import commit, machine
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_SLICES = 0.12  # seconds of a contest in one restart


@dataclass
class Series:
    """The readings of a cell, one for each restart."""

    cell: Cell
    readings: list[Reading] = field(default_factory=list)

    def estimate(self) -> paired.Estimate:
        """Baseline time over optimised time, with the verdict."""
        return paired.estimate([reading.log_ratio for reading in self.readings])

    def undecided(self) -> bool:
        """Whether more restarts may bring the verdict."""
        return not self.readings or self.estimate().verdict == "undecided"

    def aa(self) -> paired.Estimate | None:
        """The baseline against itself; None where it was not timed twice."""
        ratios = [r.log_ratio_aa for r in self.readings if r.log_ratio_aa is not None]
        return paired.estimate(ratios) if ratios else None


def compare(
    card: Card, cells: Sequence[Cell], arguments: argparse.Namespace, progress: Lines
) -> dict[str, Any]:
    """Measure one card and append its record. What was measured before a Ctrl-C is kept."""
    from rlox_opt.plan import counts
    from rlox_opt.plan.extensions import BuildError

    start, also, complete, failed = time.monotonic(), dict[str, Any](), True, ""
    project: Project = arguments.project
    counted: dict[Cell, Any] = {}
    series: list[Series] = []
    build: dict[str, Any] = {**project.installed.build_info()}
    profiles = card.seam.profiles
    besides = card.also_measured and card.in_build and not arguments.sizes
    plugin = beside(project, card) if profiles or besides else None
    progress.begin(card.id)
    try:
        if plugin and profiles:
            results = plugin.builds(project, profiles, series, arguments.restarts, progress, also)
        else:
            series = [Series(cell) for cell in cells]
            if card.in_build:
                extension, of_twins = project.installed.extension_of_twins()
                build = {**of_twins}
            else:
                extension = project.installed.extension()
            restart = partial(restarts.twins, extension)
            left_out = {}
            if not card.in_build:
                script = project.twins("worker")
                restart = partial(restart, script=script)
                left_out = missing(series, extension, script)
            series = [one for one in series if one.cell.workload not in left_out]
            also |= {f"{workload} skipped": why for workload, why in left_out.items()}
            measure(series, restart, arguments.restarts, progress)
            if series and not arguments.no_counts and card.in_build:
                progress.note("counting instructions and allocations")
                cores = len(os.sched_getaffinity(0))
                timed = [one.cell for one in series]
                try:
                    counted = counts.count(project, timed, build["features"], cores)
                except (BuildError, OSError, subprocess.CalledProcessError) as problem:
                    also["counting skipped"] = str(problem)
            results = [result(s, counted) for s in series]
            if plugin and not left_out:
                results += plugin.extra(
                    project, card.id, extension, results, arguments.restarts, also, progress
                )
    except KeyboardInterrupt:
        complete = False
        results = [result(s, counted) for s in series if s.readings]
    except ContestError as problem:
        results = [result(s, counted) for s in series if s.readings]
        if not results or isinstance(problem, TwinsDifferError):
            raise
        complete, failed = False, str(problem)
    record = {
        "schema": 1,
        "id": card.id,
        **provenance(project, build),
        "seconds": round(time.monotonic() - start, 1),
        "complete": complete,
        "results": results,
        **({"also": also} if also else {}),
        **({"failed": failed} if failed else {}),
    }
    if results and not arguments.no_record:
        path = records.append(record, project.comparisons)
        record["record"] = str(path.relative_to(project.root))
    progress.end(f"{len(results)} ratios")
    return record


class Beside(Protocol):
    """What the project's plug-in `also_measured.py`, beside its cards, provides. It measures what
    some of the optimisations must show besides the speed of a call."""

    def extra(
        self,
        project: Project,
        id_: str,
        extension: Path,
        results: Sequence[dict[str, Any]],
        most: int,
        also: dict[str, Any],
        progress: Lines,
    ) -> list[dict[str, Any]]:
        """Fill `also` for the optimisation `id_`. Returns the results of further workloads."""

    def builds(
        self,
        project: Project,
        profiles: tuple[str, str],
        series: list[Series],
        most: int,
        progress: Lines,
        also: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """The results of a pair of builds, which have cargo's `profiles`. The readings are put into
        `series`."""


def beside(project: Project, card: Card) -> Beside:
    """The plug-in. Raises UsageError if a card needs one and there is none."""
    path = project.cards / "also_measured.py"
    if not path.exists():
        raise UsageError(f"{card.id}: is measured by {path}, which is not there")
    return cast(Beside, plugins.load(path))


def cells_of(card: Card, sizes: Sequence[str] | None, error: Callable[[str], Any]) -> list[Cell]:
    """The card's cells, each once; with sizes, those of the workloads that have these sizes."""
    every = [
        Cell(card.id, workload, tuple(size.items()))
        for workload, sizes_ in card.sizes.items()
        for size in sizes_
    ]
    if sizes and not every:
        error(f"--sizes: {card.id} is timed as it is, and has none")
    if not sizes:
        return [*dict.fromkeys(every)]
    cells = []
    for text in sizes:
        try:
            size = {name: int(n) for name, n in (part.split("=") for part in text.split(","))}
        except ValueError:
            error(f"--sizes: is {text!r}, expected NAME=N, or several joined by commas")
        fitting = {cell.workload for cell in every if dict(cell.size).keys() == size.keys()}
        if not fitting or min(size.values()) < 1:
            names = sorted({",".join(f"{name}=N" for name, _ in cell.size) for cell in every})
            error(f"--sizes: is {text!r}, expected {card.id}'s {' or '.join(names)}, N > 0")
        cells += [Cell(card.id, workload, tuple(size.items())) for workload in sorted(fitting)]
    return [*dict.fromkeys(cells)]


Restart = Callable[[Sequence[Cell], float, int], Iterator[tuple[Cell, Reading]]]


def measure(
    series: Sequence[Series],
    restart: Restart,
    most: int,
    progress: Lines,
    waiting: Callable[[], Sequence[Cell]] | None = None,
) -> None:
    """Restart until no cell is `waiting` at a look, or until there were `most` restarts. By default
    a cell waits until it has its verdict."""
    by_cell = {s.cell: s for s in series}
    seeds = random.Random()
    done = 0
    while (look := paired.next_look(done, most)) is not None:
        cells = waiting() if waiting else [s.cell for s in series if s.undecided()]
        if not cells:
            return
        for number in range(done, look):
            for cell, reading in restart(cells, _SLICES, seeds.getrandbits(63)):
                by_cell[cell].readings.append(reading)
            progress.note(f"restart {number + 1}, {len(cells)} undecided", (number + 1) / most)
        done = look


def missing(series: Sequence[Series], extension: Path, script: Path) -> dict[str, str]:
    """The workloads that this machine cannot run, with the reasons."""
    with restarts.worker(extension, random.Random(), script) as ask:
        ids = {one.cell.workload: one.cell.id for one in series}
        why = {workload: ask("missing", id_, workload) for workload, id_ in ids.items()}
    return {workload: reason for workload, reason in why.items() if reason}


def result(series: Series, counted: Mapping[Cell, Any]) -> dict[str, Any]:
    """A cell as a record stores it."""
    estimate, aa = series.estimate(), series.aa()
    counts = counted.get(series.cell, {})
    return {
        "workload": series.cell.workload,
        "size": dict(series.cell.size),
        "ratio": estimate.ratio,
        "ci95": estimate.ci95,
        "verdict": estimate.verdict,
        "restarts": estimate.restarts,
        # Only ratios are sound; seconds are a note.
        "baseline_s": statistics.median(r.baseline_s for r in series.readings),
        "optimized_s": statistics.median(r.optimized_s for r in series.readings),
        "instructions": counts.get("instructions"),
        "allocations": counts.get("allocations"),
        "allocated_bytes": counts.get("allocated_bytes"),
        "aa": aa and {"ratio": aa.ratio, "ci95": aa.ci95, "verdict": aa.verdict},
    }


def code(project: Project, where: Mapping[str, Any]) -> list[Any]:
    """What the readings of a record depend on: the machine, the commit with what the working tree
    changes, the extension that is installed, and what it says of itself. Only readings of the same
    are taken together. `where` is the record's `provenance`."""
    tree = project.commits.resolve(WORKING_TREE).commit if where["dirty"] else where["commit"]
    built = hashlib.sha256(project.installed.extension().read_bytes()).hexdigest()
    return [tree, built, where["machine"], where["build"]]


def provenance(project: Project, build: Mapping[str, Any]) -> dict[str, Any]:
    """Where and when a record was made, and of which build."""
    revision, dirty = commit(project.top)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": revision,
        "dirty": dirty,
        "machine": machine(),
        "build": {key: value for key, value in build.items() if key != "version"},
    }
