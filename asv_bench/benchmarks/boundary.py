"""The boundary between Python and Rust: what crosses it, and what a crossing costs."""

from functools import cache

import numpy as np

import rlox
from benchmarks.inputs import pushes, rollout
from benchmarks.skip import skip_unless
from rlox import _core

STEPS = 256


@cache
def crossings(n_envs):
    """Calls and bytes over the boundary, per vectorised step of CartPole."""
    skip_unless(hasattr(_core, "take_crossings"), "this commit counts no crossings")
    env = rlox.VecEnv("CartPole-v1", n_envs, seed=0)
    env.reset(seed=0)
    _core.take_crossings()
    _core.count_crossings(True)
    for _ in range(STEPS):
        env.step(pushes(n_envs))
    _core.count_crossings(False)
    counted = _core.take_crossings()
    assert counted["VecEnv.step"][0] == STEPS
    calls, n_bytes, _ = np.array(list(counted.values())).sum(axis=0) / STEPS
    return float(calls), float(n_bytes)


class Crossings:
    params = (1, 64)
    param_names = ("n_envs",)

    def track_calls_per_step(self, n_envs):
        return crossings(n_envs)[0]

    def track_bytes_per_step(self, n_envs):
        return crossings(n_envs)[1]

    track_calls_per_step.unit = "calls"
    track_bytes_per_step.unit = "bytes"


@cache
def roundtrip_case(n):
    skip_unless(hasattr(_core, "roundtrip"), "this commit has no bare crossing")
    array = rollout(n)[0]
    np.testing.assert_array_equal(_core.roundtrip(array), array)
    return array


class Roundtrip:
    """An array of doubles in and out, copied each way, and nothing done with it."""

    rounds = 4
    repeat = (10, 20, 5.0)
    params = (1, 8_192)
    param_names = ("n",)

    def time_roundtrip(self, n):
        _core.roundtrip(roundtrip_case(n))
