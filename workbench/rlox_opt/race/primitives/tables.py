"""The restarts of one command, kept in a file that outlives an interruption, and its record."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.primitives import cases, contest, results
from rlox_opt.race.primitives.cases import Case, Engine, Family
from rlox_opt.race.primitives.engines import Processes
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED
from rlox_opt.system.files import add_row, check_folder, write_new

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

# A call that takes longer is timed in so many restarts: too few for a verdict on who is far behind.
_DEAR_S = 20.0
_DEAR_RESTARTS = 3


class Tables:
    """Cases against engines, restart after restart. `weigh` asks for their memory as well."""

    def __init__(
        self,
        project: Project,
        name: str,
        families: Sequence[Family],
        chosen: Sequence[Case],
        engines: Sequence[Engine],
        threads: int,
        weigh: bool = False,
    ) -> None:
        from rlox_opt.plan.comparing import provenance

        self.project, self.home = project, racing.home(project)
        self.name, self.families = name, {family.name: family for family in families}
        self.cases, self.engines, self.threads, self._weigh = chosen, engines, threads, weigh
        self.ours = [engine.name for engine in engines if engine.ours]
        self.where = provenance(project, project.installed.build_info())
        names = [engine.name for engine in engines]
        built = hashlib.sha256(project.installed.extension().read_bytes()).hexdigest()
        where = self.where["commit"], self.where["machine"]
        what = [cases.digest(project), names, threads, built, *where]
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        self.path = self.home / f"{name}-{key}.jsonl"
        wanted = {case.key for case in chosen}
        self.rows = [row for row in racing.kept(self.path) if row["case"] in wanted]
        self._left_out: dict[str, str] = {}
        self._pythons: dict[str, Path] = {}
        self._versions: dict[str, str] = {}

    def install(self, progress: Lines) -> None:
        """Make the environments that are not there."""
        progress.begin("environments")
        wanted = [(engine.name, engine.peer, engine.package) for engine in self.engines]
        self._pythons, self._versions, self._left_out = racing.install(wanted, self.home, progress)
        progress.end(f"{len(self._pythons)} of {len(self.engines)} engines")

    def time(self, restarts: int, progress: Lines) -> None:
        """Hold every case in each of `restarts`, in random order."""
        done = {(row["restart"], row["case"]) for row in self.rows}
        known: set[tuple[str, str]] = set()
        progress.begin("timing")
        installed = [engine for engine in self.engines if engine.name in self._pythons]
        for number in range(restarts):
            left = [case for case in self.cases if (number, case.key) not in done]
            if not left:
                continue
            rng = random.Random()
            with Processes(installed, self._pythons, self.threads, rng) as processes:
                for at, case in enumerate(rng.sample(left, len(left))):
                    share = (number + at / len(left)) / restarts
                    progress.note(f"restart {number + 1}, {case.key}", share)
                    each = self.families[case.family].p99
                    read = contest.hold(
                        processes, case, self.ours, each, known, self._dear(case), self._weigh
                    )
                    read["left_out"] |= processes.left_out
                    row = {"restart": number, "case": case.key, **read}
                    add_row(row, self.path)
                    self.rows.append(row)
        progress.end(f"{restarts} restarts of {len(self.cases)} cases")

    def forget(self) -> None:
        """Remove the readings, so that the next run makes its own; those of other cases stay."""
        wanted = {case.key for case in self.cases}
        others = [row for row in racing.kept(self.path) if row["case"] not in wanted]
        self.path.unlink(missing_ok=True)
        for row in others:
            add_row(row, self.path)

    def _dear(self, case: Case) -> set[str]:
        """Engines whose calls take so long that they have been timed often enough."""
        own = [row["times"] for row in self.rows if row["case"] == case.key]
        return {
            engine.name
            for engine in self.engines
            if sum(row.get(engine.name, {"s": 0.0})["s"] > _DEAR_S for row in own) >= _DEAR_RESTARTS
        }

    def found(self) -> dict[str, Any]:
        """The record: a table for each case, what was left out and why, and every reading."""
        names = [engine.name for engine in self.engines]
        chosen = {case.family for case in self.cases}
        return {
            "schema": 1,
            "what": self.name,
            **self.where,
            "threads": self.threads,
            "ours": self.ours,
            "engines": [
                {
                    "name": engine.name,
                    "what": engine.what,
                    "version": self._versions.get(engine.name, ""),
                }
                for engine in self.engines
            ],
            "families": [
                {"name": family.name, "what": family.what, "pictures": list(family.pictures)}
                for family in self.families.values()
                if family.name in chosen
            ],
            "cases": [
                {
                    "key": case.key,
                    "family": case.family,
                    "size": dict(case.size),
                    "title": case.title,
                    "rows": results.rows_of(case, self.rows, names, self.ours),
                }
                for case in self.cases
            ],
            "left_out": results.left_out(self.rows, self._left_out),
            "readings": self.rows,
        }


def conclude(
    tables: Tables,
    arguments: argparse.Namespace,
    report: Any,
    finish: Callable[[dict[str, Any]], dict[str, Any]],
) -> int:
    """Install, time, write and show as `arguments` ask; returns the exit code.

    `finish` adds to the record what it is for; `report` is the module that words it.
    """
    from rlox_opt.system.progress import reporter
    from rlox_opt.views.comparison import show_table

    check_folder(tables.home)
    if not arguments.no_record:
        check_folder(racing.records_of(tables.project, tables.where["machine"]))
    try:
        with reporter() as progress:
            tables.install(progress)
            tables.time(arguments.runs, progress)
    except KeyboardInterrupt:
        kept = f"{len(tables.rows)} readings are kept"
        print(f"rlox-opt peers: {kept}; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    found = tables.found()
    for sentence in report.left_out(found):
        print(f"rlox-opt peers: {sentence}", file=sys.stderr)
    if not any(case["rows"] for case in found["cases"]):
        tables.forget()
        print("rlox-opt peers: nothing was timed", file=sys.stderr)
        return CANNOT_TELL
    found = finish(found)
    if not arguments.no_record:
        found["record"] = write(tables.project, found, tables.name, report)
    tables.forget()
    if arguments.json:
        print(json.dumps(found))
    else:
        show_table(report.summary(found), report.explained(found), found.get("record"))
    return 0


def write(project: Project, found: Mapping[str, Any], name: str, report: Any) -> str:
    """Write a record with the page and the Markdown that `report` makes of it, never over others;
    returns the record's path from the root."""
    folder = racing.records_of(project, found["machine"])
    stem = f"{found['date'].replace(':', '')}_{name}"
    path = write_new(json.dumps(found, indent=1) + "\n", folder, stem)
    write_new(report.markdown(found), folder, path.stem, ".md")
    write_new(report.page(found), folder, path.stem, ".html")
    return str(path.relative_to(project.root))
