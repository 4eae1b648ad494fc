"""Stable-Baselines3; with `form` "sbx", SBX: the same interface over JAX."""

import importlib
import time

from run import JOB, Run, limit_torch

limit_torch()

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

compiling: list[tuple[float, float]] = []  # begins and ends, by time.perf_counter


def watch_compiling() -> None:
    """Record when JAX traces, lowers and compiles. Such times may lie inside one another."""
    import jax

    def on_event(event: str, seconds: float, **_) -> None:
        if event.startswith("/jax/core/compile/"):
            now = time.perf_counter()
            compiling.append((now - seconds, now))

    jax.monitoring.register_event_duration_secs_listener(on_event)


def covered(spans: list[tuple[float, float]]) -> float:
    """The length of the union of `spans`."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


class Episodes(BaseCallback):
    """Logs the episodes that the environments' monitors report."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.run.episode(self.num_timesteps, info["episode"]["r"])
        return True


def main() -> None:
    if JOB["form"] == "sbx":
        watch_compiling()
        library = importlib.import_module("sbx")
    else:
        library = importlib.import_module("stable_baselines3")
    algo = JOB["algo"]
    names = {
        "ppo": ("n_steps", "batch_size", "n_epochs", "gae_lambda", "clip_range", "vf_coef"),
        "sac": ("learning_starts", "batch_size", "buffer_size", "tau"),
    }[algo] + ("learning_rate", "gamma", "ent_coef", "seed")
    settings = {name: JOB[name] for name in names}
    if algo == "ppo":
        settings["max_grad_norm"] = JOB["max_grad_norm"]
    env = make_vec_env(JOB["env_id"], JOB["n_envs"], seed=JOB["seed"])
    trainer = getattr(library, algo.upper())
    model = trainer("MlpPolicy", env, device="cpu", **settings)

    run = Run()
    episodes = Episodes(run)
    compiling.clear()
    run.begin()
    model.learn(JOB["total_timesteps"], callback=episodes)
    run.end(model.num_timesteps, covered(compiling))


if __name__ == "__main__":
    main()
