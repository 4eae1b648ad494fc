"""Actor and critic as one network: their layers side by side, block-diagonal after the first."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from rlox.learner.policies import (
    ActorCritic,
    CategoricalActorCritic,
    GaussianActorCritic,
)

_ACTIVATIONS: dict[type[nn.Module], Callable[[Tensor], Tensor]] = {
    nn.Tanh: torch.tanh_,
    nn.ReLU: torch.relu_,
}


class Joined:
    """`policy` in one pass, with copies of its weights as they are now: not for training."""

    def __init__(
        self, policy: CategoricalActorCritic | GaussianActorCritic, activations: Sequence[nn.Module]
    ) -> None:
        self.policy = policy
        self.activations = [_ACTIVATIONS[type(module)] for module in activations]
        actor, critic = (_linears(net) for net in (policy.actor, policy.critic))
        pairs = list(zip(actor, critic, strict=True))
        first = torch.cat([layer.weight for layer in pairs[0]])  # both see the observations
        block_diag = cast(Callable[..., Tensor], torch.block_diag)
        blocks = [block_diag(a.weight, c.weight) for a, c in pairs[1:]]
        # Transposed and laid out anew: a product with a row-major right side is the faster one.
        self.weights = [w.detach().t().contiguous() for w in (first, *blocks)]
        self.biases = [torch.cat([a.bias, c.bias]).detach() for a, c in pairs]

    @torch.no_grad()
    def __call__(
        self, obs: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions drawn, their log-probabilities `[B]`, and values `[B]`."""
        x = obs
        for weight, bias, activation in zip(
            self.weights[:-1], self.biases[:-1], self.activations, strict=True
        ):
            x = activation(torch.addmm(bias, x, weight))
        x = torch.addmm(self.biases[-1], x, self.weights[-1])
        actions, log_probs = self.policy.draw(x[:, :-1], generator=generator)
        return actions, log_probs, x[:, -1]


def join(policy: ActorCritic) -> Joined | None:
    """The policy as one network, where it is one of ours (not a subclass, whose methods may say
    something else) and its networks have as many layers and the same activations between them."""
    if type(policy) not in (CategoricalActorCritic, GaussianActorCritic):
        return None
    assert isinstance(policy, CategoricalActorCritic | GaussianActorCritic)
    nets = [policy.actor, policy.critic]
    if len({tuple(map(type, net)) for net in nets}) != 1:
        return None
    linears, activations = list(policy.actor[::2]), list(policy.actor[1::2])
    plain = all(type(layer) is nn.Linear for layer in linears)
    plain = plain and len(linears) == len(activations) + 1
    biased = all(layer.bias is not None for net in nets for layer in _linears(net))
    if not plain or not biased or not all(type(a) in _ACTIVATIONS for a in activations):
        return None
    return Joined(policy, activations)


def _linears(net: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in net if isinstance(layer, nn.Linear)]
