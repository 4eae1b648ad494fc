"""rejax: PPO and gymnax's environments, compiled into one JAX program."""

from run import JOB, JaxCompiling, Run

compiling = JaxCompiling()

import gymnax  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from gymnax.wrappers.purerl import LogWrapper  # noqa: E402
from rejax import PPO  # noqa: E402


class Logged(LogWrapper):
    """Keeps returns, and need not be copied with PPO's settings: a copy of `LogWrapper` would look
    for its environment without end."""

    def __deepcopy__(self, memo):
        return self


def latest_returns(_, state, rng):
    """Of each environment the return of the latest episode that has ended, and the steps since."""
    return state.env_state.returned_episode_returns, state.env_state.episode_lengths


def main() -> None:
    env, params = gymnax.make(JOB["env_id"])
    rollout = JOB["n_envs"] * JOB["n_steps"]
    model = PPO.create(
        env=Logged(env),
        env_params=params,
        eval_freq=rollout,
        skip_initial_evaluation=True,
        total_timesteps=JOB["total_timesteps"],
        num_envs=JOB["n_envs"],
        num_steps=JOB["n_steps"],
        num_epochs=JOB["n_epochs"],
        num_minibatches=rollout // JOB["batch_size"],
        learning_rate=JOB["learning_rate"],
        gamma=JOB["gamma"],
        gae_lambda=JOB["gae_lambda"],
        clip_eps=JOB["clip_range"],
        vf_coef=JOB["vf_coef"],
        ent_coef=JOB["ent_coef"],
        max_grad_norm=JOB["max_grad_norm"],
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (64, 64)},
    ).replace(eval_callback=latest_returns)
    run = Run()
    run.begin()
    state, returns = jax.block_until_ready(jax.jit(model.train)(jax.random.key(JOB["seed"])))
    # Of the episodes of a rollout, the last one in each environment is known, and all only now.
    known, since = map(np.asarray, returns)
    new = since < JOB["n_steps"]  # one has ended in this rollout, perhaps with the same return
    for number, index in zip(*new.nonzero(), strict=True):
        run.episode((int(number) + 1) * rollout, known[number, index])
    run.end(int(state.global_step), compiling.since(run))


if __name__ == "__main__":
    main()
