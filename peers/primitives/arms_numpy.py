"""NumPy as it is usually written. `form` "plain" allocates its results, "out" writes them into
arrays that are kept. Recurrences are loops over time, as in CleanRL and Stable-Baselines3."""

from functools import partial

import inputs
import numpy as np
from arm import FORM, KNOWN, Unsupported, drawing, function, storing

GAMMA, GAE_LAMBDA = inputs.GAMMA, inputs.GAE_LAMBDA
NAMES = ("obs", "next_obs", "action", "reward", "terminated", "truncated")


def _plain_alone():
    if FORM != "plain":
        raise Unsupported("its time is not in allocating")


def scan(rewards, values, dones, last):
    """GAE, backwards over the first axis; the others are environments."""
    advantages = np.zeros_like(rewards)
    next_value, advantage = last, 0.0
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * next_value * alive - values[t]
        advantages[t] = advantage = delta + GAMMA * GAE_LAMBDA * alive * advantage
        next_value = values[t]
    return advantages, advantages + values


def gae(n):
    _plain_alone()
    return function(partial(scan, *inputs.rollout(n)), "advantages", "returns")


def gae_batched(n_envs, n_steps, dtype):
    _plain_alone()
    columns = inputs.rollout(n_steps, n_envs, dtype=dtype)
    return function(partial(scan, *columns), "advantages", "returns")


def vtrace(n, dtype):
    _plain_alone()
    log_rhos = inputs.log_rhos(n, dtype)
    rewards, values, dones, last = inputs.rollout(n, dtype=dtype)

    def call():
        rho = np.minimum(1.0, np.exp(log_rhos))
        discount = GAMMA * (1.0 - dones)
        next_values = np.append(values[1:], last)
        delta = rho * (rewards + discount * next_values - values)
        keep = discount * rho  # c and rho are clipped at the same 1
        surplus = np.empty_like(values)
        carried = 0.0
        for t in reversed(range(n)):
            surplus[t] = carried = delta[t] + keep[t] * carried
        vs = values + surplus
        return vs, rho * (rewards + discount * np.append(vs[1:], last) - values)

    return function(call, "vs", "pg_advantages")


def token_kl(rows, tokens, dtype):
    policy, reference = inputs.log_probs(rows, tokens, dtype)
    d, k3 = np.empty_like(policy), np.empty_like(policy)

    def plain():
        d = reference - policy
        return (np.exp(d) - d - 1.0).sum(axis=1)

    def out():
        np.subtract(reference, policy, out=d)
        np.exp(d, out=k3)
        np.subtract(k3, d, out=k3)
        np.subtract(k3, 1.0, out=k3)
        return k3.sum(axis=1)

    return function(out if FORM == "out" else plain, "kl")


def group_advantages(groups, size):
    _plain_alone()
    rewards = inputs.group_rewards(groups, size)

    def call():
        grouped = rewards.reshape(-1, size)
        mean = grouped.mean(axis=1, keepdims=True)
        std = grouped.std(axis=1, keepdims=True)
        return ((grouped - mean) / (std + 1e-8)).reshape(-1)

    return function(call, "advantages")


class Ring:
    """A replay buffer of arrays."""

    def __init__(self, n, obs_dim):
        shapes = ((n, obs_dim), (n, obs_dim), (n, 1), (n,), (n,), (n,))
        kinds = (np.float32,) * 4 + (np.bool_,) * 2
        self.columns = tuple(np.zeros(*made) for made in zip(shapes, kinds, strict=True))
        self.capacity, self.at, self.rng = n, 0, np.random.default_rng(0)
        self.out = ()

    def push(self, obs, next_obs, action, reward, terminated, truncated):
        """Push one transition. Columns are written one by one, since a loop over them costs
        time."""
        at = self.at
        observations, next_observations, actions, rewards, terminations, truncations = self.columns
        observations[at] = obs
        next_observations[at] = next_obs
        actions[at] = action
        rewards[at] = reward
        terminations[at] = terminated
        truncations[at] = truncated
        self.at = (at + 1) % self.capacity

    def push_batch(self, *rows):
        """Push several transitions; `rows` are columns."""
        end = self.at + len(rows[0])
        over = end - self.capacity
        for column, values in zip(self.columns, rows, strict=True):
            if over > 0:
                column[self.at :], column[:over] = values[:-over], values[-over:]
            else:
                column[self.at : end] = values
        self.at = end % self.capacity

    def sample(self, batch):
        """Columns of rows drawn uniformly, by name."""
        rows = self.rng.integers(self.capacity, size=batch)
        return dict(zip(NAMES, (column[rows] for column in self.columns), strict=True))

    def sample_out(self, batch):
        """The same into arrays that the next draw overwrites."""
        if not self.out:
            self.out = tuple(np.empty((batch, *c.shape[1:]), c.dtype) for c in self.columns)
        rows = self.rng.integers(self.capacity, size=batch)
        for column, out in zip(self.columns, self.out, strict=True):
            # In its default mode `take` first writes into a buffer of its own.
            column.take(rows, axis=0, out=out, mode="clip")
        return dict(zip(NAMES, self.out, strict=True))


def _filled(n, obs_dim):
    ring = Ring(n, obs_dim)
    for columns in inputs.chunks(n, obs_dim):
        ring.push_batch(*columns)
    return ring


def push(obs_dim, steps):
    _plain_alone()

    def known():
        ring = Ring(KNOWN, obs_dim)
        for number in range(KNOWN):
            ring.push(*inputs.one(obs_dim, number))
        return ring.sample(KNOWN)

    ring = _filled(inputs.capacity(obs_dim), obs_dim)
    return storing(partial(ring.push, *inputs.one(obs_dim, steps=steps)), known)


def push_batch(rows, obs_dim):
    _plain_alone()

    def known():
        ring = Ring(KNOWN, obs_dim)
        for columns in inputs.chunks(KNOWN, obs_dim, rows):
            ring.push_batch(*columns)
        return ring.sample(KNOWN)

    ring = _filled(inputs.capacity(obs_dim), obs_dim)
    return storing(partial(ring.push_batch, *inputs.transitions(0, rows, obs_dim)), known)


def sample(batch, obs_dim):
    ring = _filled(inputs.capacity(obs_dim), obs_dim)
    return drawing(partial(ring.sample_out if FORM == "out" else ring.sample, batch))
