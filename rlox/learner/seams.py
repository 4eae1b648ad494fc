"""Steps of training that stand as planned optimisations' seams, chosen at the end of this file."""

from collections.abc import Iterable

import torch
from torch import Tensor

from rlox.learner.policies import ActorCritic
from rlox.timing import Timing


def act_in_two_calls(
    policy: ActorCritic, obs: Tensor, generator: torch.Generator, timing: Timing
) -> tuple[Tensor, Tensor, Tensor]:
    """Actions, log-probabilities and values of `obs`, actor and critic called apart."""
    with timing.add_time("action"):
        actions, log_probs = policy.get_action_and_logprob(obs, generator=generator)
    with timing.add_time("value"):
        values = policy.get_value(obs)
    return actions, log_probs, values


class ListStorage:
    """A rollout as one list of tensors per column, stacked when it is complete."""

    def __init__(self, n_columns: int) -> None:
        self.columns: list[list[Tensor]] = [[] for _ in range(n_columns)]

    def append(self, *step: Tensor) -> None:
        """One step of all environments: `[n_envs, …]` for each column."""
        for column, value in zip(self.columns, step, strict=True):
            column.append(value)

    def stacked(self) -> list[Tensor]:
        """The columns, `[n_steps, n_envs, …]` each."""
        return [torch.stack(column) for column in self.columns]


@torch.no_grad()
def polyak_by_pairs(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """theta_target <- (1 - tau) theta_target + tau theta, parameter by parameter."""
    for param, target in zip(params, target_params, strict=True):
        target.mul_(1 - tau).add_(param, alpha=tau)


act = act_in_two_calls  # R1
RolloutStorage = ListStorage  # R8
polyak_update = polyak_by_pairs  # R5
