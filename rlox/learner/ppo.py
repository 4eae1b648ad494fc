"""Proximal Policy Optimization, Schulman et al. 2017 (arXiv 1707.06347).

Names, habits and defaults are those of Stable-Baselines3, except for the size of a rollout and of
its minibatches.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from rlox import compute_gae_batched
from rlox.learner import switchboard
from rlox.learner.algorithm import Algorithm
from rlox.learner.arguments import (
    require_finite,
    require_flags,
    require_integers,
    require_methods,
    require_numbers,
    require_one_of,
)
from rlox.learner.collectors import AsyncRollouts, native_envs
from rlox.learner.compiled_ppo import EagerMinibatch
from rlox.learner.environments import AnyEnv, final_obs, flatten_obs
from rlox.learner.finite import NOBODY
from rlox.learner.native.networks import Unfit, native_if_fit, warn_of_torch
from rlox.learner.native.ppo_update import NativeUpdate
from rlox.learner.native.rollout import NativeRollouts
from rlox.learner.policies import ActorCritic, default_actor_critic
from rlox.learner.spaces import warn_of_flattening

# In a pass through the policy at a rollout's end, unless a minibatch has more: so many that the
# calls themselves cost little a row.
ROWS = 1024
POLICY_METHODS = ("get_action_and_logprob", "get_value", "evaluate_actions")
FIGURES = (
    "train/loss",
    "train/policy_gradient_loss",
    "train/value_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/clip_fraction",
)


class Rollout(NamedTuple):
    """What one update learns from; the first axis is n_steps * n_envs, step-major."""

    obs: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor


class PPO(Algorithm):
    """Clipped PPO for `Box` observations and `Discrete` or `Box` actions.

    Args:
        env: id of a registered environment, one environment, or a vector environment. What is
            made of an id returns the same arrays at every step, as `VecEnv(…, copy=False)` does:
            who steps `model.env` copies what is kept.
        n_envs: environments to make of an id (8, or 32 with R11); other forms of `env` bring their
            own number.
        seed: same seed, same result (on a CPU with the same number of threads, to the bit).
        n_steps: steps per environment between updates.
        batch_size: transitions per minibatch; the last one of an epoch may be smaller.
        n_epochs: passes over a rollout.
        learning_rate: Adam's.
        gamma: discount.
        gae_lambda: bias against variance of the advantages (Schulman et al. 2016).
        clip_range: epsilon of equation 7.
        normalize_advantage: to mean 0 and deviation 1, in each minibatch.
        ent_coef: c2 of equation 9.
        vf_coef: c1 of equation 9.
        max_grad_norm: the gradient is clipped to this length.
        collector: "sync" steps and learns in turn. "async" steps in a background thread while
            learning, with the policy as it was before the update; natively implemented
            environments only.
        policy: an `rlox.learner.policies.ActorCritic` to use instead of two 64 x 64 tanh networks.
        optimizations: ids of the planned optimisations to train with, such as {"R1", "R2"}; None:
            those whose numbers are in (`rlox.learner.switchboard.ACCEPTED`), of which compiling
            only serves runs long enough to repay it.
        device: where torch computes ("cpu", or "auto" with R10); "auto" takes a GPU if there is
            one.
        threads: torch's while learning; None: one where every product is small, else torch's own.
            Updates in Rust take two at most, and no more than are given.
        matmul_precision: of float32 products while learning, as
            `torch.set_float32_matmul_precision` takes it; "medium" computes in bfloat16 where the
            machine can, which changes the numbers in their third digit; what PPO learns with it is
            in `tests/learning/lean-torch/`. (Callbacks see "medium" where R13 has oneDNN
            multiply, in float32.)
        tensorboard_log: folder for TensorBoard's event files, each run in a folder of its own
            within: PPO_1, PPO_2, ….

    Attributes `rollout_path` and `update_path`: "native" where rollouts (R4) and updates (R9) run
    in Rust, else "torch", with the reason if the optimisation was asked for.
    """

    policy: ActorCritic
    _state: tuple[str, ...] = ("policy", "optimizer")
    _generators = (*Algorithm._generators, "_shuffle_generator")
    _joins = True

    def __init__(
        self,
        env: str | gym.Env[Any, Any] | AnyEnv,
        n_envs: int | None = None,
        seed: int | None = None,
        n_steps: int = 128,
        batch_size: int = 512,
        n_epochs: int = 4,
        learning_rate: float = 3e-4,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: float = 0.2,
        normalize_advantage: bool = True,
        ent_coef: float = 0.0,
        vf_coef: float = 0.5,
        max_grad_norm: float = 0.5,
        collector: Literal["sync", "async"] = "sync",
        policy: ActorCritic | None = None,
        optimizations: Collection[str] | None = None,
        device: str | torch.device | None = None,
        threads: int | None = None,
        matmul_precision: Literal["highest", "high", "medium"] = "highest",
        tensorboard_log: str | Path | None = None,
    ) -> None:
        super().__init__(
            env, n_envs, switchboard.PPO_ENVS, optimizations, seed, device, threads,
            matmul_precision, tensorboard_log, arguments=locals(),
        )  # fmt: skip
        require_integers(1, n_steps=n_steps, batch_size=batch_size, n_epochs=n_epochs)
        require_numbers(0, learning_rate=learning_rate, vf_coef=vf_coef)
        require_numbers(0, np.inf, clip_range=clip_range, max_grad_norm=max_grad_norm)
        require_numbers(0, 1, gamma=gamma, gae_lambda=gae_lambda)
        require_numbers(ent_coef=ent_coef)
        require_flags(normalize_advantage=normalize_advantage)
        require_one_of("collector", collector, ("sync", "async"))
        if not isinstance(self.action_space, spaces.Discrete | spaces.Box):
            raise ValueError(
                f"action space {self.action_space} is not supported: PPO acts in Discrete and Box; "
                "wrap the environment with gymnasium.wrappers.TransformAction"
            )
        if collector == "async":
            native_envs(self.env)  # or a ValueError
            if self._workers:
                raise ValueError('collector="async" trains in one process; use collector="sync"')
        # Python's: what is counted with them is saved.
        self.n_steps, self.batch_size, self.n_epochs = int(n_steps), int(batch_size), int(n_epochs)
        self.gamma, self.gae_lambda = float(gamma), float(gae_lambda)
        self.clip_range, self.max_grad_norm = float(clip_range), float(max_grad_norm)
        self.ent_coef, self.vf_coef, self.collector = float(ent_coef), float(vf_coef), collector
        self.normalize_advantage = bool(normalize_advantage)

        if policy is None:
            warn_of_flattening(self.observation_space, "policy=…")
            with self._seeded_initialisation():
                policy = default_actor_critic(self.obs_dim, self.action_space)
        require_methods("policy", policy, POLICY_METHODS)
        self.policy = policy.to(self.device)
        self.optimizer = self._adam(self.policy, learning_rate, eps=1e-5)
        self._shuffle_generator = self._generator()
        self._rollout_number = 0  # of the rollout that is collected, or learnt from
        self._minibatches: dict[tuple[Any, ...], EagerMinibatch] = {}
        self._native_rollouts = NativeRollouts(self) if "R4" in self.optimizations else None
        self._update_threads = min(2, threads or torch.get_num_threads())  # of Rust's
        self._choose_update()

    def _choose_update(self) -> None:
        """R9: updates run in Rust if all that takes part in them is known there."""
        self._native, self.update_path = native_if_fit(
            partial(NativeUpdate, self), wanted="R9" in self.optimizations
        )

    def _train_until_end(self) -> None:
        """Algorithm 1: run the old policy for T steps, compute advantages, optimise the surrogate.

        The last rollout may overshoot `total_timesteps`, as in Stable-Baselines3.
        """
        self._choose_update()
        if self._rank == 0:
            warn_of_torch("R9", "updates run", self.update_path)
        if self._native_rollouts is not None:
            self._native_rollouts.say(self._native_rollouts.unfit())
        if self.collector == "async":
            with AsyncRollouts(self) as rollouts:
                while not self._finished():
                    self._callback.on_rollout_start()
                    if (columns := rollouts.take()) is None:
                        return
                    self._update(Rollout(*(self._flat(columns[c]) for c in Rollout._fields)))
        else:
            if self._workers:
                self._workers.align([*self.policy.parameters(), *self.policy.buffers()])
            self._current_obs()
            while not self._finished() and (rollout := self._collect()):
                self._update(rollout)

    def _collect(self) -> Rollout | None:
        self._callback.on_rollout_start()
        self._rollout_number = self._rank << 40 | self.num_timesteps
        return self._workers.collect(self) if self._workers else self.collect_rollout()

    def _streams(self) -> dict[str, Tensor]:
        native = self._native_rollouts
        more = {"native": torch.tensor([native.seed, native.collected])} if native else {}
        return super()._streams() | more

    def _set_streams(self, streams: Mapping[str, Tensor]) -> None:
        super()._set_streams(streams)
        if self._native_rollouts and "native" in streams:
            seed, collected = streams["native"].tolist()
            self._native_rollouts.seed, self._native_rollouts.collected = seed, collected

    @property
    def rollout_path(self) -> str:
        """ "native" where the next rollout is collected in Rust (R4), else "torch", with the reason
        if R4 was asked for."""
        if self._native_rollouts is None:
            return "torch"
        reason = self._native_rollouts.unfit()
        return "native" if reason is None else f"torch: {reason}"

    def collect_rollout(self) -> Rollout | None:
        """Run the policy for `n_steps` in each environment; None if a callback stopped it."""
        if self._native_rollouts is not None:
            try:
                columns = self._native_rollouts.collect()
            except Unfit as reason:
                self._native_rollouts.say(str(reason))
            else:
                return None if columns is None else Rollout(*columns)
        timing, last_obs = self.timing, self._current_obs()
        self.policy.train(False)
        act = switchboard.ACT.of(self.optimizations)
        evaluation = switchboard.EVALUATE.of(self.optimizations)(self.policy, act)
        storage = switchboard.STORAGE.of(self.optimizations)(self.n_steps)
        truncated: list[tuple[int, NDArray[np.intp], NDArray[Any]]] = []

        for step in range(self.n_steps):
            with timing.add_time("policy_forward"), torch.no_grad():
                obs = self._tensor(last_obs)
                acted = evaluation.act(obs, self._act_generator, timing)
                env_actions = self._env_actions(acted[0].cpu().numpy())
            with timing.add_time("env_step"):
                timing.flow("rollout", self._rollout_number)
                new_obs, rewards, terminations, truncations, infos = self.env.step(env_actions)
            with timing.add_time("store"):
                dones = terminations | truncations
                last_obs = flatten_obs(new_obs, self.observation_space)
                cut_short = truncations & ~terminations
                rows, ended_in = NOBODY, None
                if np.count_nonzero(cut_short):
                    rows = np.flatnonzero(cut_short)
                    ended_in = final_obs(infos, rows, self.observation_space)
                    truncated.append((step, rows, ended_in))
                self._finite.step(last_obs, rewards, dones, rows, ended_in)
                storage.append(obs, *acted, rewards, dones)
                self._last_obs = last_obs
                self._count_step(rewards, dones)
            if not self._tell_step(env_actions, new_obs, rewards, terminations, truncations, infos):
                return None

        with timing.add_time("gae_compute"):
            obs, *stored, rewards, dones = storage.stacked()
            with timing.add_time("value"), torch.no_grad():
                at_once = max(ROWS, self.batch_size, self.n_envs)
                actions, log_probs, values = evaluation.evaluated(obs, stored, at_once)
                require_finite(log_probs)
                last_values = self.policy.get_value(self._tensor(last_obs))
                # A time limit is not part of the task: what would have followed is worth
                # V(final observation), although the return of this episode ends here.
                for step, rows, ended_in in truncated:
                    bootstrap = self.policy.get_value(self._tensor(ended_in))
                    rewards[step, rows] += self.gamma * bootstrap.cpu()
            advantages, returns = compute_gae_batched(
                rewards.numpy(),
                values.cpu().numpy(),
                dones.numpy(),
                last_values.contiguous().cpu().numpy(),
                self.gamma,
                self.gae_lambda,
                layout="step_major",
            )
            rollout = Rollout(
                obs,
                actions,
                log_probs,
                torch.from_numpy(advantages).to(self.device),
                torch.from_numpy(returns).to(self.device),
            )
            return Rollout(*(column.flatten(0, 1) for column in rollout))

    def _flat(self, column: NDArray[Any]) -> Tensor:
        """`[n_steps, n_envs, …]` as a tensor `[n_steps * n_envs, …]`, float32 if it has floats."""
        tensor = torch.from_numpy(column).to(self.device).flatten(0, 1)
        return tensor.float() if tensor.is_floating_point() else tensor

    def _update(self, rollout: Rollout) -> None:
        self._callback.on_rollout_end()
        with self.timing.add_time("gradient_update"):
            self.timing.flow("rollout", self._rollout_number)
            self.train(rollout)

    def train(self, rollout: Rollout) -> None:
        """`n_epochs` of minibatch Adam on the surrogate of one rollout."""
        if self._native is not None and not self._native.fits(self):
            self._choose_update()
        if self._workers:
            self._show(self._workers.train(self, rollout))
            return
        if self._native is not None:
            self._show(self._native.train(self, rollout))
            return
        self.policy.train(True)
        minibatch = self._minibatch()
        minibatch.begin()
        learnt = []
        for _ in range(self.n_epochs):
            order = torch.randperm(
                len(rollout.obs), generator=self._shuffle_generator, device=self.device
            )
            learnt += [minibatch(rollout, at) for at in torch.split(order, self.batch_size)]
        self._show(torch.stack(learnt).mean(dim=0).cpu().numpy())

    def _show(self, figures: Sequence[float] | NDArray[np.float32]) -> None:
        self._log(dict(zip(FIGURES, figures, strict=True)))

    def _minibatch(self) -> EagerMinibatch:
        """How a minibatch is learnt from; what has been compiled is kept, for the objects that it
        was compiled with."""
        form = switchboard.MINIBATCH.of(self.optimizations)
        key = (form, *(getattr(self, name) for name in self._state))
        if key not in self._minibatches:
            params = list(self.policy.parameters())
            stepper = switchboard.STEP.of(self.optimizations)(params, self.optimizer)
            self._minibatches[key] = form(self, stepper)
        return self._minibatches[key]

    def loss(
        self, batch: Rollout, normalize_advantage: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Minus the objective of equation 9, and the values of `FIGURES`; `normalize_advantage` in
        place of the trainer's."""
        values, log_probs, entropy = self.policy.evaluate_actions(batch.obs, batch.actions)
        advantages = batch.advantages
        if normalize_advantage is None:
            normalize_advantage = self.normalize_advantage
        if normalize_advantage and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

        log_ratio = log_probs - batch.log_probs
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()  # equation 7
        value_loss = F.mse_loss(values, batch.returns)
        entropy_loss = -entropy.mean()
        loss = policy_loss + self.vf_coef * value_loss
        if self.ent_coef:  # at 0, nothing needs to go backward through the entropy
            loss = loss + self.ent_coef * entropy_loss

        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).mean()
            clip_fraction = ((ratio - 1).abs() > self.clip_range).float().mean()
            figures = torch.stack(
                [loss, policy_loss, value_loss, entropy_loss, approx_kl, clip_fraction]
            )
        return loss, figures

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Discrete actions from `start` on; continuous ones clipped to the box, for it alone."""
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            hand_over = switchboard.ENV_ACTIONS.of(self.optimizations)
            return np.asarray(hand_over(actions) + space.start)
        assert isinstance(space, spaces.Box)
        return np.asarray(np.clip(actions.reshape(-1, *space.shape), space.low, space.high))
