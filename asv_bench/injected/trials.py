"""The measurements: how much slower a unit of extra work is, and then the tools' answers about
commits with a known slowdown, commits without any, and histories with one."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.sequential import Comparison
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.history import causes, why
from rlox_opt.history.recording import RESTARTS
from rlox_opt.project.builds import Artefact, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.side_by_side import side_by_side
from rlox_opt.stats.family import Judgement
from rlox_opt.system.process import ChildError
from rlox_opt.system.progress import Lines

from asv_bench.injected import commits, load, scores, tools
from asv_bench.injected.journal import Journal, Row, Step
from asv_bench.injected.regressions import Regression
from asv_bench.injected.tools import Asv, Cells, ToolError
from asv_bench.project import PROJECT

# ValueError: a sampler left no samples, or nothing changed.
BEARABLE = (ToolError, NotBuiltError, ContestError, ChildError, ValueError)
_REFINED = 3  # attempts to come closer to the wanted slowdown
_CLOSE = 0.1  # of the wanted slowdown: close enough
_LEAST_PROBE = 1.05  # with less, the benchmark does not execute the extra work
_PATIENCE_S = 120.0


def probes(regression: Regression) -> tuple[int, int]:
    """The k whose slowdowns are measured first, since extra work need not cost in proportion."""
    return regression.probe // 4, regression.probe


class ProbeError(ToolError):
    """A regression whose slowdown cannot be computed from its probe."""


@dataclass
class Trials:
    """All trials after `idle`, the commit with all regressions in which none does extra work."""

    idle: str
    journal: Journal
    answering: str | None  # the commit of the tools
    asv: Asv = field(default_factory=Asv)
    factors: Sequence[float] = tools.FACTORS
    load: str = ""  # a shell command that runs meanwhile

    def probe(self, regression: Regression, k: int) -> Step:
        """Measure in 40 restarts how much slower k makes it."""
        key = {"what": "probe", "regression": regression.id, "k": k}
        return Step("probe", f"{regression.id}, k = {k}", key, lambda: self._probe(regression, k))

    def _probe(self, regression: Regression, k: int) -> Row:
        head = commits.slowed(self.idle, regression, k)
        base, slow = built(self.idle), built(head)
        judgement = judged(base, slow, regression.benchmark)
        return {
            "head": head,
            "ratio": judgement.ratio,
            "ci99": judgement.ci99,
            "restarts": judgement.restarts,
            "build_seconds": round(slow.seconds, 1),
            "said": f"{judgement.ratio:.3f} times as long",
        }

    def work(self, regression: Regression, percent: float) -> tuple[int, float]:
        """The k that comes closest to a slowdown, and its true ratio, which is measured: beginning
        a loop in Python has a cost, so that a few passes cost more than their share of many.

        Raises:
            ProbeError: it was not probed, or the probe is hardly slower, or not slow enough.
        """
        if not percent:
            return 0, 1.0
        wanted = 1 + percent / 100
        known = self._probed(regression, wanted)
        for _ in range(_REFINED):
            if min(abs(ratio - wanted) for ratio in known.values()) <= _CLOSE * (wanted - 1):
                break
            # On the line through no extra work and all that was probed.
            works = sorted(known)
            ratios = np.maximum.accumulate([1.0, *(known[k] for k in works)])
            step = self.probe(regression, max(1, round(np.interp(wanted, ratios, [0, *works]))))
            if self.journal.of(step.key):
                break  # the next attempt would be the same
            self.journal.take(step)
            known = self._probed(regression, wanted)
        return min(known.items(), key=lambda of: abs(of[1] - wanted))

    def _probed(self, regression: Regression, wanted: float) -> dict[int, float]:
        """The measured ratio of each k. Raises ProbeError."""
        rows = {
            row["k"]: row
            for row in self.journal.rows
            if row["what"] == "probe" and row["regression"] == regression.id and "ratio" in row
        }
        quarter, whole = sorted(probes(regression))
        if not {quarter, whole} <= rows.keys():
            raise ProbeError(f"{regression.id}: was not probed")
        largest = rows[whole]["ratio"]
        if rows[whole]["ci99"][0] < _LEAST_PROBE or not 1 <= rows[quarter]["ratio"] <= largest:
            raise ProbeError(
                f"{regression.id}: its probe takes {largest:.3f} times as long, expected "
                f"{_LEAST_PROBE} at least; the build may use another twin"
            )
        if wanted > largest:
            percent = 100 * (wanted - 1)
            raise ProbeError(f"{regression.id}: {percent:g} % is beyond its probe, {largest:.3f}")
        return {k: row["ratio"] for k, row in rows.items()}

    def trial(
        self, regression: Regression, percent: float, repeat: int, tool: str, threshold: float,
        beside: Sequence[str],
    ) -> Step:  # fmt: skip
        """A commit with a slowdown (0: a changed comment), and a tool's answers about its benchmark
        and those `beside` it, which it does not affect."""
        key = {
            "what": "trial", "tool": tool, "regression": regression.id, "percent": percent,
            "repeat": repeat, "beside": list(beside), **self._at(tool, threshold),
        }  # fmt: skip

        def does() -> Row:
            k, truth = self.work(regression, percent)
            head = commits.slowed(self.idle, regression, k) if k else self.unchanged()
            row = self._compared(tool, head, [regression.benchmark, *beside], threshold)
            verdicts = [of[regression.benchmark]["verdict"] for of in row["cells"].values()]
            return row | {"k": k, "truth": truth, "said": ", ".join(verdicts)}

        again = f", repeat {repeat + 1}" if repeat else ""
        return Step(tool, f"{regression.id}, {percent:g} % by {tool}{again}", key, does)

    def unchanged(self) -> str:
        """A commit that differs from `idle` by a comment in Rust."""
        return commits.innocent(self.idle, "rust")

    def aa(self, benchmarks: Sequence[str], tool: str, run: int, threshold: float) -> Step:
        """A commit with a changed comment, and a tool's answers: asv's about its default set if no
        benchmarks are given."""
        key = {
            "what": "aa", "tool": tool, "run": run, "benchmarks": list(benchmarks),
            **self._at(tool, threshold),
        }  # fmt: skip

        def does() -> Row:
            row = self._compared(tool, self.unchanged(), benchmarks, threshold)
            flags = [sum(map(scores.flagged, of.values())) for of in row["cells"].values()]
            most = max(map(len, row["cells"].values()))
            return row | {"said": f"{' and '.join(map(str, flags))} of {most} flagged"}

        at = f" at {threshold:g} %" if tool != "asv" else ""
        return Step(tool, f"nothing changed, run {run + 1} by {tool}{at}", key, does)

    def bisection(
        self, regressions: Sequence[Regression], seed: int, n: int, percents: tuple[float, float]
    ) -> Step:
        """A history with one slowdown, and the answer of `rlox-opt bisect`."""
        rng = random.Random(seed)
        regression, percent = rng.choice(regressions), round(rng.uniform(*percents), 1)
        key = {
            "what": "bisect", "seed": seed, "commits": n, "regression": regression.id,
            "percent": percent, "load": self.load, "answering": self.answering,
        }  # fmt: skip

        def does() -> Row:
            k, truth = self.work(regression, percent)
            history = commits.history(self.idle, regression, k, n, seed)
            start = time.monotonic()
            with load.beside(self.load):
                said = tools.bisect(history.good, history.commits[-1], regression.benchmark)
            outcome = "undecided"
            if said["commit"] is not None:
                outcome = "right" if said["commit"] == history.guilty else "wrong"
            return {
                "k": k,
                "truth": truth,
                "guilty": history.guilty,
                "found": said["commit"],
                "outcome": outcome,
                "left": len(said["left"]),
                "comparisons": len(said["comparisons"]),
                "seconds": round(time.monotonic() - start, 1),
                "said": outcome,
            }

        title = f"seed {seed}: {n} commits, one with {regression.id} of {percent:g} %"
        return Step("bisect", title, key, does)

    def attribution(self, regression: Regression, percent: float, repeat: int) -> Step:
        """A commit with a slowdown, and the layer and function that the workbench names."""
        key = {
            "what": "attribution", "regression": regression.id, "percent": percent,
            "repeat": repeat, "answering": self.answering,
        }  # fmt: skip

        def does() -> Row:
            k, truth = self.work(regression, percent)
            head = commits.slowed(self.idle, regression, k)
            base, slow = built(self.idle), built(head)
            start = time.monotonic()
            touched: list[str] | None = None
            if regression.bound == "torch":
                algo = regression.benchmark.split(".")[1].lower()
                cause = causes.of_training(PROJECT, base, slow, algo, Lines(Console(quiet=True)))
            else:
                # Measured as `rlox-opt record` does it.
                ratio = judged(base, slow, regression.benchmark, RESTARTS, again=False).ratio
                found, cause = why.with_cause(PROJECT, base, slow, regression.benchmark, ratio)
                touched = [of.where for of in found.touched]
            right = cause.layer == regression.layer, regression.does(cause.function)
            return {
                "head": head,
                "k": k,
                "truth": truth,
                **asdict(cause),
                "right": right,
                "touched": touched,
                "named": None if touched is None else any(map(regression.does, touched)),
                "seconds": round(time.monotonic() - start, 1),
                "said": f"{cause.layer}, {cause.function}: {'right' if all(right) else 'wrong'}",
            }

        again = f", repeat {repeat + 1}" if repeat else ""
        title = f"{regression.id}, {percent:g} % put down to{again}"
        return Step("attribution", title, key, does)

    def _compared(self, tool: str, head: str, names: Sequence[str], threshold: float) -> Row:
        """Compare. Builds come first, so that `seconds` are those of the comparison alone."""
        start = time.monotonic()
        if tool != "asv":
            built(self.idle)
            built(head)
        else:
            module = names[0].partition(".")[0] if names else ""
            self.asv.build(self.idle, module)
            self.asv.build(head, module)
        between = time.monotonic()
        cells: dict[str, Cells] = {}
        verdicts: dict[str, str] = {}
        with load.beside(self.load):
            if tool != "asv":
                cells[tool] = tools.diff(self.idle, head, names, threshold, tool == "apart")
            for factor in self.factors if tool == "asv" else ():
                arm = f"asv {factor:g}"
                cells[arm], verdicts[arm] = self.asv.continuous(self.idle, head, names, factor)
        return {
            "head": head,
            "cells": cells,
            "verdicts": verdicts,
            "build_seconds": round(between - start, 1),
            "seconds": round((time.monotonic() - between) / len(cells), 1),
        }

    def _at(self, tool: str, threshold: float) -> dict[str, Any]:
        setting = {"threshold": threshold} if tool != "asv" else {"factors": list(self.factors)}
        return {**setting, "load": self.load, "answering": self.answering}


def judged(
    base: Artefact, slow: Artefact, benchmark: str, restarts: int | None = None, again: bool = True
) -> Judgement:
    """The verdict on one benchmark after so many restarts, by default as many as at the last look.
    Raises ToolError if it fails."""
    with side_by_side(PROJECT, base, slow, again=again) as packages:
        comparison = Comparison([benchmark], patient=True)
        comparison.run(packages.contests, restarts)
    if failure := comparison.failures.get(benchmark):
        raise ToolError(f"{benchmark}: {failure.reason}")
    return comparison.judgements[benchmark]


def built(commit: str) -> Artefact:
    """A commit's package. Raises NotBuiltError."""
    return PROJECT.builds.build(Revision(commit, commit))


def benchmarks(artefact: Artefact) -> list[str]:
    """All timed benchmarks of a build, without those of single optimisations' twins."""
    side = Side(artefact.folder, artefact.packages)
    packages = Packages({"base": side}, Suite(PROJECT.suite), _PATIENCE_S)
    return [name for name in packages.names("time") if PROJECT.compared.search(name)]


def beside(
    regression: Regression, percent: float, repeat: int, there: Sequence[str], n: int
) -> list[str]:
    """`n` benchmarks of its module, or fewer if there are not as many, that it does not affect.
    They are drawn anew for each trial, but are the same for every tool."""
    spared = [
        name
        for name in there
        if name.startswith(f"{regression.module}.") and regression.spares(name)
    ]
    rng = random.Random(f"{regression.id} {percent:g} {repeat}")
    return sorted(rng.sample(spared, min(n, len(spared))))
