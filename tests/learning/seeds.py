"""Trains several trainers (Stable-Baselines3, and rlox with and without optimisations) with the
same hyperparameters and seeds, and compares what they have learnt. Each of them is an arm.

`python tests/learning/seeds.py ppo-cartpole --seeds 10 --arms sb3,baseline,native --out folder`

appends a line to `<task>.jsonl` for each finished training, and writes `<task>.json`, `.md` and
`.svg`. The same command at the same commit continues after an interruption. Two trainings run at a
time, each on one thread in a process of its own, by the drivers of `rlox-opt peers`. LunarLander,
HalfCheetah and Hopper need the dependency group `learning`, which installs from wheels.
"""

import argparse
import hashlib
import itertools
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from curves import picture
from rlox_opt.plan.comparing import code, provenance
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.environments import Peer, Training
from rlox_opt.stats.student import mean_interval, t_quantile, welch
from rlox_opt.system.files import add_row, read_rows
from rlox_opt.system.files import write as write_file
from rlox_opt.views.tables import origin

PROJECT = Project.find(Path(__file__).parent)
EPISODES = 50  # a training's figure is the mean return of its last episodes
FEWER = {"sac-halfcheetah": 10}  # of a training that has 30
POINTS = 40  # of a curve
LIMIT_S = 4 * 3600
TASKS: dict[str, dict[str, Any]] = {
    "ppo-cartpole": {"env_id": "CartPole-v1", "total_timesteps": 50_000},
    "ppo-acrobot": {"env_id": "Acrobot-v1", "total_timesteps": 100_000},
    "ppo-lunarlander": {"env_id": "LunarLander-v3", "total_timesteps": 300_000},
    "ppo-halfcheetah": {"env_id": "HalfCheetah-v5", "total_timesteps": 200_000},
    "ppo-hopper": {"env_id": "Hopper-v5", "total_timesteps": 200_000},
    "sac-pendulum": {"env_id": "Pendulum-v1", "total_timesteps": 20_000},
    "sac-lunarlander": {"env_id": "LunarLanderContinuous-v3", "total_timesteps": 50_000},
    "sac-halfcheetah": {"env_id": "HalfCheetah-v5", "total_timesteps": 30_000},
}
ARMS = {
    "ppo": "sb3,baseline,R1,R2,R4,R7,R8,R9,R11,R12,R14,R15,R2+R16,bfloat16,native",
    "sac": "sb3,baseline,R3,R5,R6,R12,R13,R3+R16,bfloat16,native",
}


def arm(name: str, algo: str) -> Peer:
    """An arm as a peer: "sb3", "baseline", "native", "bfloat16", or ids joined by +, such as
    R1+R5."""
    if name == "sb3":
        return Peer(name, "Stable-Baselines3", PROJECT.peers / "run_sb3.py", "sb3")
    if name == "native":
        return next(p for p in racing.load(PROJECT, algo)[1] if p.name == "rlox-native")
    if name == "bfloat16":
        driver = Path(__file__).with_name("run_bfloat16.py")
        return Peer(name, "rlox with rounded products", driver, [])
    ids = [] if name == "baseline" else name.upper().split("+")
    return Peer(name, "rlox", PROJECT.peers / "run_rlox.py", ids)


def job_of(task: str) -> dict[str, Any]:
    """The task with the hyperparameters of the race, on one thread."""
    algo = task.partition("-")[0]
    return racing.load(PROJECT, algo)[0] | TASKS[task] | {"algo": algo, "threads": 1}


def key_of(peer: Peer, job: dict[str, Any], where: Mapping[str, Any]) -> str:
    """A digest of all that decides how an arm learns. Only trainings with the same key are
    pooled."""
    what = [job, racing.digest(PROJECT, peer), *code(PROJECT, where)]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]


def train(peer: Peer, job: dict[str, Any]) -> Training:
    """One training in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return racing.train(peer, Path(sys.executable), job, LIMIT_S, Path(folder))


def summary(outcome: Training, task: str, total: int) -> dict[str, Any]:
    """The figure of a training, and its curve."""
    returns, last = [value for *_, value in outcome.episodes], FEWER.get(task, EPISODES)
    assert len(returns) >= last, f"{len(returns)} episodes are too few"
    return {"final": float(np.mean(returns[-last:])), "curve": curve_of(outcome, total)}


def curve_of(outcome: Training, total: int) -> list[float | None]:
    """Means of the latest episodes at POINTS places; None as long as none has ended."""
    at = [steps for _, steps, _ in outcome.episodes]
    returns = [value for *_, value in outcome.episodes]
    seen = np.searchsorted(at, np.linspace(0, total, POINTS + 1)[1:], side="right")
    return [float(np.mean(returns[max(0, n - EPISODES) : n])) if n else None for n in seen]


def compare(
    task: str, names: Sequence[str], n_seeds: int, out: Path, total: int | None = None
) -> dict[str, Any]:
    """Train what is missing in `out`; returns the returns of all arms, and intervals of their
    differences."""
    job = job_of(task)
    job["total_timesteps"] = total or job["total_timesteps"]
    peers = {name: arm(name, job["algo"]) for name in names}
    path = out / f"{task}.jsonl"
    where = provenance(PROJECT, PROJECT.installed.build_info())
    keys = {name: key_of(peer, job, where) for name, peer in peers.items()}
    known = {(r["arm"], r["seed"]): r for r in read_rows(path) if r["key"] == keys.get(r["arm"])}
    missing = [pair for pair in itertools.product(names, range(n_seeds)) if pair not in known]
    missing.sort(key=lambda pair: pair[1])  # seed after seed: an interruption leaves whole ones

    def run(name: str, seed: int) -> dict[str, Any]:
        found = summary(train(peers[name], job | {"seed": seed}), task, job["total_timesteps"])
        row = {"arm": name, "seed": seed, "key": keys[name], **found}
        add_row(row, path)  # here, so that what ends after Ctrl-C is kept, too
        print(f"{task} {name} seed {seed}: {found['final']:.1f}", flush=True)
        return row

    with ThreadPoolExecutor(2) as pool:
        running = {pool.submit(run, *pair): pair for pair in missing}
        try:
            for done in as_completed(running):
                known[running[done]] = done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    finals = {name: [known[name, seed]["final"] for seed in range(n_seeds)] for name in names}
    held_to = [name for name in ("sb3", "baseline") if name in names]
    return {
        "task": task,
        **where,
        "job": job,
        "random": random_return(job["env_id"]),
        "returns": finals,
        "curves": {n: [known[n, seed]["curve"] for seed in range(n_seeds)] for n in names},
        "intervals": {
            name: mean_interval(finals[name], 0.05) if n_seeds > 1 else None for name in names
        },
        "differences": {
            name: {to: welch_interval(finals[name], finals[to]) for to in held_to if to != name}
            for name in names
        },
    }


def missing_for(tasks: Sequence[str]) -> str | None:
    """What to install for the environments of `tasks`; None if they can be made."""
    import gymnasium

    for task in tasks:
        try:
            gymnasium.make(TASKS[task]["env_id"]).close()
        except gymnasium.error.DependencyNotInstalled as missing:
            return f"{task}: {missing}; `make learning` installs all that the tasks need"
    return None


def random_return(env_id: str, episodes: int = 50) -> float:
    """Mean return of uniformly random actions."""
    import gymnasium

    env = gymnasium.make(env_id)
    env.action_space.seed(0)
    env.reset(seed=0)
    returns = []
    for _ in range(episodes):
        env.reset()
        total, ended = 0.0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, ended = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def welch_interval(
    a: list[float], b: list[float], outside: float = 0.05
) -> tuple[float, float] | None:
    """The interval of mean(a) - mean(b), which misses with the probability `outside`; None for
    single values. If all values are equal it is one point."""
    if min(len(a), len(b)) < 2:
        return None
    difference, error, df = welch(a, b)
    half = t_quantile(outside, df) * error
    return difference - half, difference + half


def most_lost(ours: list[float], reference: list[float], random: float) -> float:
    """The largest part that ours may have lost of the reference's gain over a random policy; a
    larger loss has a probability of one in forty at most (Welch, one-sided)."""
    interval = welch_interval(ours, reference, 0.05)
    assert interval is not None, "one seed tells nothing"
    return -interval[0] / (float(np.mean(reference)) - random)


def table(result: dict[str, Any]) -> str:
    """The comparison as Markdown."""
    job, returns = result["job"], result["returns"]
    last = FEWER.get(result["task"], EPISODES)
    held_to = list(dict.fromkeys(to for found in result["differences"].values() for to in found))
    lines = [
        f"{job['algo'].upper()} on {job['env_id']}, {job['total_timesteps']:,} steps: mean return "
        f"of the last {last} episodes of training, over seeds. A random policy has "
        f"{result['random']:.1f}. Differences with their 95 % interval (Welch); = where every "
        "seed ends with the same return.",
        "",
        "; ".join(f"{what}: {said}" for what, said in origin(result)) + ".",
        "",
        "| | mean (95 %) | " + "".join(f"− {to} | " for to in held_to) + "seeds |",
        "|---|---:|" + "---:|" * len(held_to) + "---|",
    ]
    for name, values in returns.items():
        cells = [f"{np.mean(values):.1f}{_ends(result['intervals'][name], ' ({:.1f} to {:.1f})')}"]
        for to in held_to:
            same = to != name and values == returns[to]
            ends = None if same else result["differences"][name].get(to)
            cells.append("=" if same else _ends(ends, "{:+.1f} to {:+.1f}"))
        cells.append(", ".join(f"{value:.0f}" for value in values))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ends(ends: Sequence[float] | None, form: str) -> str:
    return form.format(*ends) if ends else ""


def write(result: dict[str, Any], folder: Path) -> None:
    """`<task>.json`, `.md` and `.svg` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    task = result["task"]
    write_file(folder / f"{task}.json", json.dumps(result, indent=1) + "\n")
    write_file(folder / f"{task}.md", f"{table(result)}\n\n![curves]({task}.svg)\n")
    write_file(folder / f"{task}.svg", picture(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--arms", help="comma-separated (default: all of the task's algorithm)")
    parser.add_argument("--total-timesteps", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for task in arguments.tasks:
        names = (arguments.arms or ARMS[task.partition("-")[0]]).split(",")
        result = compare(task, names, arguments.seeds, arguments.out, arguments.total_timesteps)
        write(result, arguments.out)
        print(table(result), flush=True)


if __name__ == "__main__":
    main()
