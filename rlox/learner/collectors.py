"""Rollouts for PPO from a background thread: environments and GAE in Rust, the policy in torch."""

import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox import _core
from rlox.learner import switchboard
from rlox.learner.arguments import require_finite
from rlox.learner.environments import rust_core

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO

Array = NDArray[Any]


class AsyncRollouts:
    """Collects the next rollout while PPO learns from the last one.

    The collector acts with a copy of the policy, made when a rollout is handed over and the next
    one begins: one update behind, but never in the middle of one. With its own random numbers, the
    same seed gives the same result however the two threads are scheduled.
    """

    def __init__(self, model: "PPO") -> None:
        if model._each_step:
            raise ValueError(
                f"{', '.join(model._each_step)}: an _on_step is called between a step and the "
                'next, and collector="async" steps in the background; use collector="sync", or '
                "an on_step, which is called after each rollout"
            )
        self.model = model
        self.snapshot = copy.deepcopy(model.policy).requires_grad_(False)
        self.snapshot.train(False)
        self._act = switchboard.ACT.of(model.optimizations)(self.snapshot)
        model._current_obs()
        self.collector = _core.AsyncCollector(
            native_envs(model.env),
            self.act,
            self.value,
            n_steps=model.n_steps,
            gamma=model.gamma,
            gae_lambda=model.gae_lambda,
        )

    def __enter__(self) -> Self:
        self.collector.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.collector.close()

    def take(self) -> dict[str, Array] | None:
        """Columns `[n_steps, n_envs, …]` of the rollout under way; None if a callback stops.

        The next one is begun if it is needed.
        """
        model = self.model
        with model.timing.add_time("wait_rollout"):
            columns: dict[str, Array] = self.collector.take()
            require_finite(torch.from_numpy(columns["log_probs"]))
        with model.timing.add_time("store"):
            dones = columns["terminated"] | columns["truncated"]
            for rewards, ended in zip(columns["rewards"], dones, strict=True):
                model._count_step(rewards, ended)
        if not model._callback.on_step():
            return None
        if not model._finished():
            self.snapshot.load_state_dict(model.policy.state_dict())
            self._act = switchboard.ACT.of(model.optimizations)(self.snapshot)
            self.collector.start()
        return columns

    @torch.no_grad()
    def act(self, obs: Array) -> tuple[Array, Array, Array]:
        """Actions, log-probabilities and values; called in the collector's thread."""
        timing = self.model.timing
        with timing.add_time("policy_forward"):
            actions, log_probs, values = self._act(
                self.model._tensor(obs), self.model._act_generator, timing
            )
            return actions.cpu().numpy(), _float32(log_probs), _float32(values)

    @torch.no_grad()
    def value(self, obs: Array) -> Array:
        """Values of the observations that rollouts and truncated episodes end in."""
        with self.model.timing.add_time("gae_compute"), self.model.timing.add_time("value"):
            return _float32(self.snapshot.get_value(self.model._tensor(obs)))


def native_envs(env: object) -> _core.VecEnv:
    """The environments in Rust behind `env`; ValueError if they are not there."""
    core = rust_core(env)
    if core is None:
        raise ValueError(
            'collector="async" steps environments in Rust, and this one runs in Python: '
            'use collector="sync"'
        )
    return core


def _float32(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.float().contiguous().cpu().numpy()
