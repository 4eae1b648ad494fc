"""The steps of training that planned optimisations change, each in its two forms.

`rlox.learner.switchboard` chooses whether the baseline or the optimised form runs. The forms of
R2 and R3 are in `compiled_ppo` and `compiled_sac`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.learner.flat import CLIP_EPSILON, Flat
from rlox.learner.joined import ActorInRust, ActorInTorch, join
from rlox.learner.native.networks import Unfit, require_plain_adam, require_plain_parameters
from rlox.learner.policies import ActorCritic
from rlox.timing import Timing

Acted = tuple[Tensor, Tensor, Tensor]  # actions, log-probabilities, values
# A function that makes a policy's actor alone, which draws actions; None if that is not possible.
MakesActor = Callable[[ActorCritic], ActorInTorch | ActorInRust | None]


def step_value(policy: ActorCritic) -> Callable[[Tensor], Tensor]:
    """The function for the values of a rollout's steps. A policy may use another one at the end of
    rollouts."""
    found: Callable[[Tensor], Tensor] = getattr(policy, "step_value", policy.get_value)
    return found


class ActInTwoCalls:
    """R1's baseline: actor and critic are called separately. Made anew after each change of
    weights."""

    def __init__(self, policy: ActorCritic) -> None:
        self.policy = policy

    def __call__(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> Acted:
        """Actions, log-probabilities and values for `obs`, `[n_envs, obs_dim]`."""
        with timing.add_time("action"):
            actions, log_probs = self.policy.get_action_and_logprob(obs, generator=generator)
        with timing.add_time("value"):
            values = step_value(self.policy)(obs)
        return actions, log_probs, values


class ActAtOnce(ActInTwoCalls):
    """R1's optimised form: one pass through both networks if the policy allows it; otherwise two
    calls."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__(policy)
        self.joined = join(policy)

    def __call__(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> Acted:
        if self.joined is None:
            return super().__call__(obs, generator, timing)
        with timing.add_time("action"):
            return self.joined(obs, generator)


class EvaluateByStep:
    """R14's baseline: log-probabilities and values are computed at each step. Made anew for each
    rollout."""

    def __init__(self, policy: ActorCritic, act: type[ActInTwoCalls], actor: MakesActor) -> None:
        self._act = act(policy)

    def act(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> tuple[Tensor, ...]:
        """What to store for the step at `obs`, `[n_envs, obs_dim]`; the actions come first."""
        return self._act(obs, generator, timing)

    def evaluated(self, obs: Tensor, stored: Sequence[Tensor], rows: int) -> Acted:
        """Actions, log-probabilities and values of a rollout, `[n_steps, n_envs, …]`, from what
        `act` returned. The policy gets `rows` observations at once."""
        actions, log_probs, values = stored
        return actions, log_probs, values


class EvaluateByRollout(EvaluateByStep):
    """R14's optimised form: a step only draws actions. Values are computed at the rollout's end,
    for many steps together; so are log-probabilities, unless the policy gave them with the actions
    anyway."""

    def __init__(self, policy: ActorCritic, act: type[ActInTwoCalls], actor: MakesActor) -> None:
        self._policy, self._actor = policy, actor(policy)

    def act(self, obs: Tensor, generator: torch.Generator, timing: Timing) -> tuple[Tensor, ...]:
        with timing.add_time("action"):
            if self._actor is not None:
                return (self._actor(obs, generator),)
            return self._policy.get_action_and_logprob(obs, generator=generator)

    def evaluated(self, obs: Tensor, stored: Sequence[Tensor], rows: int) -> Acted:
        actions, *said = stored
        shape = obs.shape[:2]
        parts = torch.split(obs.flatten(0, 1), rows)
        if said:
            values = torch.cat([step_value(self._policy)(part) for part in parts])
            return actions, said[0], values.view(shape)
        pairs = zip(parts, torch.split(actions.flatten(0, 1), rows), strict=True)
        found = [self._policy.evaluate_actions(*pair)[:2] for pair in pairs]
        values, log_probs = (torch.cat(part).view(shape) for part in zip(*found, strict=True))
        return actions, log_probs, values


@torch.no_grad()
def polyak_by_pairs(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """R5's baseline: theta_target <- (1 - tau) theta_target + tau theta, parameter by parameter."""
    for param, target in zip(params, target_params, strict=True):
        target.mul_(1 - tau).add_(param, alpha=tau)


@torch.no_grad()
def polyak_at_once(params: Iterable[Tensor], target_params: Iterable[Tensor], tau: float) -> None:
    """R5's optimised form: the same for all parameters in one call."""
    torch._foreach_lerp_(list(target_params), list(params), tau)


class StepByParameter:
    """R12's baseline: gradients are zeroed, clipped and applied parameter by parameter."""

    def __init__(self, params: Sequence[Tensor], optimizer: torch.optim.Adam) -> None:
        self.params, self.optimizer = params, optimizer

    def zero_grad(self) -> None:
        """Called before a backward pass."""
        self.optimizer.zero_grad()

    def clip(self, max_norm: float) -> None:
        """Scale all gradients to this norm together, as `torch.nn.utils.clip_grad_norm_` does."""
        nn.utils.clip_grad_norm_(self.params, max_norm)

    def step(self) -> None:
        """One step of the optimiser."""
        self.optimizer.step()


class StepAtOnce(StepByParameter):
    """R12's optimised form: parameters, gradients and Adam's moments are one vector each, if they
    can be laid out so; otherwise as in the baseline."""

    def __init__(self, params: Sequence[Tensor], optimizer: torch.optim.Adam) -> None:
        super().__init__(params, optimizer)
        self._flat: Flat | None = None  # as the last `zero_grad` found it

    def _fitting(self) -> Flat | None:
        """The vectors, made anew if a parameter is no longer a view of them. None if such vectors
        cannot be made, or if the optimiser's present settings do not allow this step."""
        params = list(self.params)
        try:
            require_plain_parameters(params)
            require_plain_adam(self.optimizer, params)
            if self._flat is not None and self._flat.holds():
                return self._flat
            flat = Flat(params, self.optimizer)
        except Unfit:
            return None
        self._gradient = torch.zeros_like(flat.tensors[0])
        self._gradients = flat.views(self._gradient)
        return flat

    def zero_grad(self) -> None:
        self._flat = self._fitting()
        if self._flat is None:
            super().zero_grad()
            return
        self._gradient.zero_()
        for param, gradient in zip(self.params, self._gradients, strict=True):
            if param.grad is not gradient:
                param.grad = gradient

    def clip(self, max_norm: float) -> None:
        if self._flat is None:
            super().clip(max_norm)
            return
        norm = torch.linalg.vector_norm(self._gradient)
        self._gradient.mul_((max_norm / (norm + CLIP_EPSILON)).clamp_(max=1.0))

    @torch.no_grad()
    def step(self) -> None:
        if self._flat is None:
            super().step()
            return
        values, exp_avg, exp_avg_sq = self._flat.tensors
        lr, beta1, beta2, eps, _ = self._flat.begin_step()
        torch._fused_adam_(
            [values], [self._gradient], [exp_avg], [exp_avg_sq], [], [self._flat.steps[0]],
            lr=lr, beta1=beta1, beta2=beta2, weight_decay=0.0, eps=eps, amsgrad=False,
            maximize=False,
        )  # fmt: skip


def actions_by_list(actions: NDArray[Any]) -> NDArray[Any]:
    """R7's baseline: discrete actions are converted to a Python list first."""
    if actions.dtype.kind == "i" and actions.min() >= 0:
        return np.asarray(actions.astype(np.uint32).tolist())
    return actions


def actions_as_array(actions: NDArray[Any]) -> NDArray[Any]:
    """R7's optimised form: handed over as they are."""
    return actions


class ListStorage:
    """R8's baseline: a rollout as one list of tensors per column, stacked when it is complete."""

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
    """R8's optimised form: tensors `[n_steps, n_envs, …]`, made for a rollout at its first step,
    written in place. On a CPU through NumPy, since an assignment of torch's costs more than a
    list."""

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
