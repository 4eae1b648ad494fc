"""Actor and critic as one network: their layers side by side, block-diagonal after the first."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from rlox.learner.native.networks import Network, Unfit, actor_critic_networks
from rlox.learner.policies import (
    ActorCritic,
    CategoricalActorCritic,
    GaussianActorCritic,
)

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh_, "relu": torch.relu_}


class Joined:
    """`policy` in one pass, with copies of its weights as they are now: not for training."""

    def __init__(
        self,
        policy: CategoricalActorCritic | GaussianActorCritic,
        actor: Network,
        critic: Network,
    ) -> None:
        self.policy = policy
        self.activation = _ACTIVATIONS[actor.activation]
        block_diag = cast(Callable[..., Tensor], torch.block_diag)
        weights, biases = (
            list(zip(actor.params[i::2], critic.params[i::2], strict=True)) for i in (0, 1)
        )
        # Both see the observations; from there on each sees its own.
        joined = [torch.cat(weights[0]), *(block_diag(a, c) for a, c in weights[1:])]
        # Transposed and laid out anew: a product with a row-major right side is the faster one.
        self.weights = [w.detach().t().contiguous() for w in joined]
        self.biases = [torch.cat(pair).detach() for pair in biases]

    @torch.no_grad()
    def __call__(
        self, obs: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions drawn, their log-probabilities `[B]`, and values `[B]`."""
        x = obs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = self.activation(torch.addmm(bias, x, weight))
        x = torch.addmm(self.biases[-1], x, self.weights[-1])
        actions, log_probs = self.policy.draw(x[:, :-1], generator=generator)
        return actions, log_probs, x[:, -1]


def join(policy: ActorCritic) -> Joined | None:
    """The policy as one network, where it is one that Rust would know, and its networks have as
    many layers and the same activation."""
    try:
        actor, critic, _ = actor_critic_networks(policy)
    except Unfit:
        return None
    if len(actor.widths) != len(critic.widths) or actor.activation != critic.activation:
        return None
    if actor.widths[0] != critic.widths[0] or critic.widths[-1] != 1:
        return None
    assert isinstance(policy, CategoricalActorCritic | GaussianActorCritic)
    return Joined(policy, actor, critic)
