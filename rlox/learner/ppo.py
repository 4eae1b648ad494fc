"""Proximal Policy Optimization, Schulman et al. 2017 (arXiv 1707.06347).

Names and behaviour are those of Stable-Baselines3. So are the defaults of `PPO("MlpPolicy", env)`;
the short form, `PPO(env)`, has other rollouts, minibatches and number of epochs (`SHORT`).
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.learner import switchboard
from rlox.learner.acting import clipped, unscaled
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
from rlox.learner.collectors import AsyncRollouts, Rollout, native_envs
from rlox.learner.compiled_ppo import EagerMinibatch
from rlox.learner.environments import NoEnv
from rlox.learner.joined import unfit_for_rust
from rlox.learner.native.networks import native_if_fit, warn_of_torch
from rlox.learner.native.ppo_update import NativeUpdate
from rlox.learner.native.rollout import NativeRollouts
from rlox.learner.on_policy import OnPolicy
from rlox.learner.policies import ActorCritic
from rlox.learner.policy_arguments import ppo_policy, with_sde
from rlox.learner.schedules import Present, Schedule, scheduled
from rlox.learner.their_names import KnownOptimizer

# Defaults of `PPO("MlpPolicy", env)`, which are Stable-Baselines3's, and of `PPO(env)`.
THEIRS = {"n_steps": 2048, "batch_size": 64, "n_epochs": 10, "n_envs": 1}
SHORT = {"n_steps": 128, "batch_size": 512, "n_epochs": 4}
POLICY_METHODS = ("get_action_and_logprob", "get_value", "evaluate_actions")
FIGURES = (
    "train/loss",
    "train/policy_gradient_loss",
    "train/value_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/clip_fraction",
)

__all__ = ["PPO", "Rollout"]
ACTION_SPACES = (spaces.Discrete, spaces.Box, spaces.MultiDiscrete, spaces.MultiBinary)


class PPO(OnPolicy):
    """Clipped PPO: `PPO("MlpPolicy", env)`, or `PPO(env)`, which has other defaults.

    Args:
        policy: "MlpPolicy", "CnnPolicy" (images), "MultiInputPolicy" (a Dict), a policy class of
            Stable-Baselines3's kind, or an `rlox.learner.policies.ActorCritic`. None: two 64 x 64
            tanh networks, above a features extractor if observations are not a vector.
        env: id of a registered environment, one environment, a vector environment of Gymnasium's or
            Stable-Baselines3's kind, or callables that make environments. Environments made from an
            id return the same arrays at every step, as `VecEnv(…, copy=False)` does; so copy what
            you keep when you step `model.vector_env` yourself.
        learning_rate: Adam's; a number, or a function of the part of training that remains.
        n_steps: steps per environment between updates (2048; short form 128).
        batch_size: transitions per minibatch (64; short form 512); the last one of an epoch may be
            smaller.
        n_epochs: passes over a rollout (10; short form 4).
        gamma: discount.
        gae_lambda: trades bias for variance of the advantages (Schulman et al. 2016).
        clip_range: epsilon of equation 7; as learning_rate, a number or a function.
        clip_range_vf: how far values may move from those of the rollout, like clip_range; None: any
            distance.
        normalize_advantage: scale advantages to mean 0 and deviation 1, in each minibatch.
        ent_coef: c2 of equation 9.
        vf_coef: c1 of equation 9.
        max_grad_norm: the gradient is clipped to this norm.
        use_sde: explore by generalised state-dependent noise (gSDE, Raffin et al. 2020); for
            actions in a Box; runs in torch.
        sde_sample_freq: steps after which that noise is drawn anew; -1: once a rollout.
        target_kl: an update ends when the policies differ by more than 1.5 times this.
        stats_window_size: number of episodes in the means that are shown.
        tensorboard_log: folder for TensorBoard's event files, each run in a folder of its own
            within: PPO_1, PPO_2, ….
        policy_kwargs: Stable-Baselines3's: net_arch, activation_fn, ortho_init, log_std_init,
            features_extractor_class, features_extractor_kwargs, share_features_extractor,
            normalize_images, optimizer_class, optimizer_kwargs; with use_sde full_std, use_expln
            and squash_output (actions go through tanh, and are scaled to the box).
        verbose: 1 prints figures.
        seed: same seed, same result (on a CPU with the same number of threads, to the bit).
            Unlike in Stable-Baselines3 it does not seed the global streams of `random`,
            `numpy.random` and torch: seed them for an environment that draws from these.
        device: where torch computes (default "cpu", or "auto", Stable-Baselines3's, with R10);
            "auto" is a GPU if there is one.
        n_envs: environments to make of an id (1; short form 8, or 32 with R11); other forms of
            `env` bring their own number.
        collector: "sync" steps and learns in turn. "async" steps in a background thread while
            learning, with the policy as it was before the update; for native environments only.
        optimizations: ids of the planned optimisations to train with, such as {"R1", "R2"}; None:
            those that were accepted (`rlox.learner.switchboard.ACCEPTED`). Compiling is then used
            only in runs that are long enough to repay it.
        threads: torch's while learning; None: one if every product is small, otherwise torch's own
            number. Updates in Rust take two at most, and no more than this.
        matmul_precision: of float32 products while learning, as
            `torch.set_float32_matmul_precision` takes it; "medium" computes in bfloat16 where the
            machine can, which changes the numbers in their third digit; what PPO learns with it is
            in `tests/learning/lean-torch/`. (Callbacks see "medium" where R13 has oneDNN
            multiply, in float32.)
        others: Stable-Baselines3's other arguments, which raise an error with the alternative.

    Attributes `rollout_path` and `update_path`: "native" if rollouts (R4) and updates (R9) run in
    Rust, otherwise "torch", with the reason if the optimisation was asked for.
    """

    policy: ActorCritic
    optimizer: Any = KnownOptimizer()
    clip_range: Any = Present(np.inf)
    clip_range_vf: Any = Present(may_miss=True)
    _state: tuple[str, ...] = ("policy", "optimizer")
    _their_parts: ClassVar[Mapping[str, str]] = {
        "policy": "policy",
        "policy.optimizer": "optimizer",
    }
    _generators = (*OnPolicy._generators, "_shuffle_generator")
    _joins = True
    _said_of_actor = ""  # the last reason, printed once, why torch draws the actions

    def __init__(
        self,
        first: Any = None,
        second: Any = None,
        /,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: float | Schedule = 0.2,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        ent_coef: float = 0.0,
        vf_coef: float = 0.5,
        max_grad_norm: float = 0.5,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        *,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | Path | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str | torch.device | None = None,
        policy: Any = None,
        env: Any = None,
        n_envs: int | None = None,
        collector: Literal["sync", "async"] = "sync",
        optimizations: Collection[str] | None = None,
        threads: int | None = None,
        matmul_precision: Literal["highest", "high", "medium"] = "highest",
        **others: Any,
    ) -> None:
        refuse_left_out("PPO", others)
        policy, env = policy_and_env(first, second, policy, env)
        described = with_sde(use_sde, sde_sample_freq, policy, policy_kwargs)
        self._squashes = bool((policy_kwargs or {}).get("squash_output", False))
        usual = THEIRS if isinstance(policy, str | type) else SHORT
        given = {"n_steps": n_steps, "batch_size": batch_size, "n_epochs": n_epochs}
        self._differs = differences(given, usual, THEIRS)
        n_steps = usual["n_steps"] if n_steps is None else n_steps
        batch_size = usual["batch_size"] if batch_size is None else batch_size
        n_epochs = usual["n_epochs"] if n_epochs is None else n_epochs
        n_envs = usual.get("n_envs") if n_envs is None else n_envs
        super().__init__(
            env, n_envs, switchboard.PPO_ENVS, optimizations, seed, device, threads,
            matmul_precision, tensorboard_log, verbose, stats_window_size, learning_rate,
            not isinstance(policy, type) and (policy_kwargs or {}).get("normalize_images", True),
            arguments=locals(),
        )  # fmt: skip
        require_integers(1, n_steps=n_steps, batch_size=batch_size, n_epochs=n_epochs)
        require_numbers(0, vf_coef=vf_coef)
        require_numbers(0, np.inf, max_grad_norm=max_grad_norm)
        require_numbers(0, 1, gamma=gamma, gae_lambda=gae_lambda)
        require_numbers(ent_coef=ent_coef)
        require_numbers(0, target_kl=0 if target_kl is None else target_kl)
        require_flags(normalize_advantage=normalize_advantage)
        require_one_of("collector", collector, ("sync", "async"))
        if not isinstance(self.action_space, ACTION_SPACES):
            raise Unsupported(
                f"action space {self.action_space} is not supported: PPO acts in Discrete, Box, "
                "MultiDiscrete and MultiBinary; wrap the environment with "
                "gymnasium.wrappers.TransformAction"
            )
        bounded = isinstance(self.action_space, spaces.Box) and self.action_space.is_bounded()
        if self._squashes and not bounded:
            raise Unsupported(f"squash_output: needs a bounded Box, not {self.action_space}")
        if collector == "async":
            if not isinstance(self.vector_env, NoEnv):
                native_envs(self.vector_env)  # raises ValueError for others
            if use_sde:
                raise ValueError(
                    'use_sde: another thread draws no noise anew; use collector="sync"'
                )
            if self._workers:
                raise ValueError('collector="async" trains in one process; use collector="sync"')
        self.use_sde, self.sde_sample_freq = bool(use_sde), int(sde_sample_freq)
        # Python numbers, since what is computed from them is saved.
        self.n_steps, self.batch_size, self.n_epochs = int(n_steps), int(batch_size), int(n_epochs)
        self.gamma, self.gae_lambda = float(gamma), float(gae_lambda)
        self.clip_range, self.clip_range_vf = clip_range, clip_range_vf
        self.max_grad_norm = float(max_grad_norm)
        self.target_kl = None if target_kl is None else float(target_kl)
        self.ent_coef, self.vf_coef, self.collector = float(ent_coef), float(vf_coef), collector
        self.normalize_advantage = bool(normalize_advantage)
        self._n_updates = 0

        named = not isinstance(policy, nn.Module)
        rate = self._learning_rate.value
        with self._seeded_initialisation() if named else nullcontext():
            policy, made = ppo_policy(policy, described, self._acting, rate)
        require_methods("policy", policy, POLICY_METHODS)
        self.policy = policy.to(self.device)
        make = made or partial(self._adam, eps=1e-5)
        self.optimizer = make(self.policy, rate)
        self._shuffle_generator = self._generator()
        self._minibatches: dict[tuple[Any, ...], EagerMinibatch] = {}
        wanted = self.optimizations & {"R4", "R19"}
        self._native_rollouts = NativeRollouts(self) if wanted else None
        self._update_threads = min(2, threads or torch.get_num_threads())  # for Rust
        self._choose_update()

    def _choose_update(self) -> None:
        """R9: updates run in Rust if Rust can run all of their parts."""
        self._native, self.update_path = native_if_fit(
            partial(NativeUpdate, self), wanted="R9" in self.optimizations
        )

    def _say_that_actor_is_torchs(self) -> None:
        """Warn once for each reason, if R17 was asked for by name and does nothing."""
        asked = self._asked and "R17" in self.optimizations and self._rank == 0
        if not asked or self.rollout_path.startswith("native"):
            return
        if self.collector == "async":
            reason: str | None = "another thread collects"
        elif "R14" not in self.optimizations:
            reason = "only R14 leaves the rest of a step to the rollout's end; ask for R14, too"
        else:
            reason = unfit_for_rust(self.policy)
        if reason and reason != self._said_of_actor:
            self._said_of_actor = reason
            message = f"R17: actions are drawn in torch, not in Rust: {reason}"
            warnings.warn(message, stacklevel=4)

    def _train_until_end(self) -> None:
        """Algorithm 1: run the old policy for T steps, compute advantages, optimise the surrogate.

        The last rollout may exceed `total_timesteps`, as in Stable-Baselines3.
        """
        self._iterations = 0
        self._choose_update()
        if self._rank == 0:
            warn_of_torch("R9", "updates run", self.update_path)
        if self._native_rollouts is not None:
            self._native_rollouts.say(self.rollout_path)
        self._say_that_actor_is_torchs()
        if self.collector == "async":
            with AsyncRollouts(self) as rollouts:
                while not self._finished():
                    self._callback.on_rollout_start()
                    if (columns := rollouts.take()) is None:
                        return
                    self._update(Rollout(*(rollouts.flat(columns[c]) for c in Rollout._fields)))
        else:
            if self._workers:
                self._workers.align([*self.policy.parameters(), *self.policy.buffers()])
            self._current_obs()
            while not self._finished() and (rollout := self._collect()):
                self._update(rollout)

    def train(self, rollout: Rollout) -> None:
        """`n_epochs` of minibatch Adam on the surrogate of one rollout."""
        self._follow_schedules(self.optimizer)
        if self._native is not None and not self._native.fits(self):
            self._choose_update()
        learner: Any = self._workers or self._native
        if learner is not None:
            self._show(learner.train(self, rollout))
            return
        self.policy.train(True)
        minibatch = self._minibatch()
        minibatch.begin()
        learnt: list[Tensor] = []
        for _ in range(self.n_epochs):
            self._n_updates += 1
            order = torch.randperm(
                len(rollout.obs), generator=self._shuffle_generator, device=self.device
            )
            for at in torch.split(order, self.batch_size):
                if self.target_kl is not None and self._too_far(rollout, at):
                    break
                learnt.append(minibatch(rollout, at))
            else:
                continue
            break
        self._show(torch.stack(learnt).mean(dim=0).cpu().numpy() if learnt else None)

    def _too_far(self, rollout: Rollout, at: Tensor) -> bool:
        """Whether the policy has moved further than `target_kl` allows."""
        assert self.target_kl is not None
        return bool(self._kl(rollout, at).mean() > 1.5 * self.target_kl)

    @torch.no_grad()
    def _kl(self, rollout: Rollout, at: Tensor) -> Tensor:
        """r - 1 - log r of the transitions `at`, whose mean is an estimate of the KL divergence."""
        batch = Rollout(*(column.index_select(0, at) for column in rollout))
        _, log_probs, _ = self.policy.evaluate_actions(batch.obs, batch.actions)
        log_ratio = log_probs - batch.log_probs
        return log_ratio.exp() - 1 - log_ratio

    def _show(self, figures: Sequence[float] | NDArray[np.float32] | None) -> None:
        """Log an update's figures; None where `target_kl` ended it before the first minibatch."""
        if figures is None:
            return
        told = {"train/n_updates": self._n_updates, "train/clip_range": self.clip_range}
        self._log({**dict(zip(FIGURES, figures, strict=True)), **told})

    def _shows(self) -> bool:
        return self._log_interval is not None and self._iterations % self._log_interval == 0

    def _minibatch(self) -> EagerMinibatch:
        """The object that learns from a minibatch. Compiled graphs are kept, together with the
        objects that they were compiled for."""
        form = switchboard.MINIBATCH.of(self.optimizations)
        if scheduled(self, "clip_range").moves or self.clip_range_vf is not None:
            form = EagerMinibatch  # a compiled graph contains the range as a constant
        key = (form, *(getattr(self, name) for name in self._state))
        if key not in self._minibatches:
            params = list(self.policy.parameters())
            stepper = switchboard.STEP.of(self.optimizations)(params, self.optimizer)
            self._minibatches[key] = form(self, stepper)
        return self._minibatches[key]

    def loss(
        self, batch: Rollout, normalize_advantage: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Minus the objective of equation 9, and the values of `FIGURES`. `normalize_advantage`
        replaces the trainer's."""
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
        if self.clip_range_vf is not None:
            old = batch.returns - batch.advantages
            values = old + (values - old).clamp(-self.clip_range_vf, self.clip_range_vf)
        value_loss = F.mse_loss(values, batch.returns)
        entropy_loss = -entropy.mean()
        loss = policy_loss + self.vf_coef * value_loss
        if self.ent_coef:  # with 0 the entropy needs no backward pass
            loss = loss + self.ent_coef * entropy_loss

        with torch.no_grad():
            approx_kl = (ratio - 1 - log_ratio).mean()
            clip_fraction = ((ratio - 1).abs() > self.clip_range).float().mean()
            figures = torch.stack(
                [loss, policy_loss, value_loss, entropy_loss, approx_kl, clip_fraction]
            )
        return loss, figures

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Discrete actions are counted from `start`. Continuous ones are clipped to the box for the
        environment alone; squashed ones are scaled to it."""
        if isinstance(self.action_space, spaces.Discrete):
            actions = switchboard.ENV_ACTIONS.of(self.optimizations)(actions)
        if self._squashes:
            return unscaled(actions, cast(spaces.Box, self.action_space))
        return clipped(actions, self.action_space)
