"""The public package rlox 1.2.0."""

from functools import partial

import inputs
import numpy as np
from arm import KNOWN, Arm, Unsupported, drawing, function, rolling, stepping, storing

import rlox

GAMMA, GAE_LAMBDA = inputs.GAMMA, inputs.GAE_LAMBDA


def gae(n):
    *columns, last = inputs.rollout(n)
    call = partial(rlox.compute_gae, *columns, float(last), GAMMA, GAE_LAMBDA)
    return function(call, "advantages", "returns")


def _batched(rewards, values, dones, last):
    """Its batched GAE takes, and returns, one environment after the other."""
    kind = {"float32": rlox.compute_gae_batched_f32, "float64": rlox.compute_gae_batched}
    columns = [np.ascontiguousarray(x.T).reshape(-1) for x in (rewards, values, dones)]
    return partial(
        kind[rewards.dtype.name], *columns, last, len(rewards), gamma=GAMMA, lam=GAE_LAMBDA
    )


def _time_first(call, n_envs):
    return tuple(found.reshape(n_envs, -1).T for found in call())


def gae_batched(n_envs, n_steps, dtype):
    call = _batched(*inputs.rollout(n_steps, n_envs, dtype=dtype))
    arm = function(partial(_time_first, call, n_envs), "advantages", "returns")
    return arm._replace(call=call)


def vtrace(n, dtype):
    if dtype != "float32":
        raise Unsupported("takes float32 alone")
    *columns, last = inputs.rollout(n, dtype=dtype)
    call = partial(
        rlox.compute_vtrace, inputs.log_rhos(n, dtype), *columns, float(last), GAMMA, 1.0, 1.0
    )
    return function(call, "vs", "pg_advantages")


def token_kl(rows, tokens, dtype):
    name = "compute_batch_token_kl_schulman" + ("_f32" if dtype == "float32" else "")
    policy, reference = (x.reshape(-1) for x in inputs.log_probs(rows, tokens, dtype))
    # Its ratio is inverse to TRL's and ours.
    return function(partial(getattr(rlox, name), reference, policy, tokens), "kl")


def group_advantages(groups, size):
    call = partial(rlox.compute_batch_group_advantages, inputs.group_rewards(groups, size), size)
    return function(call, "advantages")


def _flat(columns):
    *numbers, terminated, truncated = columns
    flat = [np.ascontiguousarray(x, np.float32).reshape(-1) for x in numbers]
    return *flat, terminated.astype(np.uint8), truncated.astype(np.uint8)


def _filled(n, obs_dim):
    buffer = rlox.ReplayBuffer(n, obs_dim, 1)
    for columns in inputs.chunks(n, obs_dim):
        buffer.push_batch(*_flat(columns))
    return buffer


def _push(buffer, obs, next_obs, action, reward, terminated, truncated):
    return partial(buffer.push, obs, action, reward, terminated, truncated, next_obs)


def push(obs_dim, steps):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)

    def known():
        small = rlox.ReplayBuffer(KNOWN, obs_dim, 1)
        for number in range(KNOWN):
            _push(small, *inputs.one(obs_dim, number))()
        return _drawn(small, KNOWN, 0)

    return storing(_push(buffer, *inputs.one(obs_dim, steps=steps)), known)


def push_batch(rows, obs_dim):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)

    def known():
        small = rlox.ReplayBuffer(KNOWN, obs_dim, 1)
        for columns in inputs.chunks(KNOWN, obs_dim, rows):
            small.push_batch(*_flat(columns))
        return _drawn(small, KNOWN, 0)

    batch = _flat(inputs.transitions(0, rows, obs_dim))
    return storing(partial(buffer.push_batch, *batch), known)


def _drawn(buffer, batch, seed):
    names = {"actions": "action", "rewards": "reward"}
    return {names.get(name, name): column for name, column in buffer.sample(batch, seed).items()}


def _seeded(sample, batch):
    """Each of its draws needs a seed."""
    seed = 0

    def call():
        nonlocal seed
        seed += 1
        return sample(batch, seed)

    return call


def sample(batch, obs_dim):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    arm = drawing(_seeded(partial(_drawn, buffer), batch))
    return arm._replace(call=_seeded(buffer.sample, batch))


def per_sample(batch, capacity):
    buffer = rlox.PrioritizedReplayBuffer(capacity, 4, 1, alpha=0.6, beta=0.4)
    for columns in inputs.chunks(capacity, 4):
        for obs, next_obs, action, reward, terminated, truncated in zip(*columns, strict=True):
            numbers = (float(reward), bool(terminated), bool(truncated))
            buffer.push(obs, action, *numbers, next_obs)
    buffer.update_priorities(np.arange(capacity, dtype=np.uint64), inputs.priorities(capacity))
    arm = drawing(_seeded(partial(_drawn, buffer), batch))
    return arm._replace(call=_seeded(buffer.sample, batch))


def _read(stepped):
    return stepped["obs"], stepped["rewards"], stepped["terminated"] | stepped["truncated"]


def env_step(n_envs) -> Arm:
    env = rlox.VecEnv(n=n_envs, seed=0)
    obs = env.reset_all(seed=0)
    return stepping(env.step_all, obs, n_envs, np.ndarray.tolist, _read)


def rollout(n_envs, n_steps):
    env = rlox.VecEnv(n=n_envs, seed=0)

    def gae(*columns):
        return _time_first(_batched(*columns), n_envs)

    return rolling(env.reset_all, env.step_all, gae, n_envs, n_steps, np.ndarray.tolist, _read)
