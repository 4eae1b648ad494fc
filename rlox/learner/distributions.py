"""Densities of actions, and the distribution of a policy's actions as torch has it."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributions

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
LOG_2 = math.log(2)


def gaussian_log_prob(x: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log-density of independent normals, summed over the last axis: `[B, D]` to `[B]`."""
    z = (x - mean) * torch.exp(-log_std)
    return (-0.5 * z * z - log_std - HALF_LOG_2PI).sum(dim=-1)


def log_slope_of_tanh(u: Tensor) -> Tensor:
    """log(1 - tanh(u)^2), written so that it neither overflows nor rounds to log 0."""
    return 2 * (LOG_2 - u - F.softplus(-2 * u))


class ActionDistribution:
    """The distributions of a batch of `B` actions, with the names of Stable-Baselines3.

    `distribution` is one of `torch.distributions`, or a list of them for a MultiDiscrete, one for
    each choice. `sample` draws from torch's global generator.
    """

    def __init__(self, distribution: Any) -> None:
        self.distribution = distribution

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probabilities or densities of `actions`, `[B]`."""
        if isinstance(self.distribution, list):
            columns = zip(self.distribution, actions.unbind(-1), strict=True)
            return torch.stack([one.log_prob(column) for one, column in columns]).sum(0)
        return _rows_summed(self.distribution.log_prob(actions))

    def entropy(self) -> Tensor:
        """Entropies, `[B]`."""
        if isinstance(self.distribution, list):
            return torch.stack([one.entropy() for one in self.distribution]).sum(0)
        return _rows_summed(self.distribution.entropy())

    def mode(self) -> Tensor:
        """The most likely actions."""
        if isinstance(self.distribution, list):
            return torch.stack([one.mode for one in self.distribution], dim=-1)
        if isinstance(self.distribution, distributions.Bernoulli):  # torch's mode of 1/2 is NaN
            return (self.distribution.probs > 0.5).float()
        mode: Tensor = self.distribution.mode
        return mode

    def sample(self) -> Tensor:
        """Random actions."""
        if isinstance(self.distribution, list):
            return torch.stack([one.sample() for one in self.distribution], dim=-1)
        drawn: Tensor = self.distribution.sample()
        return drawn

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """`mode()` or `sample()`."""
        return self.mode() if deterministic else self.sample()


def _rows_summed(found: Tensor) -> Tensor:
    """The sum over independent dimensions, if there are any."""
    return found.sum(dim=-1) if found.ndim > 1 else found
