"""What PPO does between updates: it collects rollouts, in Rust or in torch."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.algorithm import Algorithm
from rlox.learner.collectors import Rollout, rollout_in_torch
from rlox.learner.native.networks import Unfit
from rlox.learner.native.rollout import NativeRollouts


class RolloutBuffer(NamedTuple):
    """A copy of a rollout under Stable-Baselines3's names, arrays `[n_steps, n_envs, …]`. They are
    read-only, since nothing is learnt from a copy. Observations are rows, as networks get them.
    `episode_starts` is 1 for an episode's first step. If a time limit ends a step, the discounted
    value of the final observation is added to its reward. For environments with next-step autoreset
    the shape is `[N, 1, …]`, since the steps that only reset are left out."""

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    log_probs: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    episode_starts: NDArray[np.float32]

    def size(self) -> int:
        """The length of the first axis."""
        return len(self.returns)


class OnPolicy(Algorithm):
    """Collects rollouts, and calls `train` for each."""

    n_steps: int
    _learns_from = "rollout"
    _action_names = ("actions", "clipped_actions")
    _native_rollouts: NativeRollouts | None
    _rollout_number = 0  # of the rollout being collected or learnt from
    _iterations = 0  # rollouts of the present `learn` that were learnt from
    _rollout: Rollout | None = None  # the one being learnt from
    _stepped: tuple[NDArray[Any], NDArray[Any]]  # its rewards, and which steps begin an episode

    def train(self, rollout: Rollout) -> None:
        """Learn from one rollout."""
        raise NotImplementedError

    @property
    def rollout_buffer(self) -> RolloutBuffer | None:
        """The rollout being learnt from, for callbacks: from `on_rollout_end` until the next one is
        collected."""
        if self._rollout is None:
            return None
        one = self._rollout
        columns = [*one, one.returns - one.advantages]
        shape = (-1, 1 if self._next_step is not None else self.n_envs)  # without mere resets
        arrays = [*(part.cpu().numpy() for part in columns), *self._stepped]
        copies = [part.reshape(*shape, *part.shape[1:]).copy() for part in arrays]
        for copy in copies:
            copy.setflags(write=False)
        return RolloutBuffer(*copies)

    def _book_rollout(
        self, rewards: NDArray[Any], ended: NDArray[Any], taken: NDArray[np.intp] | slice
    ) -> None:
        """Keep for `rollout_buffer` a rollout's rewards and the steps at which an episode ended,
        `[n_steps, n_envs]` each; the steps `taken` are learnt from."""
        starts = np.concatenate([self._episode_starts[None], ended])
        self._episode_starts = starts[-1].astype(np.float32)
        columns = (part.reshape(-1)[taken] for part in (rewards, starts[:-1]))
        self._stepped = tuple(part.astype(np.float32) for part in columns)  # type: ignore[assignment]

    def _collect(self) -> Rollout | None:
        self._rollout = None
        self._callback.on_rollout_start()
        self._rollout_number = self._rank << 40 | self.num_timesteps
        return self._workers.collect(self) if self._workers else self.collect_rollout()

    def set_random_seed(self, seed: int | None = None) -> None:
        super().set_random_seed(seed)
        if seed is not None and self._native_rollouts:
            self._native_rollouts.begin_stream()

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
        """ "native" if the next rollout is collected in Rust (R4); "native, with steps in Python"
        if Rust calls Python for each step (R19), with the reason; otherwise "torch", with the
        reason if one of the two was asked for."""
        return "torch" if self._native_rollouts is None else self._native_rollouts.path()

    def collect_rollout(self) -> Rollout | None:
        """Run the policy for `n_steps` in each environment; None if a callback stopped it."""
        if self._native_rollouts is not None:
            try:
                return self._native_rollouts.collect()
            except Unfit as reason:
                self._native_rollouts.say(f"torch: {reason}")
        return rollout_in_torch(self)  # type: ignore[arg-type]

    def _record_figures(self) -> None:
        """Record also how well the values fit the returns, and how far actions scatter, where the
        logger has an output: they take a thirtieth of the time of a small update."""
        super()._record_figures()
        if self._iterations:
            self.logger.record("time/iterations", self._iterations, exclude="tensorboard")
        if success := self._success_rate():
            self.logger.record(success)
        if self._rollout is None or not self._shows() or not self.logger.has_output:
            return
        left, spread = (float(part.var(correction=0)) for part in self._rollout[3:])
        figures = {"train/explained_variance": 1 - left / spread if spread else math.nan}
        policy: Any = self.policy
        log_std = getattr(
            policy, "log_std", getattr(getattr(policy, "head", None), "log_std", None)
        )
        if isinstance(log_std, Tensor):
            figures["train/std"] = float(log_std.detach().exp().mean())
        self.logger.record(figures)

    def _update(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._iterations += 1
        self._callback.on_rollout_end()
        self.logger.advance(self.num_timesteps)
        if not len(rollout.obs):  # environments with next-step autoreset have all begun episodes
            return
        with self.timing.add_time("gradient_update"):
            self.timing.flow("rollout", self._rollout_number)
            self.train(rollout)
