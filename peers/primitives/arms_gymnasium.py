"""Gymnasium. `form` "sync" steps environments one after the other, "vector" is Gymnasium's own
CartPole in NumPy, "env" is one environment without a vector environment."""

from functools import partial

import gymnasium
import numpy as np
from arm import FORM, Unsupported, rolling, stepping
from arms_numpy import scan
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class _One:
    """An environment that is reset when its episode ends."""

    def __init__(self, n_envs: int) -> None:
        if n_envs != 1:
            raise Unsupported("is one environment")
        self._env = gymnasium.make("CartPole-v1")
        self.reset = self._env.reset

    def step(self, action):
        obs, reward, terminated, truncated, info = self._env.step(action)
        if terminated or truncated:
            obs, info = self._env.reset()
        return obs, reward, terminated, truncated, info


def _env(n_envs):
    if FORM == "env":
        return _One(n_envs)
    if FORM == "vector":
        return CartPoleVectorEnv(n_envs)
    thunks = [partial(gymnasium.make, "CartPole-v1")] * n_envs
    return SyncVectorEnv(thunks, autoreset_mode=AutoresetMode.SAME_STEP)


def env_step(n_envs):
    env = _env(n_envs)
    obs, _ = env.reset(seed=0)
    convert = (lambda actions: int(actions[0])) if FORM == "env" else np.asarray
    return stepping(env.step, obs, n_envs, convert)


def rollout(n_envs, n_steps):
    if FORM == "env":
        raise Unsupported("is one environment")
    env = _env(n_envs)
    return rolling(lambda: env.reset()[0], env.step, scan, n_envs, n_steps)
