"""`rlox-opt peers backends`: steps of small networks in Burn, Candle, PyTorch and our own path."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlox_opt.plan.features import cargo_of
from rlox_opt.project.project import Project
from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.tables import Tables, conclude
from rlox_opt.system import exits
from rlox_opt.system.commands import CompileError, cargo
from rlox_opt.system.commands import run as run_command
from rlox_opt.system.numbers import whole
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_BENCH = "nn_backends"
_LIMIT_S = 1800.0
_EXAMPLES = """\
examples:
  rlox-opt peers backends
  rlox-opt peers backends --runs 3 --no-criterion      from Python alone

Burn, Candle and our networks without Python are timed by criterion (cargo bench -p rlox-bench
--bench nn_backends --features nn-backends); PyTorch, and ours called from Python, in turn. All
start from the same weights, and are held to plain NumPy in float64 first. Criterion times one
after the other: between its times and those from Python no ratio is taken.
"""


def add_to(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "backends",
        help="small networks in Burn, Candle, PyTorch and our own path",
        description="Time steps of small networks (DQN's TD step, PPO's step, a draw of SAC's "
        "actor, a critic step) in several backends; a record, a page and Markdown under "
        "peers/record/.",
        epilog=_EXAMPLES
        + exits.told(
            cannot_tell="also where nothing was timed", interrupted="what is timed is kept"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=whole(1), default=10, metavar="N", help="restarts of Python (default: 10)")
    add("--threads", type=whole(1), default=1, metavar="N", help="of each backend (default: 1)")
    add("--no-criterion", action="store_true", help="only what is called from Python")
    add("--no-record", action="store_true", help="write no record")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Time as asked; returns the exit code."""
    from rlox_opt.views import backends as report

    project: Project = arguments.project
    families, engines = cases.load(project, "backends.toml")
    chosen = [case for family in families for case in family.cases]
    threads = min(arguments.threads, len(os.sched_getaffinity(0)))
    tables = Tables(project, "backends", families, chosen, engines, threads)

    def finish(found: dict[str, Any]) -> dict[str, Any]:
        times: dict[str, Any] = {}
        if not arguments.no_criterion:
            print("rlox-opt peers: criterion builds and times its backends", file=sys.stderr)
            try:
                times, wrong = by_criterion(project, threads)
            except (CompileError, UsageError) as problem:
                wrong = {"criterion": {f"fails: {str(problem).splitlines()[-1]}": []}}
            found["left_out"] |= wrong
            for sentence in report.left_out({"left_out": wrong}):
                print(f"rlox-opt peers: {sentence}", file=sys.stderr)
        return {**found, "criterion": times}

    return conclude(tables, arguments, report, finish)


def by_criterion(
    project: Project, threads: int
) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """Criterion's medians by step and backend, {"s", "ci95"}, and what was left out of which steps
    for being wrong. Of a benchmark that stops midway what it has timed stays. Raises CompileError
    where there is nothing."""
    checks = cases.checks(cases.folder(project))
    with scratch() as folder:
        home, answers = folder / "criterion", folder / "answers"
        answers.mkdir()
        environment = {
            "CRITERION_HOME": str(home),
            "RLOX_NN_ANSWERS": str(answers),
            "RAYON_NUM_THREADS": str(threads),
        }
        bench = ("bench", "--locked", "-p", cargo_of(project).twins, "--bench", _BENCH)
        features = ("--features", "nn-backends,accepted")
        done = run_command(
            [cargo(), *bench, *features, "--", "--noplot"],
            project.root,
            environment,
            limit_s=_LIMIT_S,
        )
        wrong = _wrong(answers, checks)
        times: dict[str, Any] = {}
        for path in home.rglob("new/estimates.json"):
            of = json.loads(path.with_name("benchmark.json").read_text(encoding="utf-8"))
            step, backend = of["group_id"], of["function_id"]
            if all(step not in steps for steps in wrong.get(backend, {}).values()):
                times.setdefault(step, {})[backend] = _median(path)
    if done.status:
        said = done.tail or "it said nothing"
        if not times:
            raise CompileError(said)
        wrong["criterion"] = {f"stops midway: {said.splitlines()[-1]}": []}
    return times, wrong


def _median(path: Path) -> dict[str, Any]:
    """Seconds of a call and their 95 % interval, of criterion's nanoseconds."""
    found = json.loads(path.read_text(encoding="utf-8"))["median"]
    ends = found["confidence_interval"]
    ci95 = [ends["lower_bound"] / 1e9, ends["upper_bound"] / 1e9]
    return {"s": found["point_estimate"] / 1e9, "ci95": ci95}


def _wrong(answers: Path, checks: cases.Checks) -> dict[str, dict[str, list[str]]]:
    """Backends whose numbers are not the reference's, the reason, and the steps."""
    import numpy as np

    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(answers.glob("*.f32")):
        step, _, backend = path.stem.rpartition("_")
        try:
            answer = named(step, np.fromfile(path, "<f4"))
            checks.check(cases.Case(step, {}), answer)
        except cases.WrongError as wrong:
            found.setdefault(backend, {}).setdefault(f"is wrong: {wrong}", []).append(step)
    return found


def named(step: str, numbers: Any) -> Mapping[str, Any]:
    """A backend's numbers by name."""
    if step != "sac_sample":
        return {"params": numbers}
    return {"action": numbers[:1].reshape(1, 1), "log_prob": numbers[1:].reshape(1, 1)}
