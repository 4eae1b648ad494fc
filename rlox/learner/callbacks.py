"""Hooks into training, with the names of Stable-Baselines3, and the one that times the phases."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox.learner.arguments import require_integers
from rlox.learner.step_locals import Locals

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm
    from rlox.learner.environments import AnyEnv
    from rlox.learner.logger import Logger


class BaseCallback:
    """Called by `learn`; override what is needed. `self.model` is the trainer.

    There are two ways to write one. Methods with an underscore (`_on_step`, `_on_rollout_end`, …)
    are Stable-Baselines3's and are called when it would call them; those without are ours, and call
    them. They differ in steps: a callback with an `_on_step` is called between a step and the next,
    with `self.locals`, so that PPO collects step by step in Python: several times slower than in
    Rust, and with other random numbers. `collector="async"` refuses it. One with an `on_step`, or
    with neither, leaves rollouts in Rust.

    Attributes: `n_calls`, steps of the environments that it was told of; `num_timesteps`,
    environment steps of the trainer; `locals`, in `_on_step`: `actions`, `rewards` and `dones` as
    arrays `[n_envs]`, `new_obs`, `infos` (a dictionary for each environment; where an episode has
    ended with `episode`, its return `r` and length `l`, and `terminal_observation`), `env` and
    `self`, the trainer; `training_env`, Gymnasium's kind of vector environment; `logger`.
    """

    model: "Algorithm"
    n_calls = 0
    verbose = 0
    parent: "BaseCallback | None" = None
    locals: Locals
    globals: Mapping[str, Any] = {}

    def __init__(self, verbose: int = 0) -> None:
        self.verbose = verbose

    @property
    def num_timesteps(self) -> int:
        """Environment steps taken so far, over all environments."""
        return self.model.num_timesteps

    @property
    def training_env(self) -> "AnyEnv":
        """The trainer's environments."""
        return self.model.env

    @property
    def logger(self) -> "Logger":
        """The trainer's figures; `record(name, value)` adds one."""
        return self.model.logger

    def init_callback(self, model: "Algorithm") -> None:
        """Before everything else of a `learn`."""
        self.model, self.locals = model, Locals()
        self._init_callback()

    def on_training_start(self, *args: Any, **kwargs: Any) -> None:
        """Before the first step. Stable-Baselines3's callbacks call others with their `locals`."""
        self._on_training_start()

    def on_rollout_start(self) -> None:
        """Before a rollout is collected (with `collector="async"`: waited for), and before each
        step of SAC: the update before is done."""
        self._on_rollout_start()

    def on_step(self) -> bool:
        """After each vectorised step (with `collector="async"`: each rollout).

        A rollout in one call into Rust is there before its steps are told: the trainer's counters
        are those of the step, the environments are at the rollout's end.

        False stops training; forgetting to return anything does not.
        """
        self.n_calls += 1
        return self._on_step()

    def on_rollout_end(self) -> None:
        """Before each update."""
        self._on_rollout_end()

    def on_training_end(self) -> None:
        """After the last update, or when training is interrupted."""
        self._on_training_end()

    def update_locals(self, locals_: Mapping[str, Any]) -> None:
        """What `locals` hold from now on."""
        self.locals.update(locals_)
        self.update_child_locals(locals_)

    def update_child_locals(self, locals_: Mapping[str, Any]) -> None:
        """For callbacks that call others: hand `locals_` on."""

    def _init_callback(self) -> None:
        """As `init_callback`."""

    def _on_training_start(self) -> None:
        """As `on_training_start`."""

    def _on_rollout_start(self) -> None:
        """As `on_rollout_start`."""

    def _on_step(self) -> bool:
        """After each vectorised step, before the next; False stops training."""
        return True

    def _on_rollout_end(self) -> None:
        """As `on_rollout_end`."""

    def _on_training_end(self) -> None:
        """As `on_training_end`."""


class CallbackList(BaseCallback):
    """Several callbacks as one, called in order."""

    def __init__(self, callbacks: Sequence[BaseCallback]) -> None:
        super().__init__()
        for callback in callbacks:
            if not isinstance(callback, BaseCallback):
                raise TypeError(
                    f"callback must be a rlox.learner.callbacks.BaseCallback or a list of them, "
                    f"got {type(callback).__name__}; what is written for Stable-Baselines3 can be "
                    "derived from this one, and a function can be its method _on_step"
                )
        self.callbacks = callbacks

    def overriding(self, method: str) -> list[str]:
        """Classes of the callbacks that have a `method` of their own."""
        inherited, found = getattr(BaseCallback, method), []
        for callback in self.callbacks:
            if isinstance(callback, CallbackList):
                found += callback.overriding(method)
            elif getattr(getattr(callback, method), "__func__", None) is not inherited:
                found.append(type(callback).__name__)
        return found

    def count_calls(self, n: int) -> None:
        """`n` steps have passed that nobody had to be told of."""
        for callback in self.callbacks:
            if isinstance(callback, CallbackList):
                callback.count_calls(n)
            callback.n_calls += n

    def _init_callback(self) -> None:
        for callback in self.callbacks:
            callback.init_callback(self.model)

    def on_training_start(self, *args: Any, **kwargs: Any) -> None:
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

    def update_child_locals(self, locals_: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.update_locals(locals_)


class Checkpoints(BaseCallback):
    """Saves the trainer to `path` every so many environment steps, between update and rollout.

    The file is whole at any time; `PPO.load(path).learn(…, reset_num_timesteps=False)` goes on.
    """

    def __init__(self, path: str | Path, every: int) -> None:
        require_integers(1, every=every)
        self.path, self.every = path, every

    def _on_training_start(self) -> None:
        self._saved = self.num_timesteps

    def _on_rollout_start(self) -> None:
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

    def _on_training_start(self) -> None:
        timing = self.model.timing
        if self.synchronize and self.model.device.type == "cuda":
            import torch

            timing.synchronize = torch.cuda.synchronize
        timing.enabled = True

    def _on_training_end(self) -> None:
        self.model.timing.enabled = False
