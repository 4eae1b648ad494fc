"""The common part of all drivers: reads the job, counts steps and episodes, writes the outcome.

A driver is started as `python run_<peer>.py JOB`. JOB is JSON with the hyperparameters of the race,
`seed`, `threads`, `form` (in which of its forms the peer runs) and `out`, the file for the outcome.
It runs in the peer's environment, so it may import nothing of rlox but what it races.
"""

import json
import os
import sys
import time
from pathlib import Path

JOB = json.loads(sys.argv[1])

# Set before any library that reads them is imported. XLA takes the size of its pool from NPROC.
for _name in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{_name}_NUM_THREADS"] = str(JOB["threads"])
os.environ["NPROC"] = str(JOB["threads"])


_OF_ALGO = {
    "ppo": (
        "n_steps", "batch_size", "n_epochs", "gae_lambda", "clip_range", "vf_coef", "max_grad_norm",
    ),
    "sac": ("learning_starts", "batch_size", "buffer_size", "tau"),
}  # fmt: skip


def hyperparameters() -> dict:
    """Those of the job by Stable-Baselines3's names, which are this library's too."""
    names = (*_OF_ALGO[JOB["algo"]], "learning_rate", "gamma", "ent_coef", "seed")
    return {name: JOB[name] for name in names}


class Run:
    """The log of one training run. Everything before `begin` is setting up, and does not count."""

    def __init__(self) -> None:
        self.episodes: list[tuple[float, int, float]] = []  # seconds, environment steps, return
        self.start = 0.0  # by time.perf_counter

    def begin(self, at: float | None = None) -> None:
        """Training starts now, or started when `time.perf_counter()` was `at`. Called before any
        episode is logged."""
        self.start = time.perf_counter() if at is None else at

    def episode(self, steps: int, episode_return: float) -> None:
        """An episode has ended, `steps` environment steps after `begin`."""
        self.episodes.append((time.perf_counter() - self.start, steps, float(episode_return)))

    def rollout(self, ended, returns, steps: int) -> None:
        """Log the episodes of a rollout that is reported as a whole, arrays `[n_steps, n_envs]`,
        the last of `steps` environment steps.

        Each gets the step at which it ended, as if steps were reported one by one. Its time is now,
        since it could not be known earlier.
        """
        n_envs = ended.shape[1]
        for step, env in zip(*ended.nonzero(), strict=True):
            self.episode(steps - ended.size + (int(step) + 1) * n_envs, returns[step, env])

    def end(self, steps: int, compile_s: float = 0.0) -> None:
        """Training has ended: write the outcome, completely or not at all.

        `compile_s` is the time of compilers within the training, by their own clocks.
        """
        outcome = {
            "train_s": time.perf_counter() - self.start,
            "compile_s": compile_s,
            "steps": steps,
            "episodes": self.episodes,
        }
        out = Path(JOB["out"])
        part = out.with_suffix(".part")
        part.write_text(json.dumps(outcome))
        part.rename(out)


def pixels() -> bool:
    """Whether the observations of the race are images of an Atari game, for the network of Mnih et
    al. (2015)."""
    return JOB.get("policy") == "CnnPolicy"


def atari_envs():
    """ale-py's own vector environment of the game, with the frames and rewards that Mnih et al.
    (2015) take: stacks of four, 84 pixels wide and high, signs of rewards."""
    from ale_py.vector_env import AtariVectorEnv
    from gymnasium.vector import AutoresetMode

    game = JOB["env_id"].removesuffix("NoFrameskip-v4").lower()
    mode = AutoresetMode.SAME_STEP
    return AtariVectorEnv(game, JOB["n_envs"], num_threads=JOB["threads"], autoreset_mode=mode)


def convolutions():
    """The network of Mnih et al. (2015) for such frames, up to its layer of 512."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
    )  # fmt: skip


class Returns:
    """Returns of the episodes of a vector environment, summed from its rewards."""

    def __init__(self, run: Run, n_envs: int) -> None:
        self.run, self.sums = run, [0.0] * n_envs

    def add(self, rewards, dones, steps: int) -> None:
        """Add a step of all environments, the last of `steps` environment steps."""
        for i, reward in enumerate(rewards.tolist()):
            self.sums[i] += reward
        if dones.any():
            for i in dones.nonzero()[0]:
                self.run.episode(steps, self.sums[i])
                self.sums[i] = 0.0


def limit_torch() -> None:
    """Limit torch to the job's threads."""
    import torch

    torch.set_num_threads(JOB["threads"])


def torch_compile_s() -> float:
    """Seconds that torch.compile took in this process. Gradients are compiled when they are first
    asked for."""
    if "torch._dynamo.utils" not in sys.modules:
        return 0.0
    from torch._dynamo.utils import calculate_time_spent

    return calculate_time_spent()["total_wall_time"]


class JaxCompiling:
    """The times at which JAX traces, lowers and compiles. Such times may lie inside one another."""

    def __init__(self) -> None:
        import jax

        self._spans: list[tuple[float, float]] = []  # begins and ends, by time.perf_counter
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def _heard(self, event: str, seconds: float, **_) -> None:
        if event.startswith("/jax/core/compile/"):
            now = time.perf_counter()
            self._spans.append((now - seconds, now))

    def since(self, run: Run) -> float:
        """Seconds that they cover since the run began."""
        total, reached = 0.0, run.start
        for begin, end in sorted(self._spans):
            total += max(0.0, end - max(begin, reached))
            reached = max(reached, end)
        return total
