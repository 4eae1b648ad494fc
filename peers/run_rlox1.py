"""The public package rlox 1.2.0; with `form` "compiled", with its `compile=True`."""

from run import JOB, Returns, Run, limit_torch, torch_compile_s

limit_torch()

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from rlox.algorithms.ppo import PPO  # noqa: E402
from rlox.algorithms.sac import SAC  # noqa: E402


class WatchedEnvs:
    """Logs the episodes of the environments that PPO's collector steps."""

    def __init__(self, envs, run: Run) -> None:
        self.envs, self.steps = envs, 0
        self.returns = Returns(run, JOB["n_envs"])

    def __getattr__(self, name):
        return getattr(self.envs, name)

    def step_all(self, actions):
        step = self.envs.step_all(actions)
        self.steps += JOB["n_envs"]
        self.returns.add(step["rewards"], step["terminated"] | step["truncated"], self.steps)
        return step


class Watched(gymnasium.Wrapper):
    """Logs the episodes of SAC's one environment."""

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
    """Its PPO, with logged environments."""
    trainer = PPO(
        JOB["env_id"],
        n_envs=JOB["n_envs"],
        seed=JOB["seed"],
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
    trainer.collector.env = WatchedEnvs(trainer.collector.env, run)
    return trainer


def sac(run: Run):
    """Its SAC, with a logged environment."""
    env = Watched(gymnasium.make(JOB["env_id"]), run)
    env.action_space.seed(JOB["seed"])
    env.reset(seed=JOB["seed"])
    names = ("buffer_size", "learning_rate", "batch_size", "tau", "gamma", "learning_starts")
    return SAC(env, compile=JOB["form"] == "compiled", **{name: JOB[name] for name in names})


def main() -> None:
    torch.manual_seed(JOB["seed"])  # its own argument `seed` does not do this
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
