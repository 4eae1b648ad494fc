"""Steps of training that stand as planned optimisations' seams: each as it was and as it became.

Which of the two runs is chosen in `rlox.learner.switchboard`. R2 and R3 are in `compiled_ppo` and
`compiled_sac`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.joined import join
from rlox.learner.policies import ActorCritic
from rlox.timing import Timing

Acted = tuple[Tensor, Tensor, Tensor]  # actions, log-probabilities, values


class ActInTwoCalls:
    """R1 before: actor and critic called apart. Made anew whenever the weights have changed."""

    def __init__(self, policy: ActorCritic) -> None:
        self.policy = policy

    def __call__(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> Acted:
        """What to do in `obs`, `[n_envs, obs_dim]`."""
        with timing.add_time("action"):
            actions, log_probs = self.policy.get_action_and_logprob(obs, generator=generator)
        with timing.add_time("value"):
            values = self.policy.get_value(obs)
        return actions, log_probs, values


class ActAtOnce(ActInTwoCalls):
    """R1 after: one pass through both networks, for policies that allow it; else two calls."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__(policy)
        self.joined = join(policy)

    def __call__(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> Acted:
        if self.joined is None:
            return super().__call__(obs, generator, timing)
        with timing.add_time("action"):
            return self.joined(obs, generator)


@torch.no_grad()
def polyak_by_pairs(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """R5 before: theta_target <- (1 - tau) theta_target + tau theta, parameter by parameter."""
    for param, target in zip(params, target_params, strict=True):
        target.mul_(1 - tau).add_(param, alpha=tau)


@torch.no_grad()
def polyak_at_once(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """R5 after: the same of all parameters in one call."""
    torch._foreach_lerp_(list(target_params), list(params), tau)


def actions_by_list(actions: NDArray[Any]) -> NDArray[Any]:
    """R7 before: discrete actions make a detour through a Python list."""
    if actions.dtype.kind == "i" and actions.min() >= 0:
        return np.asarray(actions.astype(np.uint32).tolist())
    return actions


def actions_as_array(actions: NDArray[Any]) -> NDArray[Any]:
    """R7 after: handed over as they are."""
    return actions


class ListStorage:
    """R8 before: a rollout as one list of tensors per column, stacked when it is complete."""

    def __init__(self, n_steps: int) -> None:
        self.steps: list[list[Tensor]] = []

    def append(self, *step: Tensor | NDArray[Any]) -> None:
        """One step of all environments, `[n_envs, …]` for each column; arrays become float32."""
        self.steps.append(
            [
                value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float32)
                for value in step
            ]
        )

    def stacked(self) -> list[Tensor]:
        """The columns, `[n_steps, n_envs, …]` each."""
        return [torch.stack(column) for column in zip(*self.steps, strict=True)]


class PreallocatedStorage:
    """R8 after: tensors `[n_steps, n_envs, …]`, made for a rollout at its first step, written in
    place. On a CPU through NumPy, since an assignment of torch's costs more than a list."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps, self.step = n_steps, 0
        self.columns: list[Tensor] = []
        self._writable: list[tuple[Any, bool]] = []  # and whether a tensor is to be read by NumPy

    def append(self, *step: Tensor | NDArray[Any]) -> None:
        """As `ListStorage.append`."""
        if not self.columns:
            for value in step:
                make = value.new_empty if isinstance(value, Tensor) else torch.empty
                column = make((self.n_steps, *value.shape))
                on_cpu = column.device.type == "cpu"
                self.columns.append(column)
                self._writable.append(
                    (column.numpy() if on_cpu else column, on_cpu and isinstance(value, Tensor))
                )
        for (column, read), value in zip(self._writable, step, strict=True):
            column[self.step] = value.numpy(force=True) if read else value  # type: ignore[union-attr]
        self.step += 1

    def stacked(self) -> list[Tensor]:
        """As `ListStorage.stacked`."""
        return self.columns
