"""Turns observations into the environment's actions, by a policy alone, without its trainer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.features import in_order
from rlox.learner.spaces import given_observations, unflattened

Predicted = tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]


def as_floats(tensor: Tensor, scales_images: bool) -> Tensor:
    """Rows of observations as networks take them. Bytes become floats; those of images are scaled
    to [0, 1] if `scales_images`."""
    if tensor.dtype != torch.uint8:
        return tensor
    return tensor.float() / 255 if scales_images else tensor.float()


def clipped(actions: NDArray[Any], space: spaces.Space[Any]) -> NDArray[Any]:
    """A policy's actions in the space's shape and dtype: choices are counted from `start` on, and
    numbers are clipped to the box."""
    if isinstance(space, spaces.Discrete):
        return np.asarray(actions + space.start)
    assert space.shape is not None
    actions = actions.reshape(-1, *space.shape)
    if isinstance(space, spaces.MultiDiscrete):
        return np.asarray((actions + space.start).astype(space.dtype))
    if isinstance(space, spaces.MultiBinary):
        return actions.astype(space.dtype)
    assert isinstance(space, spaces.Box)
    # `np.clip` does the same and is slower.
    return np.asarray(np.minimum(np.maximum(actions, space.low), space.high))


def unscaled(actions: NDArray[Any], space: spaces.Box) -> NDArray[Any]:
    """Actions from [-1, 1] scaled to the box."""
    low, high = space.low, space.high
    scaled = low + 0.5 * (actions.reshape(-1, *space.shape) + 1) * (high - low)
    # Rounding may leave the box.
    return np.asarray(np.minimum(np.maximum(scaled, low, out=scaled), high, out=scaled))


@dataclass
class Acting:
    """How a trainer gives observations to a policy and reads its actions. `squashed` actions lie in
    [-1, 1]."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    scales_images: bool
    squashed: bool

    def rows(self, obs: Any, device: torch.device) -> tuple[Tensor, bool]:
        """Observations as a policy takes them, and whether they were a single one. ValueError for
        anything else."""
        space = self.observation_space
        rows, one = given_observations(in_order(obs, space), space)
        return as_floats(torch.from_numpy(rows).to(device), self.scales_images), one

    def tensors(self, obs: Any, device: torch.device) -> tuple[Any, bool]:
        """Observations as a batch of tensors in their space's shape (for a Dict by key), and
        whether they were a batch. ValueError for anything else."""
        space = self.observation_space
        obs = in_order(obs, space)
        rows, one = given_observations(obs, space)
        found = unflattened(rows, space)
        if isinstance(space, spaces.Dict):
            return {k: torch.from_numpy(part).to(device) for k, part in found.items()}, not one
        return torch.from_numpy(found).to(device), not one

    def rows_of(self, obs: Any) -> Tensor:
        """A batch of observations, given as tensors, as a policy takes them."""
        obs = in_order(obs, self.observation_space)
        if isinstance(self.observation_space, spaces.Dict):
            parts = [obs[key] for key in self.observation_space.spaces]
            return torch.cat([part.float().reshape(len(part), -1) for part in parts], dim=1)
        rows: Tensor = obs.float().reshape(len(obs), -1)
        return rows / 255 if self.scales_images else rows

    def predict(
        self, policy: Any, obs: Any, deterministic: bool, generator: torch.Generator | None,
        device: torch.device,
    ) -> Predicted:  # fmt: skip
        """Actions for one observation, or a batch, as the environment takes them."""
        rows, one = self.rows(obs, device)
        policy.train(False)
        with torch.no_grad():
            drawn, _ = policy.get_action_and_logprob(
                rows, deterministic=deterministic, generator=generator
            )
        actions = drawn.cpu().numpy()
        if self.squashed:
            assert isinstance(self.action_space, spaces.Box)
            actions = unscaled(actions, self.action_space)
        else:
            actions = clipped(actions, self.action_space)
        return (actions[0, ...] if one else actions), None  # an array even of a single choice
