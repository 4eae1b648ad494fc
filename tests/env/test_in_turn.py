"""Environments in turn (R21): a step is that of Gymnasium's `SyncVectorEnv`."""

from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

from rlox.env.in_turn import step_in_turn

OBSERVATIONS = {
    "floats": spaces.Box(-1, 1, (3,), np.float32),
    "doubles": spaces.Box(-1, 1, (2, 2), np.float64),
    "bytes": spaces.Box(0, 255, (4,), np.uint8),
    "a number": spaces.Discrete(5),
    "choices": spaces.MultiDiscrete([2, 3]),
    "a dictionary": spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Discrete(3)),
    "a tuple": spaces.Tuple([spaces.Discrete(3), spaces.Box(-1, 1, (1,))]),
    "text": spaces.Text(4),
}
ACTIONS = {
    "a choice": spaces.Discrete(3, start=1),
    "floats": spaces.Box(-1, 1, (2,), np.float32),
    "a tuple": spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]),
}


class Draws(gym.Env[Any, Any]):
    """Draws all that it returns. Observations may be of another dtype than the space has."""

    def __init__(self, observations: str, actions: str, seed: int, plain: bool) -> None:
        self.observation_space = deepcopy(OBSERVATIONS[observations])
        self.action_space = ACTIONS[actions]
        self.rng, self.plain = np.random.default_rng(seed), plain
        self.observation_space.seed(seed)

    def _obs(self) -> Any:
        obs = self.observation_space.sample()
        as_list = self.plain and isinstance(obs, np.ndarray) and obs.dtype.kind == "f"
        return obs.tolist() if as_list else obs

    def _info(self) -> dict[str, Any]:
        some = {
            "count": int(self.rng.integers(9)),
            "share": float(self.rng.random()),
            "flag": bool(self.rng.integers(2)),
            "name": "x" * int(self.rng.integers(3)),
            "vector": self.rng.random(2),
            "deeper": {"level": int(self.rng.integers(3))},
        }
        return {name: value for name, value in some.items() if self.rng.random() < 0.3}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._obs(), self._info()

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.last = action
        ended, cut = self.rng.random(2) < 0.2
        return self._obs(), np.float32(self.rng.random()), bool(ended), cut, self._info()


def equal(one: Any, other: Any) -> bool:
    """Whether values, types and dtypes are the same, however deep."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and all(map(equal, one.flat, other.flat))
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=False)
    return bool(one == other)


def twins(n: int, copy: bool, *how: Any) -> list[SyncVectorEnv[Any, Any]]:
    made = [partial(Draws, *how[:2], seed, how[2]) for seed in range(n)]
    mode = AutoresetMode.SAME_STEP
    return [SyncVectorEnv(made, copy=copy, autoreset_mode=mode) for _ in range(2)]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(OBSERVATIONS)),
    st.sampled_from(sorted(ACTIONS)),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
def test_a_step_is_gymnasiums(
    observations: str, actions: str, n: int, copy: bool, plain: bool
) -> None:
    """Results, infos, what each environment was given, and the state for masked resets."""
    theirs, ours = twins(n, copy, observations, actions, plain)
    assert equal(*(envs.reset() for envs in (theirs, ours)))
    space = batch_space(ACTIONS[actions], n)
    space.seed(n)
    for at in range(12):
        given_actions = space.sample()
        *found, infos = step_in_turn(ours, given_actions)
        assert equal(theirs.step(given_actions), (*found, dict(infos)))
        for one, other in zip(theirs.envs, ours.envs, strict=True):
            assert equal(one.unwrapped.last, other.unwrapped.last)  # type: ignore[attr-defined]
        if at % 4 == 3:
            mask = np.arange(n) % 2 == 0
            resets = (envs.reset(options={"reset_mask": mask}) for envs in (theirs, ours))
            assert equal(*resets)


def test_results_are_the_callers_unless_they_are_not_copied() -> None:
    _, ours = twins(2, True, "floats", "a choice", False)
    ours.reset()
    actions = np.ones(2, np.int64)
    first = step_in_turn(ours, actions)
    before = [array.copy() for array in first[:4]]
    second = step_in_turn(ours, actions)
    assert not any(np.shares_memory(a, b) for a, b in zip(first[:4], second[:4], strict=True))
    assert all(map(np.array_equal, before, first[:4]))

    _, ours = twins(2, False, "floats", "a choice", False)
    ours.reset()
    assert step_in_turn(ours, actions)[0] is step_in_turn(ours, actions)[0]


def test_what_is_no_observation_of_the_space_is_refused_as_gymnasium_refuses_it() -> None:
    class Other(Draws):
        def step(self, action: Any) -> Any:
            return np.zeros(2, np.float32), 0.0, False, False, {}

    for step in (SyncVectorEnv.step, step_in_turn):
        envs = SyncVectorEnv(
            [lambda: Other("floats", "a choice", 0, False)] * 2,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        envs.reset()
        with pytest.raises(ValueError, match="shape"):
            step(envs, np.ones(2, np.int64))
