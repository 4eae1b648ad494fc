"""Environment steps per second of PPO in one process and in two, on the same joined task.

`python tests/learner/throughput.py` trains with both in turn, five times, and writes the results to
`throughput.md` beside this file.
"""

import json
import math
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import gymnasium as gym
from rlox_opt.plan.comparing import provenance
from rlox_opt.project.project import Project
from rlox_opt.stats.student import ratio_interval
from rlox_opt.views.tables import origin

from rlox import build_info

ROUNDS, WORKERS = 5, (1, 2)
WARM_UP, STEPS = 4_096, 100_000
TASKS = {
    "CartPole-v1, environments in Rust": {"env": "CartPole-v1", "n_envs": 8},
    # Made by callables, they are Gymnasium's; by the id they would be ours.
    "Acrobot-v1, environments in Python": {"env": [partial(gym.make, "Acrobot-v1")] * 8},
}


def train(task: str) -> None:
    """One worker: the first one prints steps per second."""
    import rlox

    model = rlox.PPO(**TASKS[task], batch_size=256, seed=0, threads=1).learn(WARM_UP)
    began = time.perf_counter()
    model.learn(STEPS)
    if model._rank == 0:
        print(json.dumps(model.num_timesteps / (time.perf_counter() - began)))


def main() -> None:
    lines = [
        "| PPO on | one process, steps/s | two processes | two ÷ one (95 %) |",
        "|---|---:|---:|---:|",
    ]
    for task in TASKS:
        speeds: dict[int, list[float]] = {n: [] for n in WORKERS}
        for number in range(ROUNDS):
            for n in WORKERS if number % 2 else reversed(WORKERS):
                torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
                command = [*torchrun, "--nproc-per-node", str(n), str(Path(__file__)), task]
                said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                speeds[n].append(float(json.loads(said.strip().splitlines()[-1])))
        one, two = (speeds[n] for n in WORKERS)
        ratios = [math.log(b / a) for a, b in zip(one, two, strict=True)]
        low, high = ratio_interval(ratios, 0.05)
        medians = " | ".join(f"{statistics.median(speeds[n]):,.0f}" for n in WORKERS)
        ratio = math.exp(statistics.fmean(ratios))
        lines.append(f"| {task} | {medians} | {ratio:.2f}× ({low:.2f}–{high:.2f}) |")
        print(lines[-1], flush=True)
    made = provenance(Project.find(Path(__file__).parent), build_info())
    facts = (f"{what}: {said}" for what, said in origin(made))
    where = f"{STEPS:,} steps, {ROUNDS} rounds in turn, medians. " + "; ".join(facts) + "."
    Path(__file__).with_suffix(".md").write_text("\n".join([where, "", *lines, ""]))


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
