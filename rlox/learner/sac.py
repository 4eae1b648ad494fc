"""Soft Actor-Critic with automatic temperature, Haarnoja et al. 2018b (arXiv 1812.05905).

Names, habits and defaults are those of Stable-Baselines3, except `learning_starts`.
"""

import copy
import math
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox import PrioritizedReplayBuffer, ReplayBuffer
from rlox.env.arguments import integer
from rlox.learner import switchboard
from rlox.learner.algorithm import Algorithm
from rlox.learner.arguments import (
    require_flags,
    require_integers,
    require_methods,
    require_numbers,
    require_one_of,
)
from rlox.learner.compiled_sac import EagerUpdate, Updated
from rlox.learner.environments import AnyEnv, final_obs, flatten_obs
from rlox.learner.native.networks import native_if_fit, warn_of_torch
from rlox.learner.native.sac_update import PRIORITY_EPSILON, NativeUpdate
from rlox.learner.policies import (
    SquashedGaussianActor,
    StochasticPolicy,
    Temperature,
    TwinCritic,
    frozen,
)
from rlox.learner.seams import StepByParameter
from rlox.learner.spaces import warn_of_flattening

BETA_0 = 0.4  # exponent of the importance weights at the start
LOG_EPISODES = 4  # figures are shown every so many episodes


class Batch(NamedTuple):
    """Transitions of one update; `weights` and `indices` only from a prioritised buffer."""

    obs: Tensor
    actions: Tensor
    rewards: Tensor
    next_obs: Tensor
    terminated: Tensor
    weights: Tensor | None = None
    indices: NDArray[np.int64] | None = None


class SAC(Algorithm):
    """SAC for `Box` observations and bounded `Box` actions.

    Args:
        env: as PPO's.
        n_envs: environments to make of an id (1, or 4 with R6); other forms of `env` bring their
            own number.
        seed: same seed, same result (on a CPU with the same number of threads, to the bit).
        buffer_size: transitions that the replay buffer holds.
        learning_starts: steps with uniformly random actions before the first update. What `load`
            returns has an empty replay buffer: its own policy fills it for as many steps before
            updates go on.
        batch_size: transitions per update.
        tau: step of the target networks (Polyak averaging).
        gamma: discount.
        learning_rate: Adam's, of actor, critics and temperature.
        gradient_steps: updates after each vectorised step; -1: one per environment step.
        ent_coef: alpha. "auto" learns it from 1.0 on, "auto_0.1" from 0.1 on; a number fixes it.
        target_entropy: of the learned temperature; "auto" is minus the number of action values.
        prioritized: draw transitions by their TD error (Schaul et al. 2016), corrected by
            importance weights whose exponent goes from 0.4 to 1 during `learn`.
        policy: an `rlox.learner.policies.StochasticPolicy` with actions in [-1, 1], to use
            instead of a 256 x 256 squashed Gaussian.
        critic: a module `(obs, actions) -> (q1, q2)`, to use instead of two 256 x 256 networks.
        optimizations, device, threads, matmul_precision, tensorboard_log: as PPO's.

    Attribute `update_path`: "native" where the latest update ran in Rust (R9), else "torch", with
    the reason if R9 was asked for.
    """

    _state: tuple[str, ...] = (
        "policy",
        "critic",
        "critic_target",
        "temperature",
        "actor_optimizer",
        "critic_optimizer",
    )
    _state_of: ClassVar[Mapping[str, str]] = {
        "temperature": "ent_coef",
        "alpha_optimizer": "ent_coef",
    }

    def __init__(
        self,
        env: str | gym.Env[Any, Any] | AnyEnv,
        n_envs: int | None = None,
        seed: int | None = None,
        buffer_size: int = 1_000_000,
        learning_starts: int = 1000,
        batch_size: int = 256,
        tau: float = 0.005,
        gamma: float = 0.99,
        learning_rate: float = 3e-4,
        gradient_steps: int = -1,
        ent_coef: float | str = "auto",
        target_entropy: float | str = "auto",
        prioritized: bool = False,
        policy: StochasticPolicy | None = None,
        critic: nn.Module | None = None,
        optimizations: Collection[str] | None = None,
        device: str | torch.device | None = None,
        threads: int | None = None,
        matmul_precision: Literal["highest", "high", "medium"] = "highest",
        tensorboard_log: str | Path | None = None,
    ) -> None:
        super().__init__(
            env, n_envs, switchboard.SAC_ENVS, optimizations, seed, device, threads,
            matmul_precision, tensorboard_log, arguments=locals(),
        )  # fmt: skip
        require_integers(1, batch_size=batch_size, buffer_size=buffer_size)
        require_integers(0, learning_starts=learning_starts)
        require_numbers(0, learning_rate=learning_rate)
        require_numbers(0, 1, tau=tau, gamma=gamma)
        require_flags(prioritized=prioritized)
        if integer("gradient_steps", gradient_steps) < 1 and gradient_steps != -1:
            raise ValueError(f"gradient_steps must be -1 or at least 1, got {gradient_steps}")
        space = self.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            raise ValueError(
                f"action space {space} is not supported: SAC acts in a bounded Box; "
                "PPO takes Discrete and unbounded ones"
            )
        self.act_dim = math.prod(space.shape)
        self.learning_starts, self.batch_size = int(learning_starts), int(batch_size)
        self.tau, self.gamma, self.prioritized = float(tau), float(gamma), bool(prioritized)
        self.gradient_steps = self.n_envs if gradient_steps == -1 else int(gradient_steps)
        if isinstance(target_entropy, str):
            require_one_of("target_entropy", target_entropy, ("auto",), "or a number")
            target_entropy = -self.act_dim
        require_numbers(target_entropy=target_entropy)
        self.target_entropy = float(target_entropy)

        if policy is None or critic is None:
            warn_of_flattening(self.observation_space, "policy=… and critic=…")
        with self._seeded_initialisation():
            if policy is None:
                policy = SquashedGaussianActor(self.obs_dim, self.act_dim)
            if critic is None:
                critic = TwinCritic(self.obs_dim, self.act_dim)
        require_methods("policy", policy, ["get_action_and_logprob"])
        require_methods("critic", critic, ["forward"])
        self.policy, self.critic = policy.to(self.device), critic.to(self.device)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.temperature = Temperature(ent_coef).to(self.device)

        self.actor_optimizer = self._adam(self.policy, learning_rate)
        self.critic_optimizer = self._adam(self.critic, learning_rate)
        self.alpha_optimizer = (
            self._adam(self.temperature, learning_rate) if self.temperature.learned else None
        )
        if self.alpha_optimizer:
            self._state += ("alpha_optimizer",)

        self._steppers: dict[tuple[Any, ...], StepByParameter] = {}
        self._updates: dict[tuple[Any, ...], EagerUpdate] = {}
        self._figures: dict[str, Tensor | float] = {}
        self._explore_rng = np.random.default_rng(self._new_seed())
        buffer = PrioritizedReplayBuffer if prioritized else ReplayBuffer
        obs_dtype: Literal["uint8", "float32"]
        obs_dtype = "uint8" if self.observation_space.dtype == np.uint8 else "float32"
        self.replay_buffer = buffer(
            buffer_size, self.obs_dim, self.act_dim, obs_dtype=obs_dtype, seed=self._new_seed()
        )
        self._choose_update()

    def _choose_update(self) -> None:
        """R9: updates run in Rust if all that takes part in them is known there."""
        self._native, self.update_path = native_if_fit(
            partial(NativeUpdate, self), wanted="R9" in self.optimizations
        )

    def _train_until_end(self) -> None:
        """Algorithm 1: a step of each environment, then as many updates."""
        self._choose_update()
        warn_of_torch("R9", "updates run", self.update_path)
        with self._native.torch_held() if self._native else nullcontext():
            self._step_and_update()

    def _step_and_update(self) -> None:
        timing = self.timing
        obs = self._current_obs()
        while not self._finished():
            self._callback.on_rollout_start()
            with timing.add_time("policy_forward"):
                actions = self._explore(obs)
            with timing.add_time("env_step"):
                env_actions = self._env_actions(actions)
                raw, rewards, terminations, truncations, infos = self.env.step(env_actions)
            with timing.add_time("store"):
                new_obs = flatten_obs(raw, self.observation_space)
                dones = terminations | truncations
                # The target of the last step of an episode looks at its final observation, not at
                # the first one of the next episode; it bootstraps unless the task itself ended.
                next_obs, rows, last = new_obs.copy(), np.flatnonzero(dones), None
                if len(rows):
                    next_obs[rows] = last = final_obs(infos, rows, self.observation_space)
                self._finite.step(new_obs, rewards, dones, rows, last)
                self.replay_buffer.push_batch(
                    obs, next_obs, actions, rewards.astype(np.float32), terminations, truncations
                )
                self._last_obs = obs = new_obs
                n_episodes = len(self.episode_returns)
                self._count_step(rewards, dones)
            if not self._tell_step(env_actions, raw, rewards, terminations, truncations, infos):
                return
            self._callback.on_rollout_end()
            if self._has_enough():
                with timing.add_time("gradient_update"):
                    for _ in range(self.gradient_steps):
                        self.train_once()
            self.logger.advance(self.num_timesteps)
            if n_episodes // LOG_EPISODES < len(self.episode_returns) // LOG_EPISODES:
                self._log({name: float(value) for name, value in self._figures.items()})

    def _has_enough(self) -> bool:
        """Whether training has begun, with the transitions for it: after `load` there are none."""
        if self.num_timesteps <= self.learning_starts:
            return False
        stored = len(self.replay_buffer)
        return stored > self.learning_starts or stored == self.replay_buffer.capacity

    def _explore(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        """Actions `[n_envs, act_dim]` in [-1, 1]: uniform at first, then the policy's."""
        if self.num_timesteps < self.learning_starts:
            return self._explore_rng.uniform(-1, 1, (self.n_envs, self.act_dim)).astype(np.float32)
        if self._native is not None:
            return self._native.act(self, obs)
        self.policy.train(False)
        with torch.no_grad():
            actions, _ = self.policy.get_action_and_logprob(
                self._tensor(obs), generator=self._act_generator
            )
        return actions.cpu().numpy()

    def _torch_update(self) -> EagerUpdate:
        """How to update, with what there is now; what has been compiled is kept, for the objects
        that it was compiled with."""
        form = switchboard.UPDATE.of(self.optimizations)
        key = (form, *(getattr(self, name) for name in self._state))
        if key not in self._updates:
            self._updates[key] = form(self)
        return self._updates[key]

    def _stepper(self, module: nn.Module, optimizer: torch.optim.Adam) -> StepByParameter:
        """By which they learn. A callback may replace either at any time."""
        key = (switchboard.STEP.of(self.optimizations), module, optimizer)
        if key not in self._steppers:
            self._steppers[key] = key[0](list(module.parameters()), optimizer)
        return self._steppers[key]

    def train_once(self) -> None:
        """One update of critics, actor, temperature and targets, from a fresh batch."""
        if self._native is not None and not self._native.fits(self):
            threads = self._native.threads  # torch may be held at one by now
            self._choose_update()
            if self._native is not None:
                self._native.threads = threads
        if self._native is not None:
            self._figures = {**self._native.train_once(self)}
            return
        self.policy.train(True)
        update = self._torch_update()
        with self.timing.add_time("sample"):
            batch = self._sample()
        updated = update(batch)
        if batch.indices is not None and isinstance(self.replay_buffer, PrioritizedReplayBuffer):
            with self.timing.add_time("sample"):
                priorities = updated.td_errors.cpu().numpy() + PRIORITY_EPSILON
                self.replay_buffer.update_priorities(batch.indices, priorities)
        self._figures = {
            "train/critic_loss": updated.critic_loss,
            "train/actor_loss": updated.actor_loss,
            "train/ent_coef": self.temperature().detach(),
        }

    def update(self, batch: Batch) -> Updated:
        """One update from `batch`, operation by operation."""
        timing = self.timing
        critic = self._stepper(self.critic, self.critic_optimizer)
        actor = self._stepper(self.policy, self.actor_optimizer)
        with timing.add_time("target_q"):
            target_q = self.target_q(batch)

        with timing.add_time("critic"):
            with timing.add_time("forward"):
                critic_loss, td_errors = self.critic_loss(batch, target_q)
            with timing.add_time("backward"):
                critic.zero_grad()
                critic_loss.backward()  # type: ignore[no-untyped-call]
            with timing.add_time("optimizer"):
                critic.step()

        with timing.add_time("actor"):
            # The actor's gradient goes through the critic, and none of it into its parameters.
            with timing.add_time("forward"), frozen(self.critic):
                actor_loss, log_probs = self.actor_loss(batch)
            with timing.add_time("backward"):
                actor.zero_grad()
                actor_loss.backward()  # type: ignore[no-untyped-call]
            with timing.add_time("optimizer"):
                actor.step()

        if self.alpha_optimizer is not None:
            alpha = self._stepper(self.temperature, self.alpha_optimizer)
            with timing.add_time("alpha"):
                with timing.add_time("forward"):
                    alpha_loss = self.alpha_loss(log_probs)
                with timing.add_time("backward"):
                    alpha.zero_grad()
                    alpha_loss.backward()  # type: ignore[no-untyped-call]
                with timing.add_time("optimizer"):
                    alpha.step()

        with timing.add_time("polyak"):
            polyak_update = switchboard.POLYAK.of(self.optimizations)
            polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        return Updated(critic_loss.detach(), actor_loss.detach(), td_errors)

    def _draw(self) -> Any:
        """A batch of the replay buffer, as NumPy arrays."""
        buffer = self.replay_buffer
        if isinstance(buffer, PrioritizedReplayBuffer):
            buffer.beta = BETA_0 + (1 - BETA_0) * min(1.0, self.num_timesteps / self._end)
        return buffer.sample(self.batch_size, copy=False)  # learned from before the next is drawn

    def _sample(self) -> Batch:
        """The same on the device."""
        sample = self._draw()
        return Batch(
            obs=self._tensor(sample["obs"]),
            actions=self._tensor(sample["action"]),
            rewards=self._tensor(sample["reward"]),
            next_obs=self._tensor(sample["next_obs"]),
            terminated=self._tensor(sample["terminated"]).float(),
            weights=self._tensor(sample["weights"]) if self.prioritized else None,
            indices=sample["indices"] if self.prioritized else None,
        )

    @torch.no_grad()
    def target_q(self, batch: Batch) -> Tensor:
        """Equation 3's target: r + gamma (1 - terminated) (min_i Q_i'(s', a') - alpha log pi)."""
        next_actions, next_log_probs = self.policy.get_action_and_logprob(
            batch.next_obs, generator=self._act_generator
        )
        next_q = torch.min(*self.critic_target(batch.next_obs, next_actions))
        soft_value = next_q - self.temperature() * next_log_probs
        target: Tensor = batch.rewards + self.gamma * (1 - batch.terminated) * soft_value
        return target

    def critic_loss(self, batch: Batch, target_q: Tensor) -> tuple[Tensor, Tensor]:
        """Equation 5, summed over the twins, and their mean absolute TD errors `[B]`."""
        q1, q2 = self.critic(batch.obs, batch.actions)
        td1, td2 = q1 - target_q, q2 - target_q
        squares = td1.square() + td2.square()
        if batch.weights is not None:
            squares = batch.weights * squares
        return 0.5 * squares.mean(), 0.5 * (td1.abs() + td2.abs()).detach()

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Equation 7, and the log-probabilities of the actions drawn for it."""
        actions, log_probs = self.policy.get_action_and_logprob(
            batch.obs, generator=self._act_generator
        )
        q = torch.min(*self.critic(batch.obs, actions))
        return (self.temperature().detach() * log_probs - q).mean(), log_probs.detach()

    def alpha_loss(self, log_probs: Tensor) -> Tensor:
        """Equation 18, in log alpha: raises alpha while the entropy is below its target."""
        return -(self.temperature.log_alpha * (log_probs + self.target_entropy)).mean()

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """From [-1, 1] to the box."""
        space = self.action_space
        assert isinstance(space, spaces.Box)
        actions = actions.reshape(-1, *space.shape)
        scaled = space.low + 0.5 * (actions + 1) * (space.high - space.low)
        return np.asarray(np.clip(scaled, space.low, space.high))  # rounding may step over
