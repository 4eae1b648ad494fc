"""Further kinds of `rlox-opt peers` for this project: `backends`, steps of small networks in Burn,
Candle, faer, PyTorch and our own path; `threads`, from `sharing.py`; and `limits`, from
`limits.py`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.peers_kind import Record, Report, add_kind, conclude, say
from rlox_opt.project.project import Project
from rlox_opt.system import plugins
from rlox_opt.system.commands import cargo
from rlox_opt.system.commands import run as run_command
from rlox_opt.system.numbers import whole
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.race.primitives.cases import Checks

_BENCH = ("bench", "--locked", "-p", "rlox-bench", "--bench", "nn_backends")
_FEATURES = ("--features", "nn-backends,accepted")
_LIMIT_S = 1800.0
_ABOUT = """\
examples:
  rlox-opt peers backends
  rlox-opt peers backends --runs 3 --no-criterion      times what is called from Python alone

Burn, Candle, faer's product and this library's networks without Python are timed by criterion
(cargo bench -p rlox-bench --bench nn_backends --features nn-backends). PyTorch, and this library
called from Python, are timed in turn. All start from the same weights, and their results are first
compared with plain NumPy in float64. Criterion times one backend after the other, so that no ratio
is taken between its times and those from Python.
"""


def add_to(kinds: Any) -> None:
    """Add these kinds to the command line."""
    for name in ("sharing.py", "limits.py"):
        plugins.load(Path(__file__).with_name(name)).add_to(kinds)
    parser = add_kind(
        kinds,
        "backends",
        run,
        help="small networks in Burn, Candle, PyTorch and our own path",
        description="Time steps of small networks (DQN's TD step, PPO's step, a draw of SAC's "
        "actor, a critic step, a single layer) in several backends",
        about=_ABOUT,
    )
    add = parser.add_argument
    add("--threads", type=whole(1), default=1, metavar="N", help="of each backend (default: 1)")
    add("--no-criterion", action="store_true", help="only what is called from Python")


def run(arguments: argparse.Namespace) -> int:
    """Time what was asked for; returns the exit code."""
    from rlox_opt.race.primitives import cases
    from rlox_opt.race.primitives.tables import Tables

    view = plugins.load(Path(__file__).with_name("backends_page.py"))

    project: Project = arguments.project
    families, engines = cases.load(project, "backends.toml")
    every = [case for family in families for case in family.cases]
    threads = min(arguments.threads, len(os.sched_getaffinity(0)))
    if not arguments.no_criterion:
        say("criterion's backends are compiled")
        compiled(project)
    tables = Tables(project, "backends", families, every, engines, threads)

    def finish(record: Record) -> Record:
        times: dict[str, Any] = {}
        if not arguments.no_criterion:
            say("criterion times its backends")
            times, wrong = by_criterion(project, threads)
            record["left_out"] |= wrong
            for sentence in view.left_out({"left_out": wrong}):
                say(sentence)
        return {**record, "criterion": times}

    return conclude(tables, arguments, Report.of(view), finish)


def compiled(project: Project) -> None:
    """Compile criterion's benchmark. Raises UsageError where that fails."""
    command = [cargo(), *_BENCH, *_FEATURES, "--no-run"]
    done = run_command(command, project.root, limit_s=_LIMIT_S)
    if done.status:
        raise UsageError(
            "criterion's backends do not compile; --no-criterion times what is called from Python "
            f"alone\n{done.tail}"
        )


def by_criterion(
    project: Project, threads: int
) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """Criterion's medians by step and backend, {"s", "ci95"}, and the backends that were left out
    of steps since they were wrong. If a benchmark stops early, what it has timed is kept."""
    from rlox_opt.race.primitives import cases

    checks = cases.checks(cases.folder(project))
    with scratch() as folder:
        home, answers = folder / "criterion", folder / "answers"
        answers.mkdir()
        environment = {
            "CRITERION_HOME": str(home),
            "RLOX_NN_ANSWERS": str(answers),
            "RAYON_NUM_THREADS": str(threads),
        }
        command = [cargo(), *_BENCH, *_FEATURES, "--", "--noplot"]
        done = run_command(command, project.root, environment, limit_s=_LIMIT_S)
        wrong = _wrong(answers, checks)
        times: dict[str, Any] = {}
        for path in home.rglob("new/estimates.json"):
            of = json.loads(path.with_name("benchmark.json").read_text(encoding="utf-8"))
            step, backend = of["group_id"], of["function_id"]
            if all(step not in steps for steps in wrong.get(backend, {}).values()):
                times.setdefault(step, {})[backend] = _median(path)
    if done.status:
        stops = f"did not end within {_LIMIT_S:.0f} s" if done.late else "stops midway"
        said = done.tail or "it said nothing"
        wrong["criterion"] = {f"{stops}: {said.splitlines()[-1]}": []}
    return times, wrong


def _median(path: Path) -> dict[str, Any]:
    """Seconds of a call and their 95 % interval, from criterion's nanoseconds."""
    median = json.loads(path.read_text(encoding="utf-8"))["median"]
    ends = median["confidence_interval"]
    ci95 = [ends["lower_bound"] / 1e9, ends["upper_bound"] / 1e9]
    return {"s": median["point_estimate"] / 1e9, "ci95": ci95}


def _wrong(answers: Path, checks: Checks) -> dict[str, dict[str, list[str]]]:
    """Backends whose results differ from the reference, with the reason and the steps."""
    import numpy as np
    from rlox_opt.race.primitives.cases import Case, WrongError

    wrong: dict[str, dict[str, list[str]]] = {}
    for path in sorted(answers.glob("*.f32")):
        step, _, backend = path.stem.rpartition("_")
        try:
            answer = named(step, np.fromfile(path, "<f4"))
            checks.check(Case(step, {}), answer)
        except WrongError as why:
            wrong.setdefault(backend, {}).setdefault(f"is wrong: {why}", []).append(step)
    return wrong


def named(step: str, numbers: Any) -> Mapping[str, Any]:
    """A backend's numbers by name."""
    if step == "sac_sample":
        return {"action": numbers[:1].reshape(1, 1), "log_prob": numbers[1:].reshape(1, 1)}
    return {"outputs": numbers.reshape(256, 256)} if step == "layer" else {"params": numbers}
