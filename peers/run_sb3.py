"""Stable-Baselines3; with `form` "sbx", SBX: the same interface over JAX; with "processes", a
process for each environment."""

import importlib

from run import JOB, JaxCompiling, Run, hyperparameters, limit_torch, pixels

limit_torch()

from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402
from stable_baselines3.common.env_util import make_atari_env, make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack  # noqa: E402


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


def make_envs():
    """The environments; those of pixels are preprocessed as in Stable-Baselines3's own examples."""
    kind = SubprocVecEnv if JOB["form"] == "processes" else DummyVecEnv
    if not pixels():
        return make_vec_env(JOB["env_id"], JOB["n_envs"], seed=JOB["seed"], vec_env_cls=kind)
    game = f"ale_py:{JOB['env_id']}"  # whoever makes the game imports ale_py, in every process
    envs = make_atari_env(game, JOB["n_envs"], seed=JOB["seed"], vec_env_cls=kind)
    return VecFrameStack(envs, 4)


def main() -> None:
    compiling = JaxCompiling() if JOB["form"] == "sbx" else None
    if compiling:
        library = importlib.import_module("sbx")
    else:
        library = importlib.import_module("stable_baselines3")
    trainer = getattr(library, JOB["algo"].upper())
    policy = JOB.get("policy", "MlpPolicy")
    model = trainer(policy, make_envs(), device="cpu", **hyperparameters())

    run = Run()
    episodes = Episodes(run)
    run.begin()
    model.learn(JOB["total_timesteps"], callback=episodes)
    run.end(model.num_timesteps, compiling.since(run) if compiling else 0.0)


if __name__ == "__main__":
    main()
