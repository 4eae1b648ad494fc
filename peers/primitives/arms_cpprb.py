"""cpprb: replay buffers in C++ and Cython."""

from functools import partial

import inputs
import numpy as np
from arm import KNOWN, drawing, storing
from cpprb import PrioritizedReplayBuffer, ReplayBuffer

NAMES = ("obs", "next_obs", "action", "reward", "terminated", "truncated")


def _ring(n, obs_dim, kind=ReplayBuffer, **settings):
    wide, one = {"shape": obs_dim}, {}
    shapes = dict(zip(NAMES, (wide, wide, one, one, one, one), strict=True))
    return kind(n, shapes, **settings)


def _named(columns):
    return dict(zip(NAMES, columns, strict=True))


def _filled(n, obs_dim, kind=ReplayBuffer, **settings):
    buffer = _ring(n, obs_dim, kind, **settings)
    for columns in inputs.chunks(n, obs_dim):
        buffer.add(**_named(columns))
    return buffer


def push(obs_dim, steps):
    def known():
        small = _ring(KNOWN, obs_dim)
        for number in range(KNOWN):
            small.add(**_named(inputs.one(obs_dim, number)))
        return small.sample(KNOWN)

    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    return storing(partial(buffer.add, **_named(inputs.one(obs_dim, steps=steps))), known)


def push_batch(rows, obs_dim):
    def known():
        small = _ring(KNOWN, obs_dim)
        for columns in inputs.chunks(KNOWN, obs_dim, rows):
            small.add(**_named(columns))
        return small.sample(KNOWN)

    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    return storing(partial(buffer.add, **_named(inputs.transitions(0, rows, obs_dim))), known)


def sample(batch, obs_dim):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    return drawing(partial(buffer.sample, batch))


def per_sample(batch, capacity):
    buffer = _filled(capacity, 4, PrioritizedReplayBuffer, alpha=0.6)
    buffer.update_priorities(np.arange(capacity), inputs.priorities(capacity))
    return drawing(partial(buffer.sample, batch, beta=0.4))
