"""`python leveling.py ACTIVITY SECONDS`: does a kind of work in rounds and prints as JSON what
grew.

After each round resident memory, threads and open files are read. Their levels in the last third
must not lie above those in the second; the first third is warm-up.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rlox
from rlox import _core

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SLACK_MIB = 1.5  # of an allocator that gives nothing back
_SLACK = 0.01  # of all that is held
_LEAST_ROUNDS = 9
_ENDING_S = 2.0  # at most, until a thread that was told to end has got a core to end on


def level(threads: float = math.inf) -> dict[str, float]:
    """The present levels of this process. What is above `threads` gets time to end."""
    gc.collect()
    until = time.monotonic() + _ENDING_S
    while _entries("task") > threads and time.monotonic() < until:
        time.sleep(0.001)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20
    return {"MiB": resident, "threads": _entries("task"), "files": _entries("fd")}


def _entries(name: str) -> int:
    return len(os.listdir(f"/proc/self/{name}"))  # noqa: PTH208


def buffers() -> None:
    """Buffers filled, sampled and dropped, with and without a copy."""
    rows = np.zeros((512, 8), np.float32)
    actions, rewards, flags = (
        np.zeros((512, 2), np.float32),
        np.ones(512, np.float32),
        np.zeros(512, bool),
    )
    for kind in (rlox.ReplayBuffer, rlox.PrioritizedReplayBuffer):
        buffer = kind(2048, 8, 2, seed=1)
        for _ in range(8):
            buffer.push_batch(rows, rows, actions, rewards, flags, flags)
        for copy in (True, False) * 20:
            batch = (
                buffer.sample(256, copy=copy) if kind is rlox.ReplayBuffer else buffer.sample(256)
            )
            del batch


def environments() -> None:
    """Environments made, stepped and closed, or only dropped."""
    for env_id, n in (("CartPole-v1", 8), ("Pendulum-v1", 4), ("Acrobot-v1", 2)):
        for closes in (True, False):
            env = rlox.VecEnv(env_id, n, seed=0)
            env.reset(seed=0)
            for _ in range(50):
                env.step(env.action_space.sample())
            if closes:
                env.close()


def steps() -> None:
    """One environment, stepped again and again."""
    if not hasattr(steps, "env"):
        steps.env = rlox.VecEnv("CartPole-v1", 8, seed=0)
        steps.env.reset(seed=0)
    for _ in range(3000):
        steps.env.step(steps.env.action_space.sample())


def samples() -> None:
    """One buffer, sampled again and again, with new priorities."""
    if not hasattr(samples, "buffer"):
        samples.buffer = rlox.PrioritizedReplayBuffer(4096, 8, 2, seed=1)
        rows = np.random.default_rng(0).normal(size=(4096, 8)).astype(np.float32)
        samples.buffer.push_batch(
            rows, rows, rows[:, :2].copy(), rows[:, 0].copy(), rows[:, 0] > 9, rows[:, 0] > 9
        )
    for _ in range(300):
        batch = samples.buffer.sample(256)
        samples.buffer.update_priorities(batch["indices"], np.abs(batch["reward"]) + 0.1)


def collectors() -> None:
    """Collectors in the background, closed, or only dropped with their environments."""
    for closes in (True, False):
        env = _core.VecEnv("CartPole-v1", 4, 0)
        env.reset()
        collector = _core.AsyncCollector(
            env,
            lambda obs: (np.zeros(4, np.int64), np.zeros(4, np.float32), np.zeros(4, np.float32)),
            lambda obs: np.zeros(4, np.float32),
            8,
        )
        collector.start()
        collector.take()
        if closes:
            collector.close()


def spans() -> None:
    """Phases named and timed."""
    from rlox.timing import Timing, span

    timing = Timing("level")
    for number in range(3000):
        with timing.add_time("outer"), timing.add_time(f"inner {number % 7}"), span("named"):
            pass
    str(timing)


def ppo() -> None:
    """Trainers made, trained and dropped, one after another."""
    rlox.PPO("CartPole-v1", n_envs=4, n_steps=32, batch_size=64, seed=0).learn(512)


def ppo_async() -> None:
    """The same, with a thread that collects."""
    rlox.PPO("CartPole-v1", n_envs=4, n_steps=32, batch_size=64, seed=0, collector="async").learn(
        512
    )


def sac() -> None:
    """The same of SAC."""
    rlox.SAC("Pendulum-v1", seed=0, learning_starts=64, buffer_size=1000).learn(96)


def watched(does: Callable[[], None], seconds: float) -> tuple[int, list[str]]:
    """Rounds of work for some seconds; returns their number, and what grew, in words. If something
    seems to grow, it gets as much time again: a leak continues, while an allocator settles."""
    levels = [level()]
    for more in (seconds, 2 * seconds, 4 * seconds):
        until = time.monotonic() + more
        while time.monotonic() < until or len(levels) < _LEAST_ROUNDS:
            does()
            # The first round may start threads that stay.
            levels.append(level(levels[-1]["threads"] if len(levels) > 1 else math.inf))
        if not (found := grown(levels)):
            break
    return len(levels) - 1, found


def grown(levels: list[dict[str, float]]) -> list[str]:
    """What is higher in the last third than in the second, in words."""
    third = len(levels) // 3
    found = []
    for name in levels[0]:
        before = max(of[name] for of in levels[third : 2 * third])
        after = max(of[name] for of in levels[2 * third :])
        slack = _SLACK_MIB + _SLACK * before if name == "MiB" else 0
        if after > before + slack:
            found.append(f"{before:.1f} {name} became {after:.1f} in {len(levels) - 1} rounds")
    return found


if __name__ == "__main__":
    rounds, found = watched(globals()[sys.argv[1]], float(sys.argv[2]))
    print(json.dumps({"rounds": rounds, "grown": found}))
