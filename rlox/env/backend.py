"""The interface between a `VecEnv` and the code that steps its environments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
# Observations, rewards, terminations, truncations, infos.
Step: TypeAlias = tuple[NDArray[Any], NDArray[np.float64], Bools, Bools, dict[str, Any]]


class Timer(Protocol):
    """The part of `rlox.timing.Timing` that an environment uses."""

    def add_time(self, name: str) -> AbstractContextManager[Any]:
        """Accumulate the time of a block under `name`."""


class Backend(Protocol):
    """`n_envs` environments stepped together, with same-step autoreset."""

    single_observation_space: gymnasium.Space[Any]
    single_action_space: gymnasium.Space[Any]
    metadata: dict[str, Any]
    spec: gymnasium.envs.registration.EnvSpec | None
    render_mode: str | None
    timing: Timer | None

    def reset(
        self, seeds: Sequence[int | None] | None, options: dict[str, Any] | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start new episodes. `seeds` has one for each environment; with `None` its random stream
        continues."""

    def step(self, actions: NDArray[Any]) -> Step:
        """Step every environment."""

    def render(self) -> tuple[Any, ...]:
        """One frame of each environment."""

    def close(self) -> None:
        """Release what the environments hold."""


class ClosedBackend:
    """Takes the place of environments that were closed. It keeps their spaces and number, and
    raises an error when it is used."""

    def __init__(self, backend: Backend) -> None:
        self.single_observation_space = backend.single_observation_space
        self.single_action_space = backend.single_action_space
        self.metadata = backend.metadata
        self.spec = backend.spec
        self.render_mode = backend.render_mode
        self.timing = backend.timing

    def reset(self, seeds: Sequence[int | None] | None, options: dict[str, Any] | None) -> NoReturn:
        """Nothing to reset."""
        raise RuntimeError("reset after close(); make a new VecEnv")

    def step(self, actions: NDArray[Any]) -> NoReturn:
        """Nothing to step."""
        raise RuntimeError("step after close(); make a new VecEnv")

    def render(self) -> NoReturn:
        """Nothing to see."""
        raise RuntimeError("render after close(); make a new VecEnv")

    def close(self) -> None:
        """Nothing more to release."""
