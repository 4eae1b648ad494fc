"""What a `VecEnv` needs from whatever steps its environments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

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
        """Start new episodes; `seeds` one an environment, `None` to let its stream go on."""

    def step(self, actions: NDArray[Any]) -> Step:
        """Step every environment."""

    def render(self) -> tuple[Any, ...]:
        """One frame of each environment."""

    def close(self) -> None:
        """Release what the environments hold."""
