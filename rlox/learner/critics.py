"""SAC's critic with any number of Q functions, and how its policy learns of its critics."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rlox.learner.arguments import require_integers
from rlox.learner.policies import SacPolicy, TwinCritic, mlp

if TYPE_CHECKING:
    from rlox.learner.sac import SAC


class SeveralCritics(nn.Module):
    """As `TwinCritic`, with any number `n` of Q functions."""

    def __init__(
        self,
        n: int,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...],
        activation: type[nn.Module],
    ) -> None:
        super().__init__()
        self.n = n
        for i in range(n):  # under Stable-Baselines3's names
            self.add_module(f"qf{i}", mlp([obs_dim + act_dim, *hidden, 1], activation))

    def forward(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, ...]:
        x = torch.cat([obs, actions], dim=-1)
        return tuple(self.get_submodule(f"qf{i}")(x).squeeze(-1) for i in range(self.n))


def q_functions(
    n: int, obs_dim: int, act_dim: int, hidden: tuple[int, ...], activation: type[nn.Module]
) -> nn.Module:
    """SAC's critic with `n` Q functions. Two are a `TwinCritic`, which Rust can run. ValueError for
    n below 1."""
    if n == 2:
        return TwinCritic(obs_dim, act_dim, hidden, activation)
    require_integers(1, n_critics=n)
    return SeveralCritics(n, obs_dim, act_dim, hidden, activation)


def copy_statistics(critic: nn.Module, target: nn.Module) -> None:
    """Give the target critic the buffers of the critic, such as the statistics of batch norm, which
    only training gathers."""
    for ours, theirs in zip(critic.buffers(), target.buffers(), strict=True):
        theirs.copy_(ours)


class KnownToPolicy:
    """An attribute of `SAC` whose new value a `SacPolicy` learns of. Without `__get__`, reading it
    takes no longer than reading another one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, model: "SAC", value: nn.Module) -> None:
        held = vars(model)
        held[self._name] = value
        if "critic_target" in held and isinstance(model.policy, SacPolicy):
            model.policy.critics = model.critic, model.critic_target
