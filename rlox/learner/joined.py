"""Runs a policy's networks with few operations: the actor alone, or actor and critic together."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from rlox import _core
from rlox.learner.native.networks import (
    ActorCriticNetworks,
    Network,
    Unfit,
    actor_critic_networks,
    require_plain_parameters,
    vector,
)
from rlox.learner.policies import (
    ActorCritic,
    CategoricalActorCritic,
    GaussianActorCritic,
)


def _tanh_(x: Tensor) -> Tensor:
    """tanh in place. On the CPU it is NumPy's, whose call takes less time for few numbers."""
    if x.device.type != "cpu":
        return torch.tanh_(x)
    array = x.numpy()
    np.tanh(array, out=array)
    return x


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": _tanh_, "relu": torch.relu_}


class _Layers:
    """A network with copies of its present weights; it is not for training."""

    def __init__(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str
    ) -> None:
        # Transposed and copied, since a product with a row-major right side is faster.
        self._weights = [
            weight.detach().t().clone(memory_format=torch.contiguous_format) for weight in weights
        ]
        self._biases = [bias.detach().clone() for bias in biases]
        self._activation = _ACTIVATIONS[activation]

    def __call__(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
            x = self._activation(torch.addmm(bias, x, weight))
        return torch.addmm(self._biases[-1], x, self._weights[-1])


class ActorInTorch:
    """The actor of `policy`, in torch."""

    def __init__(
        self, policy: CategoricalActorCritic | GaussianActorCritic, actor: Network
    ) -> None:
        self._draw_actions = policy.draw_actions
        self._layers = _Layers(actor.params[::2], actor.params[1::2], actor.activation)

    def __call__(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions; to be called under `torch.no_grad()`."""
        return self._draw_actions(self._layers(obs), generator)


def fit_for_rust(policy: ActorCritic) -> ActorCriticNetworks:
    """The networks of a policy whose actor Rust can run; `Unfit` for another."""
    found = actor_critic_networks(policy)
    require_plain_parameters([*found.actor.params, *found.log_std])
    return found


class ActorInRust:
    """The actor of `policy`, with its present weights, as one call into Rust (R17). It draws the
    same actions as torch, from the same random numbers."""

    def __init__(self, policy: ActorCritic) -> None:
        parts = fit_for_rust(policy)
        self._see, self._n_noise = parts.see, parts.actor.widths[-1]
        deviations = vector(parts.log_std) if parts.log_std else None
        # The same draws as torch's: normal for a Gaussian, uniform for bits, exponential for
        # choices.
        self._draw_noise: Callable[..., Tensor] = Tensor.exponential_
        if parts.log_std or parts.bits:
            self._draw_noise = Tensor.uniform_ if parts.bits else Tensor.normal_
        self._core = _core.ActionSampler(parts.actor.packed(), deviations, parts.nvec, parts.bits)

    def __call__(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """As `ActorInTorch`'s."""
        if self._see is not None:
            obs = self._see(obs)
        noise = obs.new_empty(len(obs), self._n_noise, dtype=torch.float32)
        self._draw_noise(noise, generator=generator)
        return torch.from_numpy(self._core.draw(obs.numpy(), noise.numpy()))


class Joined:
    """Actor and critic of `policy` as one network: their layers side by side, block-diagonal after
    the first."""

    def __init__(
        self,
        policy: CategoricalActorCritic | GaussianActorCritic,
        actor: Network,
        critic: Network,
    ) -> None:
        self._draw = policy.draw
        block_diag = cast(Callable[..., Tensor], torch.block_diag)
        weights, biases = (
            list(zip(actor.params[i::2], critic.params[i::2], strict=True)) for i in (0, 1)
        )
        # Both networks get the observations; after that each gets its own features.
        joined = [torch.cat(weights[0]), *(block_diag(a, c) for a, c in weights[1:])]
        self._layers = _Layers(joined, [torch.cat(pair) for pair in biases], actor.activation)

    def __call__(
        self, obs: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw actions; returns them with log-probabilities `[B]` and values `[B]`. To be called
        under `torch.no_grad()`."""
        x = self._layers(obs)
        actions, log_probs = self._draw(x[:, :-1], generator=generator)
        return actions, log_probs, x[:, -1]


def actor_in_torch(policy: ActorCritic) -> ActorInTorch | None:
    """The policy's actor in torch, if it is of a kind that Rust could run; otherwise None."""
    if not isinstance(policy, CategoricalActorCritic | GaussianActorCritic):
        return None
    try:
        return ActorInTorch(policy, actor_critic_networks(policy).actor)
    except Unfit:
        return None


def actor_in_rust(policy: ActorCritic) -> ActorInTorch | ActorInRust | None:
    """The policy's actor in Rust if Rust can run it; otherwise as `actor_in_torch`."""
    try:
        return ActorInRust(policy)
    except Unfit:
        return actor_in_torch(policy)


def unfit_for_rust(policy: ActorCritic) -> str | None:
    """Why `actor_in_rust` gives no actor in Rust; None if it does."""
    try:
        fit_for_rust(policy)
    except Unfit as reason:
        return str(reason)
    return None


def join(policy: ActorCritic) -> Joined | None:
    """The policy as one network, if Rust could run it and both its networks have the same number of
    layers and the same activation; otherwise None."""
    if not isinstance(policy, CategoricalActorCritic | GaussianActorCritic):
        return None
    try:
        actor, critic, *_ = actor_critic_networks(policy)
    except Unfit:
        return None
    if len(actor.widths) != len(critic.widths) or actor.activation != critic.activation:
        return None
    if actor.widths[0] != critic.widths[0] or critic.widths[-1] != 1:
        return None
    return Joined(policy, actor, critic)
