"""SAC's replay buffer, with the names that programs for Stable-Baselines3 look up on theirs."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from rlox import PrioritizedReplayBuffer, ReplayBuffer
from rlox.learner.features import in_order
from rlox.learner.spaces import flatten_obs, row_dtype, row_length, unflattened

COLUMNS = ("obs", "next_obs", "action", "reward", "terminated", "truncated")


def obs_dtype_of(space: spaces.Space[Any]) -> Literal["uint8", "float32"]:
    """The dtype in which a replay buffer stores observations of `space`."""
    return "uint8" if row_dtype(space) == np.uint8 else "float32"


class SacReplayBuffer(ReplayBuffer):
    """A `rlox.ReplayBuffer` of `capacity` transitions of `n_envs` environments, with actions of
    `act_dim` numbers in [-1, 1].

    `observations`, `actions` and the like are copies `[steps, n_envs, …]`, the oldest step first,
    without the places that are free. With `bootstraps_time_limits`, `add` takes an episode that a
    time limit ends for one that was not terminated. `device` is where the trainer computes.
    """

    observation_space: spaces.Space[Any]
    n_envs: int
    device: torch.device
    _made_of: tuple[Any, ...]
    _bootstraps_time_limits: bool

    def __new__(
        cls,
        capacity: int,
        observation_space: spaces.Space[Any],
        act_dim: int,
        n_envs: int,
        seed: int,
        bootstraps_time_limits: bool,
        device: torch.device,
    ) -> Self:
        dtype, obs_dim = obs_dtype_of(observation_space), row_length(observation_space)
        made: Any = super().__new__(cls, capacity, obs_dim, act_dim, obs_dtype=dtype, seed=seed)
        made.observation_space, made.n_envs, made.device = observation_space, n_envs, device
        made._bootstraps_time_limits = bootstraps_time_limits
        made._made_of = (
            capacity, observation_space, act_dim, n_envs, seed, bootstraps_time_limits, device,
        )  # fmt: skip
        return made  # type: ignore[no-any-return]

    # What is copied or pickled holds the same, but draws from the beginning of its seed.

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self._made_of

    def __getstate__(self) -> Mapping[str, Any]:
        return self.transitions()

    def __setstate__(self, columns: Mapping[str, Any]) -> None:
        fill(self, columns)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[np.float32],
        reward: NDArray[np.float32],
        done: NDArray[np.bool_],
        infos: Sequence[Mapping[str, Any]],
    ) -> None:
        """Store a transition of each environment, `[n_envs, …]`, such as a demonstration. `action`
        lies in [-1, 1]. A `TimeLimit.truncated` in `infos` says that a time limit ended the
        episode."""
        ended = np.array(done, np.bool_).reshape(-1)
        limits = [bool(info.get("TimeLimit.truncated", False)) for info in infos]
        truncated = ended & np.array(limits, np.bool_)
        space = self.observation_space
        before, after = (flatten_obs(in_order(one, space), space) for one in (obs, next_obs))
        self.push_batch(
            before,
            after,
            np.array(action, np.float32, order="C").reshape(len(before), -1),
            np.array(reward, np.float32).reshape(-1),
            ended & ~truncated if self._bootstraps_time_limits else ended,
            truncated,
        )

    def extend(self, *columns: Any) -> None:
        """`add` for each step of columns `[steps, n_envs, …]`."""
        for step in zip(*columns, strict=True):
            self.add(*step)

    @property
    def buffer_size(self) -> int:
        """How many steps of all environments the buffer can hold."""
        return max(self.capacity // self.n_envs, 1)

    @property
    def full(self) -> bool:
        """Whether the next step overwrites the oldest."""
        return len(self) == self.capacity

    @property
    def pos(self) -> int:
        """The place in `observations` and the like at which a ring would go on."""
        return 0 if self.full else len(self) // self.n_envs

    def size(self) -> int:
        """The number of steps of all environments that it holds."""
        return self.buffer_size if self.full else self.pos

    @property
    def observations(self) -> Any:
        """Observations, for a `Dict` by key; of a `Discrete`, `[…, 1]`."""
        return self._observations("obs")

    @property
    def next_observations(self) -> Any:
        """The observations after each step; at an episode's end its last one."""
        return self._observations("next_obs")

    @property
    def actions(self) -> NDArray[np.float32]:
        """Actions in [-1, 1]."""
        return self._steps("action")[0]

    @property
    def rewards(self) -> NDArray[np.float32]:
        """Rewards."""
        return self._steps("reward")[0]

    @property
    def dones(self) -> NDArray[np.float32]:
        """1 for a step that ended its episode."""
        ended: NDArray[np.bool_] = np.logical_or(*self._steps("terminated", "truncated"))
        return ended.astype(np.float32)

    @property
    def timeouts(self) -> NDArray[np.float32]:
        """1 for a step whose episode a time limit ended."""
        return self._steps("truncated")[0].astype(np.float32)

    def _steps(self, *names: str) -> list[NDArray[Any]]:
        """These columns of the transitions, `[steps, n_envs, …]`."""
        columns: Mapping[str, Any] = self.transitions()
        begun = len(self) % self.n_envs  # transitions of the oldest step, of which some are gone
        found = (columns[name][begun:] for name in names)
        return [column.reshape(-1, self.n_envs, *column.shape[1:]) for column in found]

    def _observations(self, name: str) -> Any:
        (rows,) = self._steps(name)
        found = unflattened(rows.reshape(-1, rows.shape[-1]), self.observation_space)
        if isinstance(found, dict):
            return {key: self._by_step(part) for key, part in found.items()}
        return self._by_step(found)

    def _by_step(self, part: NDArray[Any]) -> NDArray[Any]:
        return part.reshape(-1, self.n_envs, *(part.shape[1:] or (1,)))


def fill(buffer: ReplayBuffer | PrioritizedReplayBuffer, columns: Mapping[str, Any]) -> None:
    """Push the transitions `columns` into `buffer`."""
    buffer.push_batch(*(columns[name] for name in COLUMNS))
