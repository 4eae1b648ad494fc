"""PPO's gradient steps in Rust, on the trainer's own torch parameters (R9, R23, R24)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from rlox import _core
from rlox.learner.flat import Flat
from rlox.learner.native.networks import (
    Unfit,
    Watch,
    actor_critic_networks,
    require_plain_adam,
    require_plain_parameters,
    require_room,
)

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO, Rollout


class NativeUpdate:
    """Does what `PPO.train` does with a rollout, without torch's operators.

    Minibatches, loss and optimiser are those of the torch path; results differ by the rounding of
    float32. Raises `Unfit`, with the reason, for a trainer that uses anything else.
    """

    def __init__(self, model: "PPO") -> None:
        if model.loss.__module__ != "rlox.learner.ppo":
            raise Unfit("the loss is replaced")
        parts = actor_critic_networks(model.policy)
        require_room(model, parts)
        actor, critic, log_std, self.nvec, self.see, self.bits = parts
        if self.see is None and {actor.widths[0], critic.widths[0]} != {model.obs_dim}:
            raise Unfit("a network does not take the observations as they are")
        if critic.widths[-1] != 1:
            raise Unfit("the critic has more than one output")
        params = [*actor.params, *critic.params, *log_std]
        require_plain_parameters(params)
        require_plain_adam(model.optimizer, params)
        self.policy, self.watch = model.policy, Watch([model.policy], [model.optimizer])
        self.watch.require_undisturbed()
        self.flat = Flat(params, model.optimizer)
        ends = [sum(p.numel() for p in part.params) for part in (actor, critic)]
        cut = slice(0, ends[0]), slice(ends[0], sum(ends)), slice(sum(ends), None)
        # Parameters and the two moments, for each part.
        moments: Any = [tuple(array[part] for array in self.flat.arrays) for part in cut]
        self.actor = actor.widths, actor.activation, moments[0]
        self.critic = critic.widths, critic.activation, moments[1]
        self.log_std = moments[2] if log_std else None

    def fits(self, model: "PPO") -> bool:
        """Whether nothing has changed since; cheap enough to be called before each update."""
        try:
            self.watch.require_undisturbed()
        except Unfit:
            return False
        return (
            model.policy is self.policy
            and model.optimizer is self.flat.optimizer
            and "loss" not in vars(model)
            and self.flat.holds()
        )

    def train(self, model: "PPO", rollout: "Rollout") -> tuple[float, ...] | None:
        """`n_epochs` of minibatches; the values of `rlox.learner.ppo.FIGURES`, or None where
        `target_kl` ended the update before the first."""
        n = len(rollout.obs)
        order, states = self._epochs(model, n)
        group = model.optimizer.param_groups[0]
        if self.see is not None:
            with torch.no_grad():
                rollout = rollout._replace(obs=self.see(rollout.obs))
        columns: Any = tuple(column.contiguous().numpy() for column in rollout)
        before, most = int(self.flat.steps[0]), -(-n // model.batch_size) * model.n_epochs
        self.flat.steps += most  # now, since Ctrl-C during the update comes when it is through
        with model.timing.add_time("native_update"), self._undone(most):
            figures, n_minibatches = _core.ppo_update(
                self.actor,
                self.critic,
                self.log_std,
                columns,
                order.numpy(),
                before,
                batch_size=model.batch_size,
                clip_range=model.clip_range,
                normalize_advantage=model.normalize_advantage,
                ent_coef=model.ent_coef,
                vf_coef=model.vf_coef,
                max_grad_norm=model.max_grad_norm,
                lr=group["lr"],
                betas=group["betas"],
                eps=group["eps"],
                clip_range_vf=model.clip_range_vf,
                target_kl=model.target_kl,
                nvec=self.nvec,
                bits=self.bits,
                threads=model._update_threads,
                fused="R23" in model.optimizations,
                by_columns="R24" in model.optimizations,
            )
        self.flat.steps += n_minibatches - most
        begun = min(n_minibatches // -(-n // model.batch_size) + 1, model.n_epochs)
        model._n_updates += begun
        if states:
            model._shuffle_generator.set_state(states[begun - 1])
        return figures if n_minibatches else None

    @contextmanager
    def _undone(self, steps: int) -> Iterator[None]:
        """If Rust refuses the update in this block, so many steps of Adam were not made."""
        try:
            yield
        except (ValueError, TypeError, MemoryError):
            self.flat.steps -= steps
            raise

    def _epochs(self, model: "PPO", n: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """A permutation for each epoch. If `target_kl` may end the update early, also the
        generator's state after each epoch, so that the generator can be set back to the last epoch
        that ran."""
        generator = model._shuffle_generator
        orders, states = [], []
        for _ in range(model.n_epochs):
            orders.append(torch.randperm(n, generator=generator))
            if model.target_kl is not None:
                states.append(generator.get_state())
        return torch.cat(orders), states
