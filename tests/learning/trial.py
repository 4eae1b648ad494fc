"""The trial of `protocol.md`: does the native path learn what Stable-Baselines3 learns?

    python tests/learning/trial.py [TASK …] [--until SECONDS] [--at-once N] [--out FOLDER]
    python tests/learning/trial.py --tell

runs the pairs of trainings that the protocol plans and that FOLDER (`tests/learning/trial`) lacks,
in order. Each finished one is a line of `<task>.jsonl`, appended at once, so that any number of
runs on any number of machines add to the same trial. `--tell` writes `results.md`: figures,
intervals, and the verdict of each task that is complete.
"""

import argparse
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import seeds
from rlox_opt.race import environments as racing
from rlox_opt.stats.student import t_quantile, welch
from rlox_opt.system import git, machine
from rlox_opt.system.files import add_row, read_rows, write
from rlox_opt.system.schema import read

HERE = Path(__file__).parent
FIRST_SEED = 10_000  # those below have been looked at
PLAN = {  # pairs of trainings, in the order in which they are run
    "ppo-lunarlander": 300,
    "ppo-cartpole": 450,
    "ppo-halfcheetah": 60,
    "ppo-hopper": 60,
    "sac-pendulum": 20,
    "sac-lunarlander": 25,
    "sac-halfcheetah": 25,
}
ARMS = {"sb3": "run_sb3", "native": "run_rlox"}
# What decides how an arm learns.
LEARNS = ("rlox", "crates", "Cargo.*", "pyproject.toml", "peers", "tests/learning/*.py")
FIGURES = {"final": "final policy", "area": "area under the training curve"}
MARGIN = 0.05  # of what Stable-Baselines3 gains over a random policy
OUTSIDE = 0.05  # one-sided
CRASHES = "crashes.jsonl"
MOST = 2.0  # what is further apart than this is not measured
Row = dict[str, Any]


def train(task: str, name: str, seed: int) -> Row:
    """A training in a process of its own; returns its figures."""
    job = seeds.job_of(task) | {"seed": seed, "driver": ARMS[name]}
    form = "sb3" if name == "sb3" else "default"
    peer = racing.Peer(name, name, HERE / "run_and_evaluate.py", form)
    with tempfile.TemporaryDirectory() as folder:
        outcome = racing.train(peer, Path(sys.executable), job, seeds.LIMIT_S, Path(folder))
        final = read(Path(folder, "final.json"), list[float])
    return {
        "final": float(np.mean(final)),
        "curve": seeds.curve_of(outcome, job["total_timesteps"]),
    }


def planned(task: str) -> range:
    """The seeds of a task's pairs."""
    return range(FIRST_SEED, FIRST_SEED + PLAN[task])


def rows_of(task: str, out: Path) -> list[Row]:
    """The planned rows, one for each seed: if two machines ran one, the first."""
    by_seed = {row["seed"]: row for row in reversed(read_rows(out / f"{task}.jsonl"))}
    return [by_seed[seed] for seed in planned(task) if seed in by_seed]


def commit() -> str:
    """The commit of all that decides how an arm learns. Raises SystemExit if it is not
    committed."""
    repository = git.of(seeds.PROJECT.root)
    if changed := repository.run("status", "--porcelain", "--", *LEARNS):
        raise SystemExit(f"commit these first, so that a row can say what ran:\n{changed}")
    return repository.run("rev-parse", "HEAD").strip()


def missing(tasks: Sequence[str], out: Path) -> list[tuple[str, int]]:
    """Task and seed of each missing pair."""
    found = []
    for task in tasks:
        there = {row["seed"] for row in rows_of(task, out)}
        found += [(task, seed) for seed in planned(task) if seed not in there]
    return found


def run(tasks: Sequence[str], out: Path, at_once: int, until: float, of: str | None) -> None:
    """Train what is missing; no pair begins later than `until` seconds from now. `of` is the
    commit, if git cannot be asked."""
    end = time.monotonic() + until
    info, installed = machine.machine(), seeds.PROJECT.installed
    origin = {
        "machine": f"{info['cpu']}, {info['cores']} cores",
        "torch": installed.around().get("torch"),
        "built": installed.build_info()["commit"],
    }

    def pair(task: str, seed: int) -> None:
        if time.monotonic() > end:
            return
        row: Row = {"seed": seed, "commit": of or commit(), **origin}
        try:
            row |= {name: train(task, name, seed) for name in ARMS}
        except racing.PeerError as crash:
            add_row({"task": task, **row, "said": str(crash)}, out / CRASHES)
            print(f"{task} seed {seed}: {crash}", file=sys.stderr, flush=True)
            return
        add_row(row, out / f"{task}.jsonl")  # here, so that what ends after Ctrl-C is kept, too
        found = ", ".join(f"{name} {row[name]['final']:.1f}" for name in ARMS)
        print(f"{task} seed {seed}: {found}", flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            list(pool.map(lambda one: pair(*one), missing(tasks, out)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def most_apart(
    ours: Sequence[float], reference: Sequence[float], random: float, sign: int
) -> float:
    """The least m such that ours is worse (`sign` -1) or better (1) by less than m times what the
    reference gains over a random policy, except with a probability of one in twenty (Welch,
    one-sided)."""

    def shown(m: float) -> bool:
        allowed = [(sign + m) * x - m * random for x in reference]
        difference, error, df = welch(allowed, [sign * x for x in ours])
        return difference - t_quantile(2 * OUTSIDE, df) * error > 0

    low, high = -MOST, MOST
    if not shown(high):
        return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def area(curve: Sequence[float | None], random: float) -> float:
    """Mean height of the curve; before an episode has ended, that of a random policy."""
    return float(np.mean([random if value is None else value for value in curve]))


def verdict(lost: float, gained: float) -> str:
    if lost >= MARGIN:
        return "not shown"
    return "equivalent" if gained < MARGIN else "not inferior"


def told(task: str, rows: Sequence[Row], random: float) -> list[str]:
    """A line of the table for each figure."""
    whole = len(rows) >= PLAN[task]
    pairs = f"{len(rows)}" if whole else f"{len(rows)} of {PLAN[task]}"
    values = {
        "final": {name: [row[name]["final"] for row in rows] for name in ARMS},
        "area": {name: [area(row[name]["curve"], random) for row in rows] for name in ARMS},
    }
    lines = []
    for figure, title in FIGURES.items():
        ours, reference = values[figure]["native"], values[figure]["sb3"]
        difference = seeds.welch_interval(ours, reference)
        if difference is None:
            lines.append(f"| {task} | {title} | | | | | | {pairs} |")
            continue
        lost, gained = (most_apart(ours, reference, random, sign) for sign in (-1, 1))
        cells = [
            task,
            title,
            *(f"{np.mean(v):.1f} ({np.std(v, ddof=1):.1f})" for v in (reference, ours)),
            "{:+.1f} to {:+.1f}".format(*difference),
            f"{lost:.1%}" if math.isfinite(lost) else f"over {MOST:.0%}",
            verdict(lost, gained) if whole else "",
            pairs,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def tell(out: Path) -> str:
    """The table of all that was run, as Markdown."""
    lines: list[str] = []
    of: Counter[str] = Counter()
    crashed = len(read_rows(out / CRASHES))
    for task in PLAN:
        if rows := rows_of(task, out):
            random = seeds.random_return(seeds.TASKS[task]["env_id"], 100)
            lines += told(task, rows, random)
            of.update(
                f"{task}, {row['machine']}, torch {row['torch']}, commit {row['commit'][:12]}"
                for row in rows
            )
    return "\n".join(
        [
            "Results of the trial of [protocol.md](../protocol.md). Means over seeds, with their "
            "deviation; the difference, native minus Stable-Baselines3, with its 95 % interval "
            "(Welch); what the native path has lost at most (95 %, one-sided) of what "
            "Stable-Baselines3 gains over a random policy. A task has a verdict when all its pairs "
            f"are there. Trainings that crashed and were run again: {crashed}.",
            "",
            "| Task | Figure | Stable-Baselines3 | native | difference | lost at most | verdict "
            "| pairs |",
            "|---|---|---:|---:|---:|---:|---|---:|",
            *lines,
            "",
            "What ran ([notes](notes.md)):",
            "",
            *(f"- {one}: {n} pairs" for one, n in sorted(of.items())),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(PLAN)} (default: all, in order)")
    parser.add_argument("--tell", action="store_true", help="write results.md; train nothing")
    parser.add_argument("--until", type=float, default=math.inf, help="begin no pair after, in s")
    parser.add_argument("--at-once", type=int, default=machine.machine()["cores"], help="pairs")
    parser.add_argument("--out", type=Path, default=HERE / "trial", help="folder of the rows")
    parser.add_argument("--commit", help="that is run, where there is no git to ask")
    asked = parser.parse_args()
    if unknown := set(asked.tasks) - set(PLAN):
        parser.error(f"tasks: {', '.join(unknown)}: there are {', '.join(PLAN)}")
    tasks = [task for task in PLAN if rows_of(task, asked.out)] if asked.tell else asked.tasks
    if missing := seeds.missing_for(tasks or list(PLAN)):
        parser.error(missing)
    try:
        if not asked.tell:
            run(asked.tasks or list(PLAN), asked.out, asked.at_once, asked.until, asked.commit)
    except KeyboardInterrupt:
        print("Interrupted; the same command goes on.", file=sys.stderr)
        return 130
    print(write(asked.out / "results.md", tell(asked.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
