"""envpool's environments through Gymnasium's interface; advantages by NumPy."""

import envpool
from arm import THREADS, rolling, stepping
from arms_numpy import scan


def _env(n_envs):
    return envpool.make(
        "CartPole-v1", env_type="gymnasium", num_envs=n_envs, num_threads=THREADS, seed=0
    )


def env_step(n_envs):
    env = _env(n_envs)
    return stepping(env.step, env.reset()[0], n_envs)


def rollout(n_envs, n_steps):
    env = _env(n_envs)
    return rolling(lambda: env.reset()[0], env.step, scan, n_envs, n_steps)
