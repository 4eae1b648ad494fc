"""All restarts of one command, and their record."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.plan.unfinished import Unfinished
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.primitives import cases, contest, results
from rlox_opt.race.primitives.cases import Case, Engine, Family
from rlox_opt.race.primitives.engines import Processes

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

# A call that takes longer is timed in fewer restarts, which are too few for a verdict.
_DEAR_S = 20.0
_DEAR_RESTARTS = 3


class Tables:
    """Cases against engines, one restart after the other; with `weigh`, their memory as well."""

    untimed = "nothing was timed"

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
        from rlox_opt.plan.comparing import code, provenance

        self.project, self.home = project, racing.home(project)
        self.name, self.families = name, {family.name: family for family in families}
        self.cases, self.engines, self.threads, self._weigh = chosen, engines, threads, weigh
        self.ours = [engine.name for engine in engines if engine.ours]
        self.where: Mapping[str, Any] = provenance(project, project.installed.build_info())
        names = [engine.name for engine in engines]
        what = [cases.digest(project), names, threads, *code(project, self.where)]
        self._unfinished = Unfinished(self.home, name, what)
        self._wanted = {case.key for case in chosen}
        self._left_out: dict[str, str] = {}
        self._pythons: dict[str, Path] = {}
        self._versions: dict[str, str] = {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The readings so far."""
        return [row for row in self._unfinished.rows if row["case"] in self._wanted]

    def install(self, progress: Lines) -> None:
        """Make the environments that are missing."""
        progress.begin("environments")
        wanted = [(engine.name, engine.peer, engine.package) for engine in self.engines]
        self._pythons, self._versions, self._left_out = racing.install(wanted, self.home, progress)
        progress.end(f"{len(self._pythons)} of {len(self.engines)} engines")

    def time(self, restarts: int, progress: Lines) -> None:
        """Run every case in each of `restarts`, in random order."""
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
                    head = f"restart {number + 1}, {case.key}"
                    each = self.families[case.family].p99
                    read = contest.hold(
                        processes,
                        case,
                        self.ours,
                        each,
                        known,
                        _noting(progress, head, share),
                        self._dear(case),
                        self._weigh,
                    )
                    read["left_out"] |= processes.left_out
                    row = {"restart": number, "case": case.key, **read}
                    self._unfinished.add(row)
        progress.end(f"{restarts} restarts of {len(self.cases)} cases")

    def forget(self) -> None:
        """Remove the readings, so that the next run begins anew; those of other cases stay."""
        self._unfinished.forget(lambda row: row["case"] in self._wanted)

    def kept(self) -> str:
        """What remains after an interruption, as a sentence."""
        return f"{len(self.rows)} readings are kept"

    def left_out(self) -> list[str]:
        """A sentence on each engine that was left out, and each reason."""
        from rlox_opt.views import primitives

        return primitives.left_out({"left_out": results.left_out(self.rows, self._left_out)})

    def timed(self) -> bool:
        """Whether any engine was timed in any case."""
        return any(row["times"] for row in self.rows)

    def _dear(self, case: Case) -> set[str]:
        """Engines with calls so long that they have been timed often enough."""
        own = [row["times"] for row in self.rows if row["case"] == case.key]
        return {
            engine.name
            for engine in self.engines
            if sum(row.get(engine.name, {"s": 0.0})["s"] > _DEAR_S for row in own) >= _DEAR_RESTARTS
        }

    def record(self) -> dict[str, Any]:
        """A table for each case, the engines left out with the reasons, and every reading."""
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


def _noting(progress: Lines, head: str, share: float) -> Callable[[str], None]:
    return lambda doing: progress.note(f"{head}: {doing}", share)
