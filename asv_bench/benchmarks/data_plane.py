"""The data plane as training calls it, from Python.

State is built once per process by cached functions, which check the result before anything is
timed. A `setup` method would make asv time one cold call a sample.
"""

import inspect
from functools import cache

import numpy as np

import rlox
from benchmarks.inputs import (
    log_probs,
    off_policy,
    one_transition,
    priorities,
    pushes,
    rollout,
    rollouts,
    transitions,
)
from benchmarks.skip import skip_unless


class Paired:
    """How every benchmark here is sampled: in four rounds, interleaved with the other commit."""

    rounds = 4
    repeat = (10, 20, 5.0)


@cache
def gae_case(n):
    """With lambda = 0, advantages are the TD errors."""
    rewards, values, dones = rollout(n)
    td = rewards + 0.99 * np.append(values, 0.5)[1:] * (1 - dones) - values
    advantages, returns = rlox.compute_gae(rewards, values, dones, 0.5, 0.99, 0.0)
    np.testing.assert_allclose(advantages, td, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(returns, td + values, rtol=1e-6, atol=1e-10)
    return rewards, values, dones, 0.5, 0.99, 0.95


class Gae(Paired):
    params = (128, 2_048, 32_768)
    param_names = ("n_steps",)

    def time_gae(self, n_steps):
        rlox.compute_gae(*gae_case(n_steps))


@cache
def gae_batched_case(n_envs, n_steps, layout):
    """Each environment's advantages are those of its own sequence."""
    *columns, last_values = rollouts(n_envs, n_steps, layout)
    arguments = *columns, last_values, 0.99, 0.95, layout
    one = 0 if layout == "env_major" else (slice(None), 0)
    first = rlox.compute_gae(*(x[one].copy() for x in columns), last_values[0], 0.99, 0.95)[0]
    found = rlox.compute_gae_batched(*arguments)[0][one]
    np.testing.assert_allclose(found, first, rtol=1e-6, atol=1e-10)
    return arguments


class GaeBatched(Paired):
    params = ([(8, 128), (256, 2_048)], ["step_major", "env_major"])
    param_names = ("n_envs x n_steps", "layout")

    def time_gae_batched(self, size, layout):
        rlox.compute_gae_batched(*gae_batched_case(*size, layout))


@cache
def vtrace_case(n):
    """On-policy, the targets are the returns of GAE with lambda = 1."""
    log_rhos, rewards, values, dones = off_policy(n)
    vs, _ = rlox.compute_vtrace(np.zeros(n), rewards, values, dones, 0.5, 0.99, 1.0, 1.0)
    returns = rlox.compute_gae(rewards, values, dones, 0.5, 0.99, 1.0)[1]
    np.testing.assert_allclose(vs, returns, rtol=1e-6, atol=1e-10)
    return log_rhos, rewards, values, dones, 0.5, 0.99, 1.0, 1.0


class Vtrace(Paired):
    params = (128, 10_000)
    param_names = ("n_steps",)

    def time_vtrace(self, n_steps):
        rlox.compute_vtrace(*vtrace_case(n_steps))


@cache
def token_kl_case(rows, n_tokens):
    policy, ref = log_probs(rows, n_tokens)
    d = ref - policy
    found = rlox.compute_token_kl(policy, ref)
    np.testing.assert_allclose(found, (np.exp(d) - d - 1).sum(axis=1), rtol=1e-6, atol=1e-10)
    return policy, ref


class TokenKl(Paired):
    params = ([(1, 128), (1, 2_048), (32, 64), (32, 2_048)],)
    param_names = ("rows x tokens",)

    def time_token_kl(self, size):
        rlox.compute_token_kl(*token_kl_case(*size))


@cache
def group_case(groups, size):
    rewards = rollout(groups * size)[0]
    rows = rewards.reshape(groups, size)
    expected = (rows - rows.mean(1, keepdims=True)) / (rows.std(1, keepdims=True) + 1e-8)
    found = rlox.compute_group_advantages(rewards, size)
    np.testing.assert_allclose(found, expected.ravel(), rtol=1e-6, atol=1e-10)
    return rewards, size


class GroupAdvantages(Paired):
    params = ([(16, 4), (256, 16), (1_024, 32)],)
    param_names = ("groups x size",)

    def time_group_advantages(self, size):
        rlox.compute_group_advantages(*group_case(*size))


CAPACITY = {4: 100_000, 28_224: 1_000}


@cache
def full_buffer(kind, obs_dim):
    buffer = getattr(rlox, kind)(CAPACITY[obs_dim], obs_dim, 1)
    for _ in range(CAPACITY[obs_dim] // 1_000):
        buffer.push_batch(*transitions(1_000, obs_dim))
    sample = buffer.sample(32)
    np.testing.assert_array_equal(sample["obs"][:, 0], sample["reward"])
    assert len(buffer) == CAPACITY[obs_dim]
    return buffer


class Push(Paired):
    params = (4, 28_224)
    param_names = ("obs_dim",)

    def time_push(self, obs_dim):
        full_buffer("ReplayBuffer", obs_dim).push(*one_transition(obs_dim))


class PushBatch(Paired):
    params = (8, 64)
    param_names = ("n",)

    def time_push_batch(self, n):
        full_buffer("ReplayBuffer", 4).push_batch(*transitions(n, 4))


class Sample(Paired):
    params = ([(32, 4), (256, 4), (1_024, 4), (32, 28_224)],)
    param_names = ("batch_size x obs_dim",)

    def time_sample(self, size):
        full_buffer("ReplayBuffer", size[1]).sample(size[0])


@cache
def reused_buffer(obs_dim):
    parameters = inspect.signature(rlox.ReplayBuffer.sample).parameters
    skip_unless("copy" in parameters, "samples are new arrays in every call of this build")
    return full_buffer("ReplayBuffer", obs_dim)


class SampleReused(Paired):
    params = Sample.params
    param_names = Sample.param_names

    def time_sample(self, size):
        reused_buffer(size[1]).sample(size[0], copy=False)


@cache
def priority_update():
    sample = full_buffer("PrioritizedReplayBuffer", 4).sample(256, seed=0)
    return sample["indices"], priorities(256)


class Prioritized(Paired):
    def time_sample_256(self):
        full_buffer("PrioritizedReplayBuffer", 4).sample(256)

    def time_update_256(self):
        full_buffer("PrioritizedReplayBuffer", 4).update_priorities(*priority_update())


@cache
def started_env(n_envs):
    env = rlox.VecEnv("CartPole-v1", n_envs, seed=0)
    env.reset(seed=0)
    actions = pushes(n_envs)
    assert (env.step(actions)[1] == 1).all()
    return env, actions


class EnvStep(Paired):
    params = (1, 8, 64)
    param_names = ("n_envs",)

    def time_step(self, n_envs):
        env, actions = started_env(n_envs)
        env.step(actions)
