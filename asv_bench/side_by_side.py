"""Lets `asv continuous` measure both commits in turn, instead of one after the other.

asv takes many samples in each of a few processes, and compares all samples of two commits by Mann
and Whitney's test, which requires independent samples. Samples of one process are not independent.
They share a memory layout, and so differ from those of the next process even if nothing changed.

Here asv still builds, installs, lists and reports failures, but times are taken as `rlox-opt diff`
takes them. Each process loads both commits, calls them in turn and gives one ratio, and further
processes are started until there is a verdict. asv's table shows that ratio, marked by that
verdict.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asv import _stats, util
from asv.commands import run as asv_run
from asv.commands.compare import Compare
from asv.commands.continuous import Continuous
from asv.console import log
from asv.runner import BenchmarkResult, log_benchmark_result
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.restarts import ContestError, ProcessEndedError, SkippedError
from rlox_opt.harness.sequential import Comparison, tally
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.stats.family import Judgement
from rlox_opt.stats.paired import FLAGGED
from rlox_opt.system.output import few
from rlox_opt.system.scratch import scratch

from asv_bench.project import PROJECT

# For the times of all environments. Builds, memory and the last process come on top.
BUDGET_S = 480.0
_PATIENCE_S = 120.0  # for one benchmark in one process
_TOLD_EVERY_S = 15.0
_SHOWN = 5  # undecided benchmarks that are named
# Options with which the user asks for asv's own samples.
_OF_ASV = ("quick", "attribute", "append_samples")

Row = str  # a benchmark with its parameters, as asv prints it
Key = tuple[str, Row]  # an environment's name, and a row
Wrong = dict[str, dict[Row, str]]  # by side: rows that fail, and how


class _Judged(dict[str, Any]):
    """asv's statistics of a row, with our verdict."""

    verdict: str


@dataclass
class _Side:
    """A commit in an environment: asv's results, and a copy of its package."""

    results: Any
    folder: Path


@dataclass
class Contest:
    """One run of `asv continuous`. asv measures head first, in all environments."""

    conf: Any
    factor: float
    folder: Path
    own: Callable[..., Any] = asv_run.run_benchmarks
    spent_s: float = 0.0  # of the budget
    heads: dict[str, _Side] = field(default_factory=dict)  # by environment, until base is measured
    judged: dict[Key, tuple[float, Judgement]] = field(default_factory=dict)
    unmeasured: set[Key] = field(default_factory=set)  # for which the budget was too small

    @property
    def benchmarks(self) -> Path:
        """The folder of benchmarks."""
        return Path(self.conf.benchmark_dir).resolve()

    def run_benchmarks(self, benchmarks: Any, env: Any, results: Any = None, **options: Any) -> Any:
        """Replaces asv's method, which measures the commit that is installed now. Times are not
        taken until the other commit is there as well."""
        times = {
            name: about
            for name, about in benchmarks.items()
            if about["type"] == "time" and not about.get("setup_cache_key")
        }
        package = self._package(env) if times else None
        if package is None:  # asv reports what is wrong
            return self.own(benchmarks, env, results=results, **options)
        self.own(benchmarks.filter_out(times), env, results=results, **options)
        side = _Side(results, self.folder / str(len([*self.folder.iterdir()])))
        shutil.copytree(package, side.folder / PROJECT.package)
        if env.name not in self.heads:
            self.heads[env.name] = side
            return results
        sides = {"base": side, "head": self.heads[env.name]}
        rows = {  # asv numbers the rows of a benchmark, and knows which were selected
            name: {
                number: row
                for number, row in enumerate(labels(about))
                if number in (benchmarks.benchmark_selection.get(name) or (number,))
            }
            for name, about in times.items()
        }
        try:
            compared, wrong = self._compared(
                env, sides, {row for of in rows.values() for row in of.values()}
            )
        except KeyboardInterrupt:
            raise util.UserError("Interrupted.") from None
        except ContestError as error:
            raise util.UserError(f"The commits do not run side by side: {error}") from None
        del self.heads[env.name]
        left_out = {*compared.unmeasured()}
        self.unmeasured |= {(env.name, row) for row in left_out}
        for which, of in sides.items():
            log.info(f"Times of {of.results.commit_hash[:8]} in {env.name}")
            with log.indent():
                for name, about in times.items():
                    # What was not measured keeps the results that it has.
                    chosen = {number for number, row in rows[name].items() if row not in left_out}
                    if not chosen:
                        continue
                    of.results.add_result(
                        about,
                        _as_asv(about, which, compared, wrong),
                        record_samples=True,
                        selected_idx=chosen,
                    )
                    log.step()
                    log.info(name, reserve_space=True)
                    log_benchmark_result(of.results, about, options.get("show_stderr", False))
        sides["head"].results.save(self.conf.results_dir)
        return results

    def _package(self, env: Any) -> Path | None:
        """The installed package; None if it is not the one that asv asked for, or if it cannot be
        imported."""
        program = (
            f"import sys; sys.path.insert(0, {str(self.benchmarks.parent)!r})\n"
            f"import benchmarks, {PROJECT.package}\n"  # the benchmarks refuse other builds
            f"print({PROJECT.package}.__path__[0])"
        )
        try:
            said = env.run(
                ["-c", program], cwd=str(self.folder), env={**os.environ, **env.env_vars},
                dots=False, display_error=False,
            )  # fmt: skip
        except util.ProcessError:
            return None
        return Path(said.splitlines()[-1])

    def _compared(
        self, env: Any, sides: Mapping[str, _Side], wanted: Set[Row]
    ) -> tuple[Comparison, Wrong]:
        """The comparison of these rows, and what is wrong with the rows that it lacks."""
        python = env.find_executable("python")
        packages = Packages(
            {
                side: Side(of.folder, (PROJECT.package,), python, env.env_vars)
                for side, of in sides.items()
            },
            Suite(self.benchmarks, PROJECT.settings.shared),
            _PATIENCE_S,
            PROJECT.settings.one_process,
        )
        there = packages.names("time")
        of_both = [row for row in sorted(wanted) if len(there.get(row, ())) == 2]
        times = Comparison(of_both, math.log(max(self.factor, 1.0)))
        self._time(env, packages, times)
        for row, judgement in times.judgements.items():
            self.judged[env.name, row] = times.medians(row)[0], judgement
        wrong = {side: _wrong_alone(packages, side, times.failures) for side in sides}
        for row, failure in times.failures.items():
            if not failure.skipped and not any(row in of for of in wrong.values()):
                for of in wrong.values():
                    of[row] = f"side by side with the other commit: {failure.reason}"
        # Rows that only head has are new. Rows that only base has mean that head's module is
        # broken.
        gone = {row for row in wanted if there.get(row) == ["base"]}
        wrong["head"] |= dict.fromkeys(gone, "is not there: does its module import?")
        return times, wrong

    def _time(self, env: Any, packages: Packages, times: Comparison) -> None:
        """Restart until nothing is undecided, within this environment's share of the budget."""
        if not times.names:
            return
        began = time.monotonic()
        log.info(f"Timing {len(times.names)} benchmarks of both commits in {env.name}")
        told = time.monotonic()

        def tell(restarts: int, undecided: int, seconds: float) -> None:
            nonlocal told
            if time.monotonic() - told > _TOLD_EVERY_S:
                told = time.monotonic()
                log.info(f"Process {restarts}: {undecided} undecided, {seconds:.0f} s to come")

        with log.indent():
            left = max(0.0, BUDGET_S - self.spent_s)
            times.run(packages.contests, budget_s=left / len(self.heads), tell=tell)
        self.spent_s += time.monotonic() - began

    def print_table(
        self, conf: Any, base: str, head: str, *positional: Any,
        resultset_1: Iterable[tuple[Any, ...]], resultset_2: Iterable[tuple[Any, ...]],
        own: Callable[..., Any] = Compare.print_table, **options: Any,
    ) -> Any:  # fmt: skip
        """asv's table with our ratios and verdicts, followed by what asv does not say."""
        worsened_improved = own(
            conf, base, head, *positional,
            resultset_1=self._judged(resultset_1, "base"),
            resultset_2=self._judged(resultset_2, "head"),
            **options,
        )  # fmt: skip
        if self.judged or self.unmeasured:
            print("\n".join(["", *self._told()]))
        return worsened_improved

    def _judged(self, rows: Iterable[tuple[Any, ...]], side: str) -> Iterator[tuple[Any, ...]]:
        for name, params, values, stats, *rest, env_name in rows:
            values, stats = list(values), list(stats)
            for number, row in enumerate(labels({"name": name, "params": params})):
                if (env_name, row) in self.unmeasured:
                    values[number] = math.nan  # a result of another run is not compared
                if (known := self.judged.get((env_name, row))) and stats[number]:
                    base, judgement = known
                    values[number] = base * (judgement.ratio if side == "head" else 1)
                    # asv asks for no verdict where a row has been repeated once.
                    stats[number] = _Judged(stats[number], repeat=0)
                    stats[number].verdict = judgement.verdict
            yield name, params, values, stats, *rest, env_name

    def _told(self) -> Iterator[str]:
        if self.unmeasured:
            rows = [row for _, row in sorted(self.unmeasured)]
            yield (
                f"The budget of {BUDGET_S:.0f} s did not suffice for {few(rows)}; "
                "`-b` chooses fewer times"
            )
        judgements = [judgement for _, judgement in self.judged.values()]
        if not judgements:
            return
        counts = tally(judgements)
        least, most = (of(j.restarts for j in judgements) for of in (min, max))
        yield (
            f"{len(judgements)} times, both commits side by side in {least} to {most} processes: "
            f"{counts['slower']} slower, {counts['faster']} faster, {counts['same']} the same "
            f"(within {max(self.factor, 1.0) - 1:.0%}), {counts['undecided']} undecided."
        )
        undecided = [
            (row, judgement)
            for (_, row), (_, judgement) in self.judged.items()
            if judgement.verdict == "undecided"
        ]
        undecided.sort(key=lambda of: -of[1].ratio)
        for row, judgement in undecided[:_SHOWN]:
            within = "–".join(f"{end:.3f}" for end in judgement.ci99 or ())
            yield f"  undecided: {row}, {judgement.ratio:.3f}{within and f' ({within})'}"
        if len(undecided) > _SHOWN:
            yield f"  and {len(undecided) - _SHOWN} more; `-b` gives fewer of them more time"


def labels(about: Mapping[str, Any]) -> list[Row]:
    """The rows of a benchmark, as asv and rlox_opt.harness.packages name them."""
    return [
        about["name"] + (f"({', '.join(values)})" if values else "")
        for values in itertools.product(*about["params"])
    ]


def _wrong_alone(packages: Packages, side: str, rows: Iterable[Row]) -> dict[Row, str]:
    """Which of these rows fail on this side, and how."""
    wrong: dict[Row, str] = {}
    left = [*rows]
    while left:
        with packages.alone(side, random.Random()) as ask:
            while left:
                row = left.pop()
                try:
                    packages.prepare(ask, side, row)
                except SkippedError:
                    continue
                except ContestError as error:
                    wrong[row] = str(error)
                    if isinstance(error, ProcessEndedError):
                        break
    return wrong


def _as_asv(
    about: Mapping[str, Any], side: str, times: Comparison, wrong: Wrong
) -> BenchmarkResult:
    """A benchmark's result as asv's runner returns it: one sample for each process, None for a
    failure, NaN for what was skipped, not selected, or is new. asv compares nothing of a benchmark
    of which anything failed, on whichever side."""
    rows = labels(about)
    faults = {which: {row: of[row] for row in rows if row in of} for which, of in wrong.items()}
    samples = [
        [getattr(of, side) for of in times.readings[row]] if row in times.judgements else None
        for row in rows
    ]
    result = [
        True if of else None if row in faults[side] else math.nan
        for row, of in zip(rows, samples, strict=True)
    ]
    # The number of calls in a sample differs between processes; asv reads 0 as "choose it".
    number = [0 if of else None for of in samples]
    said = "\n".join(f"{row}: {why}" for row, why in faults[side].items())
    return BenchmarkResult(result, samples, number, int(any(faults.values())), said, None)


def is_different(own: Callable[..., bool]) -> Callable[..., bool]:
    """asv's test of samples, replaced by our verdict where there is one."""

    def tested(a: Any, b: Any, stats_a: Any, stats_b: Any, **options: Any) -> bool:
        if isinstance(stats_a, _Judged):
            return stats_a.verdict in FLAGGED
        return own(a, b, stats_a, stats_b, **options)

    return tested


@contextlib.contextmanager
def _instead(owner: Any, name: str, other: Any) -> Iterator[None]:
    own = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, own)


def install(own: Callable[..., Any] = Continuous.run) -> None:
    """Make `asv continuous` compare so, unless the user asks for asv's own samples."""

    def run(conf: Any, **options: Any) -> Any:
        if any(options.get(name) for name in _OF_ASV):
            log.info("Timing as asv does, by its own samples: --quick, -a or --append-samples")
            return own(conf=conf, **options)
        with contextlib.ExitStack() as stack:
            contest = Contest(conf, options.get("factor") or 1.1, stack.enter_context(scratch()))
            for owner, name, other in (
                (asv_run, "run_benchmarks", contest.run_benchmarks),
                (Compare, "print_table", contest.print_table),
                (_stats, "is_different", is_different(_stats.is_different)),
            ):
                stack.enter_context(_instead(owner, name, other))
            if not options.get("bench"):
                log.info("Without the twins of single optimisations; `-b pairs` compares those")
                options["bench"] = [PROJECT.compared.pattern]
            return own(conf=conf, **{**options, "attribute": {"rounds": 1}})

    Continuous.run = run
