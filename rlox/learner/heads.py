"""Distributions of actions, from the output of a policy's last layer."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, Normal

from rlox.learner.distributions import HALF_LOG_2PI, gaussian_log_prob


class Head(nn.Module):
    """A distribution of actions from `n_inputs` numbers a row."""

    n_inputs: int
    needs_latent = False  # whether it also needs the features of the layer before, side by side

    def draw(self, said: Tensor, deterministic: bool, generator: torch.Generator | None) -> Tensor:
        """Actions; the most likely ones if `deterministic`."""
        raise NotImplementedError

    def log_prob(self, said: Tensor, actions: Tensor) -> Tensor:
        """Log-probabilities of the actions, `[B]`."""
        raise NotImplementedError

    def entropy(self, said: Tensor) -> Tensor | None:
        """The entropy, `[B]`; None if there is no formula."""
        raise NotImplementedError

    def torch_distribution(self, said: Tensor) -> Any:
        """One of `torch.distributions`, or a list of independent ones."""
        raise NotImplementedError


class Categoricals(Head):
    """One choice, or several independent ones, with these `numbers` of possibilities."""

    def __init__(self, numbers: list[int], single: bool) -> None:
        super().__init__()
        self.numbers, self.single, self.n_inputs = numbers, single, sum(numbers)

    def _log_probs(self, said: Tensor) -> list[Tensor]:
        return [F.log_softmax(part, dim=-1) for part in torch.split(said, self.numbers, dim=-1)]

    def draw(self, said: Tensor, deterministic: bool, generator: torch.Generator | None) -> Tensor:
        if not deterministic:
            said = said - torch.empty_like(said).exponential_(generator=generator).log_()
        drawn = [part.argmax(dim=-1) for part in torch.split(said, self.numbers, dim=-1)]
        return drawn[0] if self.single else torch.stack(drawn, dim=-1)

    def log_prob(self, said: Tensor, actions: Tensor) -> Tensor:
        chosen = actions.unsqueeze(-1) if self.single else actions
        each = [
            part.gather(-1, chosen[:, i : i + 1]) for i, part in enumerate(self._log_probs(said))
        ]
        return torch.cat(each, dim=-1).sum(dim=-1)

    def entropy(self, said: Tensor) -> Tensor:
        each = [-(part.exp() * part).sum(dim=-1) for part in self._log_probs(said)]
        return torch.stack(each).sum(dim=0)

    def torch_distribution(self, said: Tensor) -> Any:
        each = [Categorical(logits=part) for part in torch.split(said, self.numbers, dim=-1)]
        return each[0] if self.single else each


class Bernoullis(Head):
    """Independent bits."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n_inputs = n

    def draw(self, said: Tensor, deterministic: bool, generator: torch.Generator | None) -> Tensor:
        probs = torch.sigmoid(said)
        if deterministic:
            return (probs > 0.5).float()
        return (torch.rand(said.shape, generator=generator, device=said.device) < probs).float()

    def log_prob(self, said: Tensor, actions: Tensor) -> Tensor:
        return -F.binary_cross_entropy_with_logits(said, actions, reduction="none").sum(dim=-1)

    def entropy(self, said: Tensor) -> Tensor:
        probs = torch.sigmoid(said)
        each = F.binary_cross_entropy_with_logits(said, probs, reduction="none")
        return each.sum(dim=-1)

    def torch_distribution(self, said: Tensor) -> Bernoulli:
        return Bernoulli(logits=said)


class Gaussian(Head):
    """A diagonal Gaussian whose `log_std` does not depend on the state."""

    def __init__(self, n: int, log_std_init: float) -> None:
        super().__init__()
        self.n_inputs = n
        self.log_std = nn.Parameter(torch.full((n,), float(log_std_init)))

    def draw(self, said: Tensor, deterministic: bool, generator: torch.Generator | None) -> Tensor:
        if deterministic:
            return said
        noise = torch.randn(said.shape, generator=generator, device=said.device)
        return said + self.log_std.exp() * noise

    def log_prob(self, said: Tensor, actions: Tensor) -> Tensor:
        return gaussian_log_prob(actions, said, self.log_std)

    def entropy(self, said: Tensor) -> Tensor:
        return (self.log_std + 0.5 + HALF_LOG_2PI).sum().expand(len(said))

    def torch_distribution(self, said: Tensor) -> Normal:
        return Normal(said, self.log_std.exp())


def head_for(space: spaces.Space[object], log_std_init: float = 0.0) -> Head:
    """The distribution of actions in `space`."""
    if isinstance(space, spaces.Discrete):
        return Categoricals([int(space.n)], single=True)
    if isinstance(space, spaces.MultiDiscrete):
        return Categoricals([int(n) for n in np.ravel(space.nvec)], single=False)
    assert space.shape is not None
    if isinstance(space, spaces.MultiBinary):
        return Bernoullis(math.prod(space.shape))
    return Gaussian(math.prod(space.shape), log_std_init)
