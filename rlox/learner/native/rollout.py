"""PPO's rollouts in one call into Rust (R4, with R1, R7 and R8 taken to their end).

Stepping, both networks, sampling and advantages run in Rust, with the interpreter's lock released.
This applies to the built-in environments and the policies of `networks.actor_critic_networks`,
unless a callback is called at each step or another thread collects. All other rollouts are
collected in torch, where Rust may still draw the actions (R17). `PPO.rollout_path` says which path
is taken.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox import _core
from rlox.learner.environments import rust_core
from rlox.learner.native.networks import (
    Network,
    Unfit,
    actor_critic_networks,
    require_plain_parameters,
    vector,
    warn_of_torch,
)

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO


class NativeRollouts:
    """Collects for one trainer, with a stream of random numbers of its own."""

    def __init__(self, model: "PPO") -> None:
        self.model = model
        self.seed = model._new_seed() + model._rank
        self.collected = 0
        self._said = ""

    def unfit(self) -> str | None:
        """Why torch must collect for the trainer as it is now; None if Rust can."""
        try:
            self._parts()
        except Unfit as reason:
            return str(reason)
        return None

    def say(self, reason: str | None) -> None:
        """Warn that torch collects, once for each reason."""
        if reason and reason != self._said and self.model._rank == 0:
            self._said = reason
            warn_of_torch("R4", "rollouts are collected", f"torch: {reason}")

    def _parts(self) -> tuple[_core.VecEnv, Network, Network, list[Tensor]]:
        """Environments, actor, critic and log-deviation; `Unfit` if Rust cannot run them."""
        if self.model.collector != "sync":
            raise Unfit("another thread collects")
        if self.model._each_step:
            names = ", ".join(self.model._each_step)
            raise Unfit(f"{names} has an _on_step, which is called at each step")
        core = rust_core(self.model.vector_env)
        if core is None:
            raise Unfit("the environments run in Python")
        # These environments have Box observations, whose rows `see` does not change.
        actor, critic, log_std, *_ = actor_critic_networks(self.model.policy)
        require_plain_parameters([*actor.params, *critic.params, *log_std])
        return core, actor, critic, log_std

    def collect(self) -> tuple[Tensor, ...] | None:
        """The columns of a `rlox.learner.ppo.Rollout`; None if a callback stops.

        Raises `Unfit` before any step. The next rollout continues where this one ended.
        """
        model = self.model
        env, actor, critic, log_std = self._parts()
        with model.timing.add_time("native_rollout"):
            model.timing.flow("rollout", model._rollout_number)
            columns = _core.collect_rollout(
                env,
                actor.packed(),
                critic.packed(),
                vector(log_std),
                model.n_steps,
                model.gamma,
                model.gae_lambda,
                stream=(self.seed, self.collected),
                running=(model._running_return, model._running_length),
            )
        self.collected += 1
        with model.timing.add_time("store"):
            obs = columns["obs"]
            model._last_obs = obs[-1].copy()
            model._book_rollout(columns["rewards"], columns["dones"], np.s_[:])
            go_on = self._count(
                columns["episode_steps"],
                columns["episode_rewards"].tolist(),
                columns["episode_lengths"].tolist(),
            )
            if not go_on:
                return None
            arrays = (
                obs[:-1],
                columns["actions"],
                columns["log_probs"],
                columns["advantages"],
                columns["returns"],
            )
            return tuple(torch.from_numpy(array).flatten(0, 1) for array in arrays)

    def _count(self, steps: NDArray[np.int64], returns: list[float], lengths: list[int]) -> bool:
        """Count the rollout's steps and the episodes that ended in it; False if a callback stops.

        A callback's `on_step` is called for each step when the rollout is complete. The trainer's
        counters are then those of the step, but the environments are at the rollout's end.
        """
        model = self.model
        if not model._callback.asks_for_steps():
            model._callback.count_calls(model.n_steps)
            model.num_timesteps += model.n_steps * model._all_envs
            model.episode_returns += returns
            model.episode_lengths += lengths
            return True
        ends = np.searchsorted(steps, np.arange(model.n_steps), side="right")
        start = 0
        for end in ends.tolist():
            model.num_timesteps += model._all_envs
            model.episode_returns += returns[start:end]
            model.episode_lengths += lengths[start:end]
            start = end
            if not model._callback.on_step():
                model._last_obs = None  # the environments are ahead of what was counted
                return False
        return True
