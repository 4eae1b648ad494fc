"""Environment steps per second of PPO in one process and in two, on the same joined task.

`python tests/learner/throughput.py` trains with both in turn, five times, and prints the ratio.
"""

import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROUNDS, WORKERS = 5, (1, 2)
WARM_UP, STEPS = 4_096, 100_000
TASKS = {
    "CartPole-v1, environments in Rust": {"env": "CartPole-v1", "n_envs": 8},
    "Acrobot-v1, environments in Python": {"env": "Acrobot-v1", "n_envs": 8},
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
        ratio = math.exp(sum(ratios) / len(ratios))
        ends = f"{math.exp(min(ratios)):.2f} to {math.exp(max(ratios)):.2f}"
        print(
            f"{task}: {sorted(one)[ROUNDS // 2]:,.0f} and {sorted(two)[ROUNDS // 2]:,.0f} steps/s"
        )
        print(f"  two processes / one: {ratio:.2f} ({ends} over {ROUNDS} rounds)")


if __name__ == "__main__":
    train(sys.argv[1]) if len(sys.argv) > 1 else main()
