"""Hooks into training, with the names of Stable-Baselines3, and the one that times the phases."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm


class BaseCallback:
    """Called by `learn`; override what is needed. `self.model` is the trainer."""

    model: "Algorithm"

    @property
    def num_timesteps(self) -> int:
        """Environment steps taken so far, over all environments."""
        return self.model.num_timesteps

    def on_training_start(self) -> None:
        """Before the first step."""

    def on_rollout_start(self) -> None:
        """Before PPO collects a rollout, unless in the background: the update before is done."""

    def on_step(self) -> bool:
        """After each vectorised step (with `collector="async"`: each rollout).

        A rollout in one call into Rust is there before its steps are told: the trainer's counters
        are those of the step, the environments are at the rollout's end.

        False stops training; forgetting to return anything does not.
        """
        return True

    def on_rollout_end(self) -> None:
        """Before each update."""

    def on_training_end(self) -> None:
        """After the last update, or when training is interrupted."""


class CallbackList(BaseCallback):
    """Several callbacks as one, called in order."""

    def __init__(self, callbacks: Sequence[BaseCallback], model: "Algorithm") -> None:
        for callback in callbacks:
            if not isinstance(callback, BaseCallback):
                raise TypeError(
                    f"callback must be a rlox.learner.callbacks.BaseCallback or a list of them, "
                    f"got {type(callback).__name__}"
                )
            callback.model = model
        self.callbacks = callbacks

    def on_training_start(self) -> None:
        for callback in self.callbacks:
            callback.on_training_start()

    def on_step(self) -> bool:
        # Every callback sees every step, also when an earlier one asks to stop.
        wishes = [callback.on_step() for callback in self.callbacks]
        return all(wish is not False for wish in wishes)

    def on_rollout_start(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_start()

    def on_rollout_end(self) -> None:
        for callback in self.callbacks:
            callback.on_rollout_end()

    def on_training_end(self) -> None:
        for callback in self.callbacks:
            callback.on_training_end()


class Checkpoints(BaseCallback):
    """Saves PPO to `path` every so many environment steps, between an update and a rollout.

    The file is whole at any time; `PPO.load(path).learn(…, reset_num_timesteps=False)` goes on.
    """

    def __init__(self, path: str | Path, every: int) -> None:
        self.path, self.every = path, every

    def on_training_start(self) -> None:
        self._saved = self.num_timesteps

    def on_rollout_start(self) -> None:
        if self.num_timesteps - self._saved >= self.every:
            self._saved = self.num_timesteps
            self.model.save(self.path)


class TimingCallback(BaseCallback):
    """Switches the trainer's `timing` on: the phases of training, in `model.timing.phases()`.

    On a GPU a phase holds the launch of its kernels, not their work, unless `synchronize` is set:
    then the device is waited for at each phase's ends, which slows training. The printed tree says
    when that was done. On a CPU there is nothing to wait for and `synchronize` does nothing.
    """

    def __init__(self, synchronize: bool = False) -> None:
        self.synchronize = synchronize

    def on_training_start(self) -> None:
        timing = self.model.timing
        if self.synchronize and self.model.device.type == "cuda":
            import torch

            timing.synchronize = torch.cuda.synchronize
        timing.enabled = True

    def on_training_end(self) -> None:
        self.model.timing.enabled = False
