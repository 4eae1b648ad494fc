"""Environments that run in Rust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rlox import _core
from rlox.env.backend import Step, Timer
from rlox.env.spaces import to_gymnasium

ENV_IDS: frozenset[str] = frozenset(_core.builtin_envs())

# What Gymnasium registers under these ids: the class, and the step at which an episode is
# truncated.
_CONTROL = "gymnasium.envs.classic_control"
_ORIGINALS = {
    "Acrobot-v1": (f"{_CONTROL}.acrobot:AcrobotEnv", 500),
    "CartPole-v1": (f"{_CONTROL}.cartpole:CartPoleEnv", 500),
    "MountainCar-v0": (f"{_CONTROL}.mountain_car:MountainCarEnv", 200),
    "MountainCarContinuous-v0": (
        f"{_CONTROL}.continuous_mountain_car:Continuous_MountainCarEnv",
        999,
    ),
    "Pendulum-v1": (f"{_CONTROL}.pendulum:PendulumEnv", 200),
}


def runs_natively(env_id: str) -> bool:
    """Whether `env_id` is built in and means the same environment in Gymnasium's registry. The
    program may have registered another environment under that id."""
    spec = gymnasium.registry.get(env_id)
    if env_id not in ENV_IDS or spec is None or spec.kwargs or spec.additional_wrappers:
        return False
    return (spec.entry_point, spec.max_episode_steps) == _ORIGINALS.get(env_id)


class NativeBackend:
    """`_core.VecEnv` with Gymnasium's spaces, options and infos."""

    render_mode: str | None = None
    # No Python environment runs here, so there is no time of Python environments to measure.
    timing: Timer | None = None

    def __init__(self, env_id: str, n_envs: int, seed: int, copy: bool) -> None:
        self.core = _core.VecEnv(env_id, n_envs, seed)
        self.n_envs = n_envs
        self.single_observation_space = to_gymnasium(self.core.observation_space)
        self.single_action_space = to_gymnasium(self.core.action_space)
        self.spec: gymnasium.envs.registration.EnvSpec | None = gymnasium.spec(env_id)
        self.metadata: dict[str, Any] = {"render_modes": []}
        self._out = None if copy else self._new_arrays()
        self._drawer: Any = None  # Gymnasium's environment, which draws; made at the first picture

    def _new_arrays(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        n = self.n_envs
        return (
            np.zeros((n, self.core.obs_dim), np.float32),
            np.zeros(n, np.float64),
            np.zeros(n, np.bool_),
            np.zeros(n, np.bool_),
        )

    def reset(
        self, seeds: Sequence[int | None] | None, options: dict[str, Any] | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start new episodes. `options`: Gymnasium's own for the environment, and `reset_mask`."""
        out = None if self._out is None else self._out[0]
        mask, bounds = None, None
        if options is not None:
            mask = _reset_mask(options, self.n_envs)
            bounds = _bounds(self.core, options)
        return self.core.reset(seeds, mask, bounds, out), {}

    def step(self, actions: NDArray[Any]) -> Step:
        """Step every environment."""
        return self.core.step(actions, self._out)

    def render(self) -> tuple[Any, ...]:
        """A picture of each environment, uint8 `[height, width, 3]`. Gymnasium's environment with
        the same id draws it from the state; without pygame its error says what to install."""
        if self._drawer is None:
            self._drawer = gymnasium.make(self.core.env_id, render_mode="rgb_array").unwrapped
            self._drawer.reset()
        frames = []
        for i in range(self.n_envs):
            self._drawer.state, _ = self.core.state(i)
            frames.append(self._drawer.render())
        return tuple(frames)

    def close(self) -> None:
        """Release the environment that drew pictures."""
        if self._drawer is not None:
            self._drawer.close()


def _reset_mask(options: dict[str, Any], n_envs: int) -> NDArray[np.bool_] | None:
    mask = options.get("reset_mask")
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError("options['reset_mask']: expected a NumPy array of bool")
    if mask.shape != (n_envs,) or not mask.any():
        raise ValueError(
            f"options['reset_mask']: expected shape ({n_envs},) with at least one True"
        )
    return np.ascontiguousarray(mask)


def _bounds(core: _core.VecEnv, options: dict[str, Any]) -> NDArray[np.float64]:
    """The range of each randomly drawn component of the initial state. Gymnasium's options are
    `low` and `high` of all components; Pendulum's are the size of each component."""
    bounds = np.array(core.initial_bounds)
    if core.env_id == "Pendulum-v1":
        for row, name in zip(bounds, ("x_init", "y_init"), strict=True):
            if name in options:
                row[:] = -float(options[name]), float(options[name])
        return bounds
    for column, name in zip(bounds.T, ("low", "high"), strict=True):
        if name in options:
            column[:] = float(options[name])
    return bounds
