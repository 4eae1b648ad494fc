"""Times one case of `rlox-opt peers threads` with one thread and with two, in turn, while other
programs are busy. It prints one line of JSON.

    python peers/sharing_worker.py CASE NEIGHBOURS PRIORITY SECONDS
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rlox import _core

_CHUNK_S = 0.04
_ADAM = {"betas": (0.9, 0.999), "eps": 1e-5}
_BUSY = "import os, sys\nos.nice(int(sys.argv[1]))\nwhile True: pass"
_LOWEST = 19


def _network(rng: np.random.Generator, *widths: int) -> Any:
    size = sum((rows + 1) * columns for rows, columns in pairwise(widths))
    return (0.1 * rng.standard_normal(size)).astype(np.float32)


def _moments(params: Any) -> tuple[Any, Any, Any]:
    return params, np.zeros_like(params), np.zeros_like(params)


def ppo_update(batch_size: int) -> Callable[[int], object]:
    """PPO's update of CartPole-v1's race, in minibatches of that size."""
    rng = np.random.default_rng(0)
    n = 1024
    actor, critic = (
        ([4, 64, 64, n_out], "tanh", _moments(_network(rng, 4, 64, 64, n_out))) for n_out in (2, 1)
    )
    obs = rng.standard_normal((n, 4)).astype(np.float32)
    numbers = [rng.standard_normal(n).astype(np.float32) for _ in range(2)]
    columns: Any = obs, rng.integers(0, 2, n), np.full(n, -math.log(2), np.float32), *numbers
    order = np.concatenate([rng.permutation(n) for _ in range(4)])
    return lambda threads: _core.ppo_update(
        actor, critic, None, columns, order, 0,
        batch_size=batch_size, clip_range=0.2, normalize_advantage=True, ent_coef=0.0,
        vf_coef=0.5, max_grad_norm=0.5, lr=1e-6, **_ADAM, threads=threads,
    )  # fmt: skip


def ppo_rollout(n_envs: int, n_steps: int) -> Callable[[int], object]:
    """A rollout of CartPole-v1."""
    rng = np.random.default_rng(0)
    env = _core.VecEnv("CartPole-v1", n_envs, 0)
    env.reset()
    actor, critic = (([4, 64, 64, n], "tanh", _network(rng, 4, 64, 64, n)) for n in (2, 1))
    running = np.zeros(n_envs), np.zeros(n_envs, np.int64)
    log_std = np.zeros(0, np.float32)
    return lambda threads: _core.collect_rollout(
        env, actor, critic, log_std, n_steps, 0.99, 0.95, (0, 0), running, None, threads
    )


def sac_update() -> Callable[[int], object]:
    """SAC's update of Pendulum-v1's race."""
    rng = np.random.default_rng(0)
    n, obs_dim, act_dim = 256, 3, 1
    widths = ([obs_dim, 256, 256, 2 * act_dim], [obs_dim + act_dim, 256, 256, 1])
    core = _core.SacUpdate((widths[0], "relu"), ((widths[1], "relu"), (widths[1], "relu")))
    critics = np.concatenate([_network(rng, *widths[1]) for _ in range(2)])
    actor, targets = _moments(_network(rng, *widths[0])), critics.copy()
    learners = actor, _moments(critics), targets, _moments(np.zeros(1, np.float32))
    batch: Any = {
        "obs": rng.standard_normal((n, obs_dim)).astype(np.float32),
        "next_obs": rng.standard_normal((n, obs_dim)).astype(np.float32),
        "action": np.tanh(rng.standard_normal((n, act_dim))).astype(np.float32),
        "reward": rng.standard_normal(n).astype(np.float32),
        "terminated": np.zeros(n, bool),
        "truncated": np.zeros(n, bool),
    }
    noise = rng.standard_normal((2, n, act_dim)).astype(np.float32)
    adam = 1e-6, 0.9, 0.999, 1e-8, 1
    return lambda threads: core.update(
        *learners, batch, noise,
        gamma=0.99, tau=0.005, target_entropy=-1.0, adams=(adam, adam, adam), threads=threads,
    )  # fmt: skip


CASES: dict[str, Callable[[], Callable[[int], object]]] = {
    "PPO's update, minibatches of 64": lambda: ppo_update(64),
    "PPO's update, minibatches of 256": lambda: ppo_update(256),
    "PPO's update, minibatches of 1,024": lambda: ppo_update(1024),
    "PPO's rollout, 64 environments": lambda: ppo_rollout(64, 128),
    "SAC's update, batches of 256": sac_update,
}


@contextmanager
def neighbours(number: int, priority: str) -> Iterator[None]:
    """In this block so many other processes compute without end."""
    nice = str(_LOWEST if priority == "lowest" else 0)
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY, nice]) for _ in range(number)]
    try:
        time.sleep(0.2 if number else 0)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def compare(call: Callable[[int], object], seconds: float) -> dict[str, float]:
    """The logarithm of two threads' speed over one thread's, from chunks of calls in turn; the
    seconds of a call with one thread; and how much of a core other programs used meanwhile."""

    def per_call(threads: int, calls: int) -> float:
        began = time.perf_counter()
        for _ in range(calls):
            call(threads)
        return (time.perf_counter() - began) / calls

    for threads in (1, 2):
        call(threads)
    calls = max(1, round(_CHUNK_S / per_call(1, 3)))
    began, idle, own = time.monotonic(), _idle_s(), time.process_time()
    ratios, ones = [], []
    while not ratios or time.monotonic() - began < seconds:
        first, two, again, last = (per_call(threads, calls) for threads in (1, 2, 2, 1))
        ratios.append(math.log((first + last) / (two + again)))
        ones.append((first + last) / 2)
    wall = time.monotonic() - began
    cores = os.cpu_count() or 1
    others = cores * wall - (_idle_s() - idle) - (time.process_time() - own)
    return {
        "log_ratio": statistics.fmean(ratios),
        "one_s": statistics.median(ones),
        "others": others / wall,
    }


def _idle_s() -> float:
    """Seconds for which the cores have been idle."""
    idle, waiting = Path("/proc/stat").read_text(encoding="ascii").split(maxsplit=6)[4:6]
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    case, number, priority, seconds = sys.argv[1:]
    with neighbours(int(number), priority):
        print(json.dumps(compare(CASES[case](), float(seconds))))
