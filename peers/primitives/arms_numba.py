"""Loops compiled by numba. `form` "plain" allocates its results, "out" writes them into arrays that
are kept, "fast" does the same with fast-math, which allows sums in any order, and "svml" the same
with the exponentials of Intel's SVML, which compute several at once. A rollout steps Gymnasium's
own vectorised CartPole.

Constants are given in the dtype of the arrays: with Python's numbers, numba computes float32 arrays
in float64."""

import ctypes
import sys
from functools import partial
from pathlib import Path

import inputs
import numpy as np
from arm import FORM, Arm, function, rolling
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

# Numba looks for SVML by its name alone, and SVML so for what it needs. That finds what is loaded.
for name in ("libintlc.so.5", "libsvml.so") if FORM == "svml" else ():
    ctypes.CDLL(str(Path(sys.prefix, "lib", name)), ctypes.RTLD_GLOBAL)
import numba  # noqa: E402

if FORM == "svml" and not numba.config.USING_SVML:
    raise RuntimeError(f"numba {numba.__version__} does not use SVML")

GAMMA, GAE_LAMBDA = inputs.GAMMA, inputs.GAE_LAMBDA
_compiled = numba.njit(fastmath=FORM in ("fast", "svml"))


@_compiled
def _fill_gae(rewards, values, dones, last, gamma, gae_lambda, advantages, returns):
    next_value, advantage = last, 0.0
    for t in range(len(rewards) - 1, -1, -1):
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * next_value * alive - values[t]
        advantage = delta + gamma * gae_lambda * alive * advantage
        advantages[t] = advantage
        returns[t] = advantage + values[t]
        next_value = values[t]


@_compiled
def _gae(rewards, values, dones, last, gamma, gae_lambda):
    advantages, returns = np.empty_like(rewards), np.empty_like(rewards)
    _fill_gae(rewards, values, dones, last, gamma, gae_lambda, advantages, returns)
    return advantages, returns


@_compiled
def _fill_gae_batched(rewards, values, dones, last, gamma, gae_lambda, one, advantages, returns):
    n_steps, n_envs = rewards.shape
    carried, next_values = np.zeros_like(last), last.copy()
    for t in range(n_steps - 1, -1, -1):
        for e in range(n_envs):
            alive = one - dones[t, e]
            delta = rewards[t, e] + gamma * next_values[e] * alive - values[t, e]
            carried[e] = delta + gamma * gae_lambda * alive * carried[e]
            advantages[t, e] = carried[e]
            returns[t, e] = carried[e] + values[t, e]
            next_values[e] = values[t, e]


@_compiled
def _gae_batched(rewards, values, dones, last, gamma, gae_lambda, one):
    advantages, returns = np.empty_like(rewards), np.empty_like(rewards)
    _fill_gae_batched(rewards, values, dones, last, gamma, gae_lambda, one, advantages, returns)
    return advantages, returns


@_compiled
def _fill_vtrace(log_rhos, rewards, values, dones, last, gamma, one, vs, pg_advantages):
    for t in range(len(rewards)):  # apart, since this loop has no order and can be vectorised
        pg_advantages[t] = min(one, np.exp(log_rhos[t]))
    surplus, next_value, next_vs = one - one, last, last
    for t in range(len(rewards) - 1, -1, -1):
        rho = pg_advantages[t]
        discount = gamma * (one - dones[t])
        delta = rho * (rewards[t] + discount * next_value - values[t])
        surplus = delta + discount * rho * surplus
        pg_advantages[t] = rho * (rewards[t] + discount * next_vs - values[t])
        vs[t] = next_vs = values[t] + surplus
        next_value = values[t]


@_compiled
def _vtrace(log_rhos, rewards, values, dones, last, gamma, one):
    vs, pg_advantages = np.empty_like(values), np.empty_like(values)
    _fill_vtrace(log_rhos, rewards, values, dones, last, gamma, one, vs, pg_advantages)
    return vs, pg_advantages


@_compiled
def _fill_token_kl(policy, reference, one, sums):
    rows, tokens = policy.shape
    for row in range(rows):
        total = one - one
        for token in range(tokens):
            d = reference[row, token] - policy[row, token]
            total += np.exp(d) - d - one
        sums[row] = total


@_compiled
def _token_kl(policy, reference, one):
    sums = np.empty(len(policy), policy.dtype)
    _fill_token_kl(policy, reference, one, sums)
    return sums


@_compiled
def _fill_group_advantages(rewards, size, advantages):
    for start in range(0, len(rewards), size):
        group = rewards[start : start + size]
        mean, variance = group.mean(), 0.0
        for reward in group:
            variance += (reward - mean) ** 2
        scale = 1.0 / (np.sqrt(variance / size) + 1e-8)
        for i in range(size):
            advantages[start + i] = (group[i] - mean) * scale


@_compiled
def _group_advantages(rewards, size):
    advantages = np.empty_like(rewards)
    _fill_group_advantages(rewards, size, advantages)
    return advantages


def _in_form(allocating, filling, *arguments, **kept):
    """The call in the given form; `kept` are arrays for its results, by name."""
    if FORM == "plain":
        return function(partial(allocating, *arguments), *kept)
    call = partial(filling, *arguments, *kept.values())

    def answer():
        call()
        return {name: array.copy() for name, array in kept.items()}

    return Arm(call, answer)


def _arrays(like, *names):
    """Arrays of that shape and dtype, by name."""
    return {name: np.empty_like(like) for name in names}


def gae(n):
    *columns, last = inputs.rollout(n)
    kept = _arrays(columns[0], "advantages", "returns")
    return _in_form(_gae, _fill_gae, *columns, float(last), GAMMA, GAE_LAMBDA, **kept)


def _numbers(dtype):
    """Gamma, lambda and 1 as `dtype`."""
    kind = np.dtype(dtype).type
    return kind(GAMMA), kind(GAE_LAMBDA), kind(1)


def gae_batched(n_envs, n_steps, dtype):
    columns = inputs.rollout(n_steps, n_envs, dtype=dtype)
    kept = _arrays(columns[0], "advantages", "returns")
    return _in_form(_gae_batched, _fill_gae_batched, *columns, *_numbers(dtype), **kept)


def vtrace(n, dtype):
    *columns, last = inputs.rollout(n, dtype=dtype)
    kept = _arrays(columns[0], "vs", "pg_advantages")
    gamma, _, one = _numbers(dtype)
    arguments = (inputs.log_rhos(n, dtype), *columns, one * last, gamma, one)
    return _in_form(_vtrace, _fill_vtrace, *arguments, **kept)


def token_kl(rows, tokens, dtype):
    policy, reference = inputs.log_probs(rows, tokens, dtype)
    arguments = (policy, reference, _numbers(dtype)[-1])
    return _in_form(_token_kl, _fill_token_kl, *arguments, kl=np.empty(rows, dtype))


def group_advantages(groups, size):
    rewards = inputs.group_rewards(groups, size)
    kept = _arrays(rewards, "advantages")
    return _in_form(_group_advantages, _fill_group_advantages, rewards, size, **kept)


def rollout(n_envs, n_steps):
    env = CartPoleVectorEnv(n_envs)
    numbers = _numbers(np.float32)
    kept = tuple(np.empty((2, n_steps, n_envs), np.float32))

    def gae(*columns):
        if FORM == "plain":
            return _gae_batched(*columns, *numbers)
        _fill_gae_batched(*columns, *numbers, *kept)
        return kept

    return rolling(lambda: env.reset()[0], env.step, gae, n_envs, n_steps)
