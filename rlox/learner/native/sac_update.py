"""SAC's update and its actions in Rust, on the trainer's own torch parameters."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox import _core
from rlox.learner.featured import Seeing
from rlox.learner.flat import Flat
from rlox.learner.native.networks import (
    Unfit,
    Watch,
    actor_network,
    critic_networks,
    network_input,
    require_plain_adam,
    require_plain_parameters,
)
from rlox.learner.policies import Temperature

if TYPE_CHECKING:
    from rlox.learner.sac import SAC

# A program that replaces one of these methods expects its own to be called.
STEPS = ("_sample", "update", "target_q", "critic_loss", "actor_loss", "alpha_loss")
OBJECTS = (
    *("policy", "critic", "critic_target", "temperature"),
    *("actor_optimizer", "critic_optimizer", "alpha_optimizer"),
)


def figures(critic_loss: Any, actor_loss: Any, alpha_loss: Any, alpha: Any) -> dict[str, Any]:
    """An update's figures under Stable-Baselines3's names; `alpha` is that after the update. A
    fixed temperature has no loss (None)."""
    told = {
        "train/critic_loss": critic_loss,
        "train/actor_loss": actor_loss,
        "train/ent_coef": alpha,
    }
    return told if alpha_loss is None else told | {"train/ent_coef_loss": alpha_loss}


def shown_alike(one: Seeing | None, other: Seeing | None) -> bool:
    """Whether both turn rows of observations into the same numbers."""
    if one is None or other is None:
        return one is other
    return (one.shown.space, one.shown.scales) == (other.shown.space, other.shown.scales)


def why_not_bfloat16() -> str | None:
    """Why the processor cannot do products of bfloat16 (R20); None if it can."""
    return None if _core.has_bfloat16() else "the processor has no AVX512-BF16"


def why_not_amx() -> str | None:
    """Why AMX cannot do them (R22); None if it can."""
    return None if _core.has_amx() else "no AMX, or this process may not use it"


def warn_of_float32(update_path: str) -> None:
    """Warn that R20, which was asked for, does nothing, if that is so."""
    why = why_not_bfloat16() if update_path == "native" else "updates run in torch"
    if why:
        warnings.warn(f"R20: products stay float32: {why}", stacklevel=3)


class NativeUpdate:
    """Does what `SAC.train_once` does, and draws the policy's actions, without torch's operators.

    Losses, optimisers and random numbers are those of the torch path; results differ by the
    rounding of float32. Raises `Unfit`, with the reason, for a trainer that uses anything else.
    """

    def __init__(self, model: "SAC") -> None:
        for step in STEPS:
            if getattr(model, step).__module__ != "rlox.learner.sac":
                raise Unfit(f"{step} is replaced")
        if type(model.temperature) is not Temperature:
            raise Unfit(f"the temperature is a {type(model.temperature).__name__}")
        actor, self.see = actor_network(model.policy)
        parts = critic_networks(model.critic), critic_networks(model.critic_target)
        (*critics, see), (*targets, see_targets) = parts
        if not shown_alike(self.see, see) or not shown_alike(self.see, see_targets):
            raise Unfit("actor and critics are shown observations differently")
        shapes = [network[:2] for network in (actor, *critics)]
        if shapes[1:] != [network[:2] for network in targets]:
            raise Unfit("the target critics have another shape than the critics")
        critic_params: list[Tensor] = [*critics[0].params, *critics[1].params]
        target_params: list[Tensor] = [*targets[0].params, *targets[1].params]
        log_alpha: list[Tensor] = [model.temperature.log_alpha]
        require_plain_parameters([*actor.params, *critic_params, *target_params, *log_alpha])
        require_plain_adam(model.actor_optimizer, actor.params)
        require_plain_adam(model.critic_optimizer, critic_params)
        if model.alpha_optimizer is not None:
            require_plain_adam(model.alpha_optimizer, log_alpha)
        optimizers = (model.actor_optimizer, model.critic_optimizer, model.alpha_optimizer)
        self.watch = Watch(
            [model.policy, model.critic, model.critic_target, model.temperature],
            [optimizer for optimizer in optimizers if optimizer is not None],
        )
        self.watch.require_undisturbed()

        bfloat16 = "R20" in model.optimizations and why_not_bfloat16() is None
        amx, fused = (id_ in model.optimizations for id_ in ("R22", "R23"))
        self.core = _core.SacUpdate(shapes[0], (shapes[1], shapes[2]), bfloat16, amx, fused)
        self.actor = Flat(actor.params, model.actor_optimizer)
        self.critics = Flat(critic_params, model.critic_optimizer)
        self.targets = Flat(target_params, None)
        self.log_alpha = Flat(log_alpha, model.alpha_optimizer)
        if model.alpha_optimizer is None:  # alpha is fixed, and needs no moments
            self.log_alpha.arrays += (np.zeros(1, np.float32), np.zeros(1, np.float32))
        self._objects = [getattr(model, name) for name in OBJECTS]
        self._noise: NDArray[np.float32] = np.empty((2, 0, 0), np.float32)
        self._draws: tuple[Tensor, ...] = ()  # the same memory, for each of the two draws
        self.threads = min(2, torch.get_num_threads())

    @contextmanager
    def torch_held(self) -> Iterator[None]:
        """In this block updates use as many threads as torch had, up to two, and torch uses one.

        torch's threads wait actively for a while after each operator, on the cores that Rust needs.
        """
        before, own = torch.get_num_threads(), self.threads
        self.threads = min(2, before)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            self.threads = own

    def fits(self, model: "SAC") -> bool:
        """Whether nothing has changed since; cheap enough to be called before each update."""
        try:
            self.watch.require_undisturbed()
        except Unfit:
            return False
        return (
            all(getattr(model, name) is it for name, it in zip(OBJECTS, self._objects, strict=True))
            and vars(model).keys().isdisjoint(STEPS)
            and self.actor.holds()
            and self.critics.holds()
            and self.targets.holds()
            and self.log_alpha.holds()
        )

    def _input(self, model: "SAC", obs: NDArray[Any]) -> NDArray[np.float32]:
        """The networks' input for rows of observations."""
        see = None if self.see is None else self.see._seen
        return network_input(model, see, obs)

    def act(self, model: "SAC", obs: NDArray[Any]) -> NDArray[np.float32]:
        """Actions `[n, act_dim]` that the policy draws for `obs`, `[n, obs_dim]`."""
        noise = torch.randn(len(obs), model.act_dim, generator=model._act_generator)
        return self.core.act(self.actor.arrays[0], self._input(model, obs), noise.numpy())

    def train_once(self, model: "SAC") -> dict[str, Any]:
        """One update from a fresh batch, and its figures."""
        timing = model.timing
        with timing.add_time("sample"):
            batch: Any = model._draw()
            if self.see is not None or batch["obs"].dtype != np.float32:
                seen = {name: self._input(model, batch[name]) for name in ("obs", "next_obs")}
                batch = {**batch, **seen}
            shape = 2, len(batch["reward"]), model.act_dim
            if self._noise.shape != shape:
                noise = torch.empty(shape)
                self._noise, self._draws = noise.numpy(), noise.unbind()
            for draw in self._draws:  # twice, as in the torch path
                draw.normal_(generator=model._act_generator)
        with timing.add_time("native_update"):
            learned = model.alpha_optimizer is not None
            critic_loss, actor_loss, alpha_loss, td_errors = self.core.update(
                self.actor.arrays,
                self.critics.arrays,
                self.targets.arrays[0],
                self.log_alpha.arrays,
                batch,
                self._noise,
                gamma=model.gamma,
                tau=model.tau if model._moves_targets else 0.0,
                target_entropy=model.target_entropy,
                adams=(
                    self.actor.begin_step(),
                    self.critics.begin_step(),
                    self.log_alpha.begin_step() if learned else None,
                ),
                threads=self.threads,
            )
        if "indices" in batch:
            model._prioritize(batch["indices"], td_errors)
        return figures(critic_loss, actor_loss, alpha_loss, math.exp(self.log_alpha.arrays[0][0]))
