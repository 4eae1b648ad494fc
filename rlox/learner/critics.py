"""SAC's critic with any number of Q functions."""

import torch
from torch import Tensor, nn

from rlox.learner.arguments import require_integers
from rlox.learner.policies import TwinCritic, mlp


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
