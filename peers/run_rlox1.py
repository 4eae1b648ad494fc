"""The public package rlox 1.2.0; with `form` "compiled", with its `compile=True`."""

from run import JOB, Run, limit_torch, torch_compile_s

limit_torch()

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from rlox.algorithms.ppo import PPO  # noqa: E402
from rlox.algorithms.sac import SAC  # noqa: E402
from rlox.callbacks import Callback  # noqa: E402


class Episodes(Callback):
    """Books the episodes that PPO's collector has seen end."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run, self.trainer, self.steps = run, None, 0

    def on_rollout_end(self, **_) -> None:
        self.steps += JOB["n_envs"] * JOB["n_steps"]
        seen = len(self.run.episodes)
        for episode_return in self.trainer.collector.episode_rewards[seen:]:
            self.run.episode(self.steps, episode_return)


class Watched(gymnasium.Wrapper):
    """Books the episodes of SAC's one environment."""

    def __init__(self, env, run: Run) -> None:
        super().__init__(env)
        self.run, self.steps, self.sum = run, 0, 0.0

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        self.sum += float(reward)
        if terminated or truncated:
            self.run.episode(self.steps, self.sum)
            self.sum = 0.0
        return obs, reward, terminated, truncated, info


def ppo(run: Run):
    """Its PPO, with its callback."""
    episodes = Episodes(run)
    trainer = PPO(
        JOB["env_id"],
        n_envs=JOB["n_envs"],
        seed=JOB["seed"],
        callbacks=[episodes],
        compile=JOB["form"] == "compiled",
        clip_eps=JOB["clip_range"],
        clip_vloss=False,
        anneal_lr=False,
        normalize_obs=False,
        normalize_rewards=False,
        normalize_advantages=True,
        **{
            name: JOB[name]
            for name in (
                "n_steps",
                "n_epochs",
                "batch_size",
                "learning_rate",
                "vf_coef",
                "ent_coef",
                "max_grad_norm",
                "gamma",
                "gae_lambda",
            )
        },
    )
    episodes.trainer = trainer
    return trainer


def sac(run: Run):
    """Its SAC, in an environment that is watched."""
    env = Watched(gymnasium.make(JOB["env_id"]), run)
    env.action_space.seed(JOB["seed"])
    env.reset(seed=JOB["seed"])
    names = ("buffer_size", "learning_rate", "batch_size", "tau", "gamma", "learning_starts")
    return SAC(env, compile=JOB["form"] == "compiled", **{name: JOB[name] for name in names})


def main() -> None:
    torch.manual_seed(JOB["seed"])  # its `seed` does not
    np.random.seed(JOB["seed"])  # noqa: NPY002
    run = Run()
    trainer = {"ppo": ppo, "sac": sac}[JOB["algo"]](run)
    run.begin()
    trainer.train(JOB["total_timesteps"])
    steps = JOB["total_timesteps"]
    if JOB["algo"] == "ppo":
        rollout = JOB["n_envs"] * JOB["n_steps"]
        steps = max(1, steps // rollout) * rollout
    run.end(steps, torch_compile_s())


if __name__ == "__main__":
    main()
