"""Loops compiled by numba, without fast-math."""

from functools import partial

import inputs
import numba
import numpy as np
from arm import function

GAMMA, GAE_LAMBDA = inputs.GAMMA, inputs.GAE_LAMBDA


@numba.njit
def _gae(rewards, values, dones, last, gamma, gae_lambda):
    advantages, returns = np.empty_like(rewards), np.empty_like(rewards)
    next_value, advantage = last, 0.0
    for t in range(len(rewards) - 1, -1, -1):
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * next_value * alive - values[t]
        advantage = delta + gamma * gae_lambda * alive * advantage
        advantages[t] = advantage
        returns[t] = advantage + values[t]
        next_value = values[t]
    return advantages, returns


@numba.njit
def _gae_batched(rewards, values, dones, last, gamma, gae_lambda, one):
    n_steps, n_envs = rewards.shape
    advantages, returns = np.empty_like(rewards), np.empty_like(rewards)
    carried, next_values = np.zeros_like(last), last.copy()
    for t in range(n_steps - 1, -1, -1):
        for e in range(n_envs):
            alive = one - dones[t, e]
            delta = rewards[t, e] + gamma * next_values[e] * alive - values[t, e]
            carried[e] = delta + gamma * gae_lambda * alive * carried[e]
            advantages[t, e] = carried[e]
            returns[t, e] = carried[e] + values[t, e]
            next_values[e] = values[t, e]
    return advantages, returns


@numba.njit
def _vtrace(log_rhos, rewards, values, dones, last, gamma):
    vs, pg_advantages = np.empty_like(values), np.empty_like(values)
    surplus, next_value, next_vs = 0.0, last, last
    for t in range(len(rewards) - 1, -1, -1):
        rho = min(1.0, np.exp(log_rhos[t]))
        discount = gamma * (1.0 - dones[t])
        delta = rho * (rewards[t] + discount * next_value - values[t])
        surplus = delta + discount * rho * surplus
        pg_advantages[t] = rho * (rewards[t] + discount * next_vs - values[t])
        vs[t] = next_vs = values[t] + surplus
        next_value = values[t]
    return vs, pg_advantages


@numba.njit
def _token_kl(policy, reference):
    rows, tokens = policy.shape
    sums = np.empty(rows, policy.dtype)
    for row in range(rows):
        total = 0.0
        for token in range(tokens):
            d = reference[row, token] - policy[row, token]
            total += np.exp(d) - d - 1.0
        sums[row] = total
    return sums


@numba.njit
def _group_advantages(rewards, size):
    advantages = np.empty_like(rewards)
    for start in range(0, len(rewards), size):
        group = rewards[start : start + size]
        mean, variance = group.mean(), 0.0
        for reward in group:
            variance += (reward - mean) ** 2
        scale = 1.0 / (np.sqrt(variance / size) + 1e-8)
        for i in range(size):
            advantages[start + i] = (group[i] - mean) * scale
    return advantages


def gae(n):
    *columns, last = inputs.rollout(n)
    return function(
        partial(_gae, *columns, float(last), GAMMA, GAE_LAMBDA), "advantages", "returns"
    )


def gae_batched(n_envs, n_steps, dtype):
    columns = inputs.rollout(n_steps, n_envs, dtype=dtype)
    kind = np.dtype(dtype).type  # so that nothing is widened within the loop
    numbers = (kind(GAMMA), kind(GAE_LAMBDA), kind(1))
    return function(partial(_gae_batched, *columns, *numbers), "advantages", "returns")


def vtrace(n, dtype):
    *columns, last = inputs.rollout(n, dtype=dtype)
    call = partial(_vtrace, inputs.log_rhos(n, dtype), *columns, float(last), GAMMA)
    return function(call, "vs", "pg_advantages")


def token_kl(rows, tokens, dtype):
    return function(partial(_token_kl, *inputs.log_probs(rows, tokens, dtype)), "kl")


def group_advantages(groups, size):
    rewards = inputs.group_rewards(groups, size)
    return function(partial(_group_advantages, rewards, size), "advantages")
