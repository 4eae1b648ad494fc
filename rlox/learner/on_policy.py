"""What PPO does between updates: rollouts, in Rust or in torch."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.algorithm import Algorithm
from rlox.learner.collectors import Rollout, rollout_in_torch
from rlox.learner.native.networks import Unfit
from rlox.learner.native.rollout import NativeRollouts


class RolloutBuffer(NamedTuple):
    """A copy of a rollout by Stable-Baselines3's names, arrays `[n_steps, n_envs, …]`; observations
    as rows, as the networks are given them. Of environments that reset in a step of their own it
    is `[N, 1, …]`, those steps being left out."""

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    log_probs: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]
    values: NDArray[np.float32]

    def size(self) -> int:
        """Of the first axis."""
        return len(self.returns)


class OnPolicy(Algorithm):
    """Collects rollouts, and calls `train` for each."""

    n_steps: int
    _native_rollouts: NativeRollouts | None
    _rollout_number: int
    _rollout: Rollout | None = None  # that is learnt from

    def train(self, rollout: Rollout) -> None:
        """Learn from one rollout."""
        raise NotImplementedError

    @property
    def rollout_buffer(self) -> RolloutBuffer | None:
        """The rollout that is learnt from, for callbacks: from `on_rollout_end` until the next is
        collected."""
        if self._rollout is None:
            return None
        one = self._rollout
        columns = [*one, one.returns - one.advantages]
        shape = (-1, 1 if self._next_step is not None else self.n_envs)  # idle steps are left out
        return RolloutBuffer(
            *(part.reshape(*shape, *part.shape[1:]).cpu().numpy().copy() for part in columns)
        )

    def _collect(self) -> Rollout | None:
        self._rollout = None
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
        return rollout_in_torch(self)  # type: ignore[arg-type]

    def _update(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._callback.on_rollout_end()
        with self.timing.add_time("gradient_update"):
            self.timing.flow("rollout", self._rollout_number)
            self.train(rollout)
