"""Trains rlox and Stable-Baselines3 side by side, with the same hyperparameters and seeds.

`python tests/learning/side_by_side.py ppo sac --out folder` prints the table and writes
`learning_<algo>.json` and `.md`; two trainings run at a time, each on one thread.
"""

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

EPISODES = 50  # a training's figure is the mean return of its last episodes
TASKS = {
    "ppo": {
        "env_id": "CartPole-v1",
        "total_timesteps": 50_000,
        "n_envs": 8,
        "hyperparameters": {"n_steps": 128, "batch_size": 512, "n_epochs": 4},
    },
    "sac": {
        "env_id": "Pendulum-v1",
        "total_timesteps": 20_000,
        "n_envs": 1,
        "hyperparameters": {"learning_starts": 1000, "batch_size": 256},
    },
}
ENGINES = ("rlox", "sb3")


def train(algo: str, engine: str, seed: int) -> float:
    """Mean return of the last `EPISODES` episodes of one training."""
    import torch

    torch.set_num_threads(1)
    task = TASKS[algo]
    hyperparameters = task["hyperparameters"] | {"seed": seed, "device": "cpu"}
    if engine == "rlox":
        import rlox

        trainer = getattr(rlox, algo.upper())
        model = trainer(task["env_id"], n_envs=task["n_envs"], **hyperparameters)
        returns = model.learn(task["total_timesteps"]).episode_returns
    else:
        import stable_baselines3
        from stable_baselines3.common.env_util import make_vec_env

        env = make_vec_env(task["env_id"], task["n_envs"], seed=seed)
        trainer = getattr(stable_baselines3, algo.upper())
        model = trainer("MlpPolicy", env, **hyperparameters).learn(task["total_timesteps"])
        returns = [episode["r"] for episode in model.ep_info_buffer]
    assert len(returns) >= EPISODES
    return float(np.mean(returns[-EPISODES:]))


def random_return(env_id: str, episodes: int = 200) -> float:
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


def t_quantile(df: float, p: float = 0.975) -> float:
    """Student's t, by summing its density: enough digits for an interval, and no scipy."""
    x = np.linspace(0, 500, 2_000_001)
    density = (1 + x * x / df) ** (-(df + 1) / 2)
    cumulated = np.cumsum(density)
    return float(np.interp(p - 0.5, 0.5 * cumulated / cumulated[-1], x))


def mean_interval(values: list[float]) -> tuple[float, float]:
    """95 % interval of a mean."""
    half = t_quantile(len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values) - half), float(np.mean(values) + half)


def welch_interval(a: list[float], b: list[float]) -> tuple[float, float]:
    """95 % interval of mean(a) - mean(b), the variances being unequal (Welch 1947)."""
    va, vb = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = t_quantile(df) * math.sqrt(va + vb)
    difference = float(np.mean(a) - np.mean(b))
    return difference - half, difference + half


def compare(algo: str, n_seeds: int = 5) -> dict:
    """Train both engines with every seed; their returns and the interval of the difference."""
    jobs = [(engine, seed) for seed in range(n_seeds) for engine in ENGINES]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(train, algo, engine, seed) for engine, seed in jobs]
        returns = {engine: [0.0] * n_seeds for engine in ENGINES}
        for (engine, seed), future in zip(jobs, futures, strict=True):
            returns[engine][seed] = future.result()
            print(f"{algo} {engine} seed {seed}: {returns[engine][seed]:.1f}", flush=True)
    return {
        "algo": algo,
        **TASKS[algo],
        "returns": returns,
        "intervals": {engine: mean_interval(returns[engine]) for engine in ENGINES},
        "difference": welch_interval(returns["rlox"], returns["sb3"]),
        "random": random_return(TASKS[algo]["env_id"]),
    }


def table(result: dict) -> str:
    """The comparison as Markdown."""
    seeds = range(len(result["returns"]["rlox"]))
    lines = [
        f"{result['algo'].upper()}, {result['env_id']}, {result['total_timesteps']:,} steps, "
        f"{result['n_envs']} envs, {result['hyperparameters']}: "
        f"mean return of the last {EPISODES} episodes of training.",
        "",
        f"| | {' | '.join(f'seed {seed}' for seed in seeds)} | mean (95 %) |",
        f"|---|{'---|' * len(seeds)}---|",
    ]
    for engine in ENGINES:
        values, (low, high) = result["returns"][engine], result["intervals"][engine]
        cells = " | ".join(f"{value:.1f}" for value in values)
        lines.append(f"| {engine} | {cells} | {np.mean(values):.1f} ({low:.1f} to {high:.1f}) |")
    low, high = result["difference"]
    lines += [
        f"| random policy | {' | ' * (len(seeds) - 1)} | {result['random']:.1f} |",
        "",
        f"rlox - sb3: 95 % interval {low:+.1f} to {high:+.1f} (Welch).",
    ]
    return "\n".join(lines)


def write(result: dict, folder: Path) -> None:
    """`learning_<algo>.json` and `.md` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"learning_{result['algo']}"
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / f"{name}.md").write_text(table(result) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algos", nargs="+", choices=TASKS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    for algo in arguments.algos:
        result = compare(algo, arguments.seeds)
        print(table(result), flush=True)
        if arguments.out:
            write(result, arguments.out)
