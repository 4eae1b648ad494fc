"""The rlox of this checkout. `form` lists the ids of the optimisations to train with, or is
"default", or "default+R20" with R20 as well, or "python": as it comes, in Gymnasium's environments
even where this library has its own."""

from run import JOB, Run, atari_envs, hyperparameters, limit_torch, pixels

limit_torch()

from functools import partial  # noqa: E402

import gymnasium  # noqa: E402

import rlox  # noqa: E402
from rlox.learner.callbacks import BaseCallback  # noqa: E402
from rlox.learner.switchboard import ACCEPTED  # noqa: E402


class Episodes(BaseCallback):
    """Logs each episode at its step, as the drivers of other peers do.

    A rollout in one call into Rust is reported when it is over. Steps are logged as they were. The
    time is that of the report, when the return of an episode could first be known.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def on_step(self) -> bool:
        for episode_return in self.model.episode_returns[len(self.run.episodes) :]:
            self.run.episode(self.num_timesteps, episode_return)
        return True


def main() -> None:
    trainer = getattr(rlox, JOB["algo"].upper())
    settings = {**hyperparameters(), "n_envs": JOB["n_envs"]}
    if {"R6", "R11"} & set(JOB["form"]):
        del settings["n_envs"]  # these optimisations choose the number of environments
    optimizations = JOB["form"] if isinstance(JOB["form"], list) else None
    if optimizations is None and (more := JOB["form"].partition("+")[2]):
        optimizations = ACCEPTED | {more}
    task = [JOB["env_id"]]
    # Environments that are given are a number already.
    if pixels():
        task = ["CnnPolicy", atari_envs()]
        del settings["n_envs"]
    elif JOB["form"] == "python":
        task = [[partial(gymnasium.make, JOB["env_id"])] * settings.pop("n_envs")]
    model = trainer(*task, optimizations=optimizations, **settings)
    run = Run()
    episodes = Episodes(run)
    run.begin()
    model.learn(JOB["total_timesteps"], callback=episodes)
    run.end(model.num_timesteps, sum(found.seconds for found in model.compilations))


if __name__ == "__main__":
    main()
