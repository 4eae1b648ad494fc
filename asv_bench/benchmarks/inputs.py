"""The inputs of benchmarks: arrays drawn once in a process, read-only, and made without rlox.

Two builds that are timed against each other in one process share this module, and so the same
arrays. Otherwise the place of inputs in memory alone could cause a difference of several per cent.
"""

from functools import cache

import numpy as np


def frozen(*arrays):
    for array in arrays:
        array.setflags(write=False)
    return arrays


@cache
def rollout(*shape):
    """Rewards, values and dones, one in two hundred."""
    rng = np.random.default_rng(0)
    rewards, values = rng.standard_normal((2, *shape))
    return frozen(rewards, values, (rng.random(shape) < 0.005).astype(np.float64))


@cache
def rollouts(n_envs, n_steps, layout):
    """The same of many environments, [n_steps, n_envs] or its transpose, and their last values."""
    columns = rollout(n_steps, n_envs)
    if layout == "env_major":
        columns = [column.T.copy() for column in columns]
    return frozen(*columns, np.linspace(-1, 1, n_envs))


@cache
def off_policy(n):
    """A rollout with log-ratios of the target policy to the behaviour policy before it."""
    rewards, values, dones = rollout(n)
    return frozen(np.clip(values, -1, 1), rewards, values, dones)


@cache
def log_probs(rows, n_tokens):
    """Of a policy and of its reference."""
    policy = -np.abs(rollout(rows, n_tokens)[0])
    return frozen(policy, 0.9 * policy)


@cache
def transitions(n, obs_dim):
    """Columns of a replay buffer; the first element of an observation is its reward."""
    obs = np.zeros((n, obs_dim), np.float32)
    reward = np.arange(n, dtype=np.float32)
    obs[:, 0] = reward
    flags = np.zeros(n, np.bool_)
    return frozen(obs, obs, np.zeros((n, 1), np.float32), reward, flags, flags)


@cache
def one_transition(obs_dim):
    return *frozen(*(column[1].copy() for column in transitions(2, obs_dim)[:3])), 1.0, False, False


@cache
def priorities(n):
    return frozen(np.linspace(0.1, 2.0, n))[0]


@cache
def pushes(n_envs):
    """CartPole's actions: left, right, left, …"""
    return frozen(np.arange(n_envs) % 2)[0]
