"""This checkout's library, called as a user calls it. `form` "copy" is the default; "kept" writes
results into arrays that are kept between calls (`copy=False`)."""

import inspect
from functools import partial
from itertools import chain

import inputs
import numpy as np
from arm import FORM, KNOWN, Unsupported, drawing, function, rolling, stepping, storing

import rlox

GAMMA, GAE_LAMBDA = inputs.GAMMA, inputs.GAE_LAMBDA


def _result(call):
    """The call; in the form "kept" its results go into the arrays of the last call."""
    if FORM == "copy":
        return call
    takes = inspect.signature(call).parameters
    if "copy" in takes:
        return partial(call, copy=False)
    if "out" in takes:
        return partial(call, out=call())
    raise Unsupported("has no copy=False")


def _env(n_envs):
    return rlox.VecEnv("CartPole-v1", n_envs, seed=0, copy=FORM == "copy")


def gae(n):
    *columns, last = inputs.rollout(n)
    call = partial(rlox.compute_gae, *columns, float(last), GAMMA, GAE_LAMBDA)
    return function(_result(call), "advantages", "returns")


def gae_batched(n_envs, n_steps, dtype):
    call = partial(
        rlox.compute_gae_batched, *inputs.rollout(n_steps, n_envs, dtype=dtype), GAMMA, GAE_LAMBDA
    )
    return function(_result(call), "advantages", "returns")


def vtrace(n, dtype):
    *columns, last = inputs.rollout(n, dtype=dtype)
    call = partial(
        rlox.compute_vtrace, inputs.log_rhos(n, dtype), *columns, float(last), GAMMA, 1.0, 1.0
    )
    return function(_result(call), "vs", "pg_advantages")


def token_kl(rows, tokens, dtype):
    call = partial(rlox.compute_token_kl, *inputs.log_probs(rows, tokens, dtype))
    return function(_result(call), "kl")


def group_advantages(groups, size):
    call = partial(rlox.compute_group_advantages, inputs.group_rewards(groups, size), size)
    return function(_result(call), "advantages")


def _filled(kind, n, obs_dim, **settings):
    """A buffer that was filled twice. A ring that stores an observation once does not touch all its
    memory in the first round, and a later timing would include the system's page faults."""
    buffer = kind(n, obs_dim, 1, **settings)
    for columns in chain(inputs.chunks(n, obs_dim), inputs.chunks(n, obs_dim)):
        buffer.push_batch(*columns)
    return buffer


def _known(obs_dim, push):
    """The first transitions as `push` stored them in a new buffer."""
    buffer = rlox.ReplayBuffer(KNOWN, obs_dim, 1)
    push(buffer)
    return buffer.sample(KNOWN)


def push(obs_dim, steps):
    if FORM != "copy":
        raise Unsupported("returns nothing")
    buffer = _filled(rlox.ReplayBuffer, inputs.capacity(obs_dim), obs_dim)

    def known(buffer):
        for number in range(KNOWN):
            buffer.push(*inputs.one(obs_dim, number))

    call = partial(buffer.push, *inputs.one(obs_dim, steps=steps))
    if steps == "only apart":
        for _ in range(inputs.capacity(obs_dim)):
            call()
    return storing(call, lambda: _known(obs_dim, known))


def push_batch(rows, obs_dim):
    if FORM != "copy":
        raise Unsupported("returns nothing")
    buffer = _filled(rlox.ReplayBuffer, inputs.capacity(obs_dim), obs_dim)

    def known(buffer):
        for columns in inputs.chunks(KNOWN, obs_dim, rows):
            buffer.push_batch(*columns)

    call = partial(buffer.push_batch, *inputs.transitions(0, rows, obs_dim))
    return storing(call, lambda: _known(obs_dim, known))


def sample(batch, obs_dim):
    buffer = _filled(rlox.ReplayBuffer, inputs.capacity(obs_dim), obs_dim)
    return drawing(_result(partial(buffer.sample, batch)))


def per_sample(batch, capacity):
    buffer = _filled(rlox.PrioritizedReplayBuffer, capacity, 4, alpha=0.6, beta=0.4)
    buffer.update_priorities(np.arange(capacity), inputs.priorities(capacity))
    return drawing(_result(partial(buffer.sample, batch)))


def env_step(n_envs):
    env = _env(n_envs)
    obs, _ = env.reset(seed=0)
    return stepping(env.step, obs, n_envs)


def rollout(n_envs, n_steps):
    env = _env(n_envs)
    kept = None
    if FORM == "kept":
        kept = tuple(np.empty((n_steps, n_envs), np.float32) for _ in range(2))

    def gae(*columns):
        return rlox.compute_gae_batched(*columns, GAMMA, GAE_LAMBDA, out=kept)

    return rolling(lambda: env.reset()[0], env.step, gae, n_envs, n_steps)
