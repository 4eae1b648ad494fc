"""Soft Actor-Critic with automatic temperature, Haarnoja et al. 2018b (arXiv 1812.05905).

Names and behaviour are those of Stable-Baselines3. So are the defaults of `SAC("MlpPolicy", env)`;
the short form, `SAC(env)`, has other `learning_starts` and `gradient_steps` (`SHORT`).
"""

import copy
import math
from collections.abc import Collection, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.env.arguments import integer
from rlox.learner import switchboard
from rlox.learner.acting import unscaled
from rlox.learner.arguments import (
    Unsupported,
    differences,
    policy_and_env,
    refuse_left_out,
    require_flags,
    require_integers,
    require_methods,
    require_numbers,
    require_one_of,
)
from rlox.learner.compiled_sac import EagerUpdate, Updated
from rlox.learner.critics import KnownToPolicy, copy_statistics
from rlox.learner.native.networks import native_if_fit, warn_of_torch
from rlox.learner.native.sac_update import NativeUpdate, figures, warn_of_float32
from rlox.learner.off_policy import OffPolicy, bootstraps_time_limits
from rlox.learner.policies import StochasticPolicy, Temperature, frozen, learning_part
from rlox.learner.policy_arguments import sac_networks, with_sde
from rlox.learner.schedules import Schedule
from rlox.learner.seams import StepByParameter

# Defaults of `SAC("MlpPolicy", env)`, which are Stable-Baselines3's, and of `SAC(env)`.
THEIRS = {"learning_starts": 100, "gradient_steps": 1, "n_envs": 1}
SHORT = {"learning_starts": 1000, "gradient_steps": -1}


class Batch(NamedTuple):
    """The transitions of one update; `weights` and `indices` only from a prioritised buffer."""

    obs: Tensor
    actions: Tensor
    rewards: Tensor
    next_obs: Tensor
    terminated: Tensor
    weights: Tensor | None = None
    indices: NDArray[np.int64] | None = None


class SAC(OffPolicy):
    """SAC for bounded `Box` actions: `SAC("MlpPolicy", env)`, or `SAC(env)`, with other defaults.

    Args:
        policy: "MlpPolicy", "CnnPolicy" (images), "MultiInputPolicy" (a Dict), or an
            `rlox.learner.policies.StochasticPolicy` with actions in [-1, 1]. None: a 256 x 256
            squashed Gaussian, above a features extractor if observations are not a vector.
        env: as PPO's.
        learning_rate: Adam's, of actor, critics and temperature; a number, or a function of the
            part of training that remains.
        buffer_size: the number of transitions that the replay buffer can hold.
        learning_starts: steps with uniformly random actions before the first update (100; short
            form 1000). After `load` the replay buffer is empty, and the loaded policy fills it for
            as many steps before updates go on.
        batch_size: transitions per update.
        tau: the fraction by which the target networks move (Polyak averaging).
        gamma: discount.
        train_freq: vectorised steps between updates, or `(n, "step")`, or `(n, "episode")`.
        gradient_steps: updates after these (1); -1: one per environment step (short form).
        action_noise: a callable whose noise is added to actions in [-1, 1], with a `reset` for the
            end of an episode, as Stable-Baselines3's; each environment has a copy.
        replay_buffer_kwargs: dict(handle_timeout_termination=False) treats an episode that a time
            limit ends as terminated, so that nothing is bootstrapped.
        ent_coef: alpha. "auto" learns it from 1.0 on, "auto_0.1" from 0.1 on; a number fixes it.
        target_update_interval: the targets move at the first update after a collection, then
            once in so many updates.
        target_entropy: for the learned temperature; "auto" is minus the number of action values.
        use_sde, sde_sample_freq, stats_window_size, tensorboard_log, policy_kwargs, verbose, seed,
            device: as PPO's; net_arch may be dict(pi=…, qf=…); n_critics is the number of Q
            functions (2); with use_sde, clip_mean bounds the means (2; 0: no bound).
        use_sde_at_warmup: take the policy's actions, in place of uniform ones, from the start.
        n_envs: environments to make of an id (1, or in the short form 4 with R6); other forms of
            `env` bring their own number.
        prioritized: draw transitions by their TD error (Schaul et al. 2016), corrected by
            importance weights whose exponent goes from 0.4 to 1 during `learn`.
        critic: a module `(obs, actions) -> (q1, q2)`, or more or fewer, to use instead of two
            256 x 256 networks.
        optimizations, threads, matmul_precision, others: as PPO's.

    Attribute `update_path`: "native" if the latest update ran in Rust (R9), otherwise "torch", with
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

    _their_parts: ClassVar[Mapping[str, str]] = {
        "policy/actor": "policy",
        "policy/critic": "critic",
        "policy/critic_target": "critic_target",
        "actor.optimizer": "actor_optimizer",
        "critic.optimizer": "critic_optimizer",
        "ent_coef_optimizer": "alpha_optimizer",
    }
    policy: StochasticPolicy = cast(Any, KnownToPolicy())
    critic: nn.Module = cast(Any, KnownToPolicy())
    critic_target: nn.Module = cast(Any, KnownToPolicy())
    _squashes, _usual_log_interval = True, 4
    _looks = True  # before each update, whether the user's code has changed what is learnt

    def __init__(
        self,
        first: Any = None,
        second: Any = None,
        /,
        learning_rate: float | Schedule = 3e-4,
        buffer_size: int = 1_000_000,
        learning_starts: int | None = None,
        batch_size: int = 256,
        tau: float = 0.005,
        gamma: float = 0.99,
        train_freq: int | tuple[int, str] = 1,
        gradient_steps: int | None = None,
        action_noise: Any = None,
        *,
        replay_buffer_kwargs: Mapping[str, Any] | None = None,
        ent_coef: float | str = "auto",
        target_update_interval: int = 1,
        target_entropy: float | str = "auto",
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        use_sde_at_warmup: bool = False,
        stats_window_size: int = 100,
        tensorboard_log: str | Path | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str | torch.device | None = None,
        policy: Any = None,
        env: Any = None,
        n_envs: int | None = None,
        prioritized: bool = False,
        critic: nn.Module | None = None,
        optimizations: Collection[str] | None = None,
        threads: int | None = None,
        matmul_precision: Literal["highest", "high", "medium"] = "highest",
        **others: Any,
    ) -> None:
        refuse_left_out("SAC", others)
        policy, env = policy_and_env(first, second, policy, env)
        described = with_sde(use_sde, sde_sample_freq, policy, policy_kwargs)
        usual = THEIRS if isinstance(policy, str) else SHORT
        given = {"learning_starts": learning_starts, "gradient_steps": gradient_steps}
        self._differs = differences(given, usual, THEIRS)
        learning_starts = usual["learning_starts"] if learning_starts is None else learning_starts
        gradient_steps = usual["gradient_steps"] if gradient_steps is None else gradient_steps
        n_envs = usual.get("n_envs") if n_envs is None else n_envs
        super().__init__(
            env, n_envs, switchboard.SAC_ENVS, optimizations, seed, device, threads,
            matmul_precision, tensorboard_log, verbose, stats_window_size, learning_rate,
            (policy_kwargs or {}).get("normalize_images", True), arguments=locals(),
        )  # fmt: skip
        require_integers(1, batch_size=batch_size, buffer_size=buffer_size)
        require_integers(1, target_update_interval=target_update_interval)
        require_integers(0, learning_starts=learning_starts)
        require_numbers(0, 1, tau=tau, gamma=gamma)
        require_flags(prioritized=prioritized, use_sde_at_warmup=use_sde_at_warmup)
        self.use_sde, self.sde_sample_freq = bool(use_sde), int(sde_sample_freq)
        self.use_sde_at_warmup = bool(use_sde and use_sde_at_warmup)
        self._bootstraps_time_limits = bootstraps_time_limits(replay_buffer_kwargs)
        if integer("gradient_steps", gradient_steps) < -1:
            raise ValueError(f"gradient_steps must be -1 or at least 0, got {gradient_steps}")
        space = self.action_space
        if not isinstance(space, spaces.Box) or not space.is_bounded():
            acts = "SAC acts in a bounded Box; PPO takes Discrete and unbounded ones"
            raise Unsupported(f"action space {space} is not supported: {acts}")
        self.act_dim = math.prod(space.shape)
        self.learning_starts, self.batch_size = int(learning_starts), int(batch_size)
        self.tau, self.gamma, self.prioritized = float(tau), float(gamma), bool(prioritized)
        self.train_freq = cast(Any, train_freq)
        self._derived["train_freq"] = self.train_freq
        self.gradient_steps = int(gradient_steps)
        self.target_update_interval = int(target_update_interval)
        self.action_noise = action_noise
        if isinstance(target_entropy, str):
            require_one_of("target_entropy", target_entropy, ("auto",), "or a number")
            target_entropy = -self.act_dim
            self._derived["target_entropy"] = target_entropy
        require_numbers(target_entropy=target_entropy)
        self.target_entropy = float(target_entropy)

        with self._seeded_initialisation():
            policy, critic, make = sac_networks(policy, critic, described, self._acting, self._adam)
        require_methods("policy", policy, ["get_action_and_logprob"])
        require_methods("critic", critic, ["forward"])
        self.policy, self.critic = policy.to(self.device), critic.to(self.device)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False).train(False)
        self.temperature = Temperature(ent_coef).to(self.device)

        rate = self._learning_rate.value
        self.actor_optimizer = make(self.policy, rate)
        self.critic_optimizer = make(learning_part(self.critic), rate)
        learned = self.temperature.learned
        self.alpha_optimizer = self._adam(self.temperature, rate) if learned else None
        if self.alpha_optimizer:
            self._state += ("alpha_optimizer",)

        self._steppers: dict[tuple[Any, ...], StepByParameter] = {}
        self._updates: dict[tuple[Any, ...], EagerUpdate] = {}
        self._figures: dict[str, Tensor | float] = {}
        self._explore_rng = np.random.default_rng(self._new_seed())
        self._buffer_size = int(buffer_size)
        self.replay_buffer = self._new_buffer()
        self._choose_update()

    @property
    def actor(self) -> StochasticPolicy:
        """The policy, under Stable-Baselines3's name."""
        return self.policy

    def _choose_update(self) -> None:
        """R9: updates run in Rust if Rust can run all of their parts."""
        self._native, self.update_path = native_if_fit(
            partial(NativeUpdate, self), wanted="R9" in self.optimizations
        )

    def _train_until_end(self) -> None:
        """Algorithm 1: a step of each environment, then as many updates."""
        self._choose_update()
        warn_of_torch("R9", "updates run", self.update_path)
        if self._asked and "R20" in self.optimizations:
            warn_of_float32(self.update_path)
        # Looking takes a thirtieth of the time of an update: what it reads is in no cache by then.
        self._looks = type(self) is not SAC or bool(self._callback.callbacks)
        try:
            with self._torch_held():
                self._step_and_update()
        finally:
            self._looks = True

    def _torch_update(self) -> EagerUpdate:
        """The object that updates with the present networks. Compiled graphs are kept, together
        with the objects that they were compiled for."""
        form = switchboard.UPDATE.of(self.optimizations)
        if self.target_update_interval > 1:
            form = EagerUpdate  # a compiled update always moves the targets
        key = (form, *(getattr(self, name) for name in self._state))
        if key not in self._updates:
            self._updates[key] = form(self)
        return self._updates[key]

    def _stepper(self, module: nn.Module, optimizer: torch.optim.Adam) -> StepByParameter:
        """The object with which a module learns. A callback may replace module or optimiser."""
        key = (switchboard.STEP.of(self.optimizations), module, optimizer)
        if key not in self._steppers:
            self._steppers[key] = key[0](list(module.parameters()), optimizer)
        return self._steppers[key]

    def train_once(self) -> None:
        """One update of critics, actor, temperature and targets, from a fresh batch."""
        if self._native is not None and self._looks and not self._native.fits(self):
            threads = self._native.threads  # torch's own number may be 1 by now
            self._choose_update()
            if self._native is not None:
                self._native.threads = threads
        if self._native is not None:
            self._figures = self._native.train_once(self)
            return
        self.policy.train(True)
        if self.use_sde:
            self.policy.reset_noise(1, self._act_generator)
        update = self._torch_update()
        with self.timing.add_time("sample"):
            batch = self._sample()
        updated = update(batch)
        if self._moves_targets:
            copy_statistics(self.critic, self.critic_target)
        if batch.indices is not None:
            self._prioritize(batch.indices, updated.td_errors.cpu().numpy())
        losses = updated.critic_loss, updated.actor_loss, updated.alpha_loss
        self._figures = figures(*losses, self.temperature().detach())

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
            # The actor's gradient passes through the critic without changing its parameters.
            with timing.add_time("forward"), frozen(self.critic):
                actor_loss, log_probs = self.actor_loss(batch)
            with timing.add_time("backward"):
                actor.zero_grad()
                actor_loss.backward()  # type: ignore[no-untyped-call]
            with timing.add_time("optimizer"):
                actor.step()

        alpha_loss = None
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
            alpha_loss = alpha_loss.detach()

        if self._moves_targets:
            with timing.add_time("polyak"):
                polyak_update = switchboard.POLYAK.of(self.optimizations)
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        return Updated(critic_loss.detach(), actor_loss.detach(), alpha_loss, td_errors)

    def _sample(self) -> Batch:
        """A batch from the replay buffer, on the device."""
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
        next_q = reduce(torch.min, self.critic_target(batch.next_obs, next_actions))
        soft_value = next_q - self.temperature() * next_log_probs
        target: Tensor = batch.rewards + self.gamma * (1 - batch.terminated) * soft_value
        return target

    def critic_loss(self, batch: Batch, target_q: Tensor) -> tuple[Tensor, Tensor]:
        """Equation 5, summed over the Q functions, and their mean absolute TD errors `[B]`."""
        errors = [q - target_q for q in self.critic(batch.obs, batch.actions)]
        squares = reduce(torch.add, [error.square() for error in errors])
        if batch.weights is not None:
            squares = batch.weights * squares
        sizes = reduce(torch.add, [error.abs() for error in errors]).detach()
        return 0.5 * squares.mean(), sizes / len(errors)

    def actor_loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Equation 7, and the log-probabilities of the actions drawn for it."""
        actions, log_probs = self.policy.get_action_and_logprob(
            batch.obs, generator=self._act_generator
        )
        q = reduce(torch.min, self.critic(batch.obs, actions))
        return (self.temperature().detach() * log_probs - q).mean(), log_probs.detach()

    def alpha_loss(self, log_probs: Tensor) -> Tensor:
        """Equation 18, in log alpha: raises alpha while the entropy is below its target."""
        return -(self.temperature.log_alpha * (log_probs + self.target_entropy)).mean()

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """From [-1, 1] to the box."""
        assert isinstance(self.action_space, spaces.Box)
        return unscaled(actions, self.action_space)
