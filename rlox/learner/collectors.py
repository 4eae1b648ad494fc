"""PPO's rollouts with the policy in torch: collected step by step, or by a background thread with
environments and GAE in Rust."""

import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox import _core, compute_gae_batched
from rlox.learner import switchboard
from rlox.learner.arguments import require_finite
from rlox.learner.env_steps import Array, EnvSteps
from rlox.learner.environments import rust_core

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO

# Rows in one pass through the policy at a rollout's end, unless a minibatch has more. With so many
# rows the overhead of a call is small for each row.
ROWS = 1024


class Rollout(NamedTuple):
    """The data of one update; the first axis is n_steps * n_envs, step-major."""

    obs: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor


def rollout_in_torch(model: "PPO") -> Rollout | None:
    """Run the policy for `n_steps` in each environment; None if a callback stopped it."""
    timing, last_obs = model.timing, model._current_obs()
    model.policy.train(False)
    act = switchboard.ACT.of(model.optimizations)
    actor = switchboard.ACTOR.of(model.optimizations)
    evaluation = switchboard.EVALUATE.of(model.optimizations)(model.policy, act, actor)
    storage = switchboard.STORAGE.of(model.optimizations)(model.n_steps)
    truncated: list[tuple[int, NDArray[np.intp], Array]] = []
    steps = EnvSteps(model)

    for step in range(model.n_steps):
        model._explore_anew(step)
        with timing.add_time("policy_forward"), torch.no_grad():
            obs = model._tensor(last_obs)
            acted = evaluation.act(obs, model._act_generator, timing)
            drawn = acted[0].cpu().numpy()
            env_actions = model._env_actions(drawn)
        stepped = steps.take(drawn, env_actions, partial(storage.append, obs, *acted))
        if stepped is None:
            return None
        last_obs = stepped.obs
        if stepped.cut_short is not None:
            truncated.append((step, *stepped.cut_short))

    with timing.add_time("gae_compute"):
        obs, *stored, rewards, dones = storage.stacked()
        with timing.add_time("value"), torch.no_grad():
            at_once = max(ROWS, model.batch_size, model.n_envs)
            actions, log_probs, values = evaluation.evaluated(obs, stored, at_once)
            require_finite(log_probs)
            last_values = model.policy.get_value(model._tensor(last_obs))
            # A time limit is not part of the task. The discounted V(final observation) stands for
            # the reward that would have followed, although the episode's return ends here.
            for step, rows, ended_in in truncated:
                bootstrap = model.policy.get_value(model._tensor(ended_in))
                rewards[step, rows] += model.gamma * bootstrap.cpu()
        advantages, returns = compute_gae_batched(
            rewards.numpy(),
            values.cpu().numpy(),
            dones.numpy(),
            last_values.contiguous().cpu().numpy(),
            model.gamma,
            model.gae_lambda,
            layout="step_major",
        )
        rollout = Rollout(
            obs,
            actions,
            log_probs,
            torch.from_numpy(advantages).to(model.device),
            torch.from_numpy(returns).to(model.device),
        )
        return booked(model, rollout, rewards.numpy(), dones.numpy(), steps.idle)


def booked(
    model: "PPO", columns: Rollout, rewards: Array, dones: Array, idle: list[NDArray[np.bool_]]
) -> Rollout:
    """The rollout of these columns, `[n_steps, n_envs, …]`, which are kept for `rollout_buffer`.
    The rows that are `idle` at a step are left out of learning."""
    flat = Rollout(*(column.flatten(0, 1) for column in columns))
    if not idle:
        model._book_rollout(rewards, dones, np.s_[:])
        return flat
    began = np.stack(idle)
    taken = np.flatnonzero(~began)
    model._book_rollout(rewards, np.logical_or(dones, began), taken)
    at = torch.from_numpy(taken).to(model.device)
    return Rollout(*(column.index_select(0, at) for column in flat))


class AsyncRollouts:
    """Collects the next rollout while PPO learns from the last one.

    The collector acts with a copy of the policy. The copy is made when a rollout is handed over and
    the next one begins, so it is one update behind, but never in the middle of an update. The
    collector has its own random numbers, so that the same seed gives the same result however the
    two threads are scheduled.
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
            native_envs(model.vector_env),
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
        """Columns `[n_steps, n_envs, …]` of the current rollout; None if a callback stops.

        If another rollout is needed, its collection begins.
        """
        model = self.model
        with model.timing.add_time("wait_rollout"):
            columns: dict[str, Array] = self.collector.take()
            require_finite(torch.from_numpy(columns["log_probs"]))
        with model.timing.add_time("store"):
            dones = columns["terminated"] | columns["truncated"]
            for rewards, ended in zip(columns["rewards"], dones, strict=True):
                model._count_step(rewards, ended)
            model._book_rollout(columns["rewards"], dones, np.s_[:])
        model._callback.count_calls(model.n_steps - 1)
        if not model._callback.on_step():
            return None
        if not model._finished():
            self.snapshot.load_state_dict(model.policy.state_dict())
            self._act = switchboard.ACT.of(model.optimizations)(self.snapshot)
            self.collector.start()
        return columns

    def flat(self, column: Array) -> Tensor:
        """`[n_steps, n_envs, …]` as a tensor `[n_steps * n_envs, …]`; float types become
        float32."""
        tensor = torch.from_numpy(column).to(self.model.device).flatten(0, 1)
        return tensor.float() if tensor.is_floating_point() else tensor

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
        """Values of the last observations of rollouts and of truncated episodes."""
        with self.model.timing.add_time("gae_compute"), self.model.timing.add_time("value"):
            return _float32(self.snapshot.get_value(self.model._tensor(obs)))


def native_envs(env: object) -> _core.VecEnv:
    """The environments in Rust behind `env`; ValueError if there are none."""
    core = rust_core(env)
    if core is None:
        raise ValueError(
            'collector="async" steps environments in Rust, and this one runs in Python: '
            'use collector="sync"'
        )
    return core


def _float32(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.float().contiguous().cpu().numpy()
