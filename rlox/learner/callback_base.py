"""The base classes of callbacks, and a class that calls several callbacks as one."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlox.learner.arguments import require_integers
from rlox.learner.step_locals import Locals

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm
    from rlox.learner.logger import Logger

OURS = "rlox.learner.callback_"  # modules whose `_on_step` reads only the counters


class BaseCallback:
    """Called by `learn`; override what is needed. `self.model` is the trainer.

    There are two ways to write one. Methods with an underscore (`_on_step`, `_on_rollout_end`, …)
    are Stable-Baselines3's, and are called when it would call them. Methods without an underscore
    are this library's, and call the others. The two ways differ in when a step is reported.
    `_on_step` is called between one step and the next, with `self.locals`. PPO then has to collect
    step by step in Python, which is several times slower than in Rust; `collector="async"` refuses
    such a callback. A callback with an `on_step`, or with neither, leaves rollouts in Rust, as all
    callbacks of this package do.

    Attributes: `n_calls`, vectorised steps that were reported to it; `num_timesteps`,
    environment steps of the trainer; `locals`, in `_on_step`: `actions` (of PPO as the policy drew
    them, with `clipped_actions` as the environment got them; of SAC as the environment got them,
    with `buffer_actions` in [-1, 1]), `rewards` and `dones` as arrays `[n_envs]` (what is added in
    place to `rewards` is learnt, except by SAC in a `VecNormalize`), `new_obs`, `infos` (a
    dictionary for each environment; where an episode has ended with `episode`, its return `r` and
    length `l`, and `terminal_observation`), `env` and `self`, the trainer; `training_env`, as the
    trainer's `get_env()`; `logger`. The trainer's `_last_obs` are meanwhile the observations before
    the step, as rows.
    """

    model: "Algorithm"
    n_calls = 0
    _asked_at = 0  # `n_calls` when `_is_due` was last asked
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
    def training_env(self) -> Any:
        """The trainer's environments, as its `get_env()` gives them."""
        return self.model.get_env()

    @property
    def logger(self) -> "Logger":
        """The trainer's figures; `record(name, value)` adds one."""
        return self.model.logger

    def init_callback(self, model: "Algorithm") -> None:
        """Called first in a `learn`."""
        self.model, self.locals = model, Locals()
        self._init_callback()

    def on_training_start(self, *given: Mapping[str, Any]) -> None:
        """Before the first step. `given`: `locals` and `globals`, as Stable-Baselines3 has them."""
        if given:
            self.locals.update(given[0])
        self._on_training_start()

    def on_rollout_start(self) -> None:
        """Before a rollout is collected (with `collector="async"`: waited for). Before SAC takes
        the steps of its `train_freq`, when the update before them is done."""
        self._on_rollout_start()

    def on_step(self) -> bool:
        """After each vectorised step (with `collector="async"`: each rollout).

        A rollout that is collected by one call into Rust is complete before `on_step` is called for
        its steps. The trainer's counters are then those of the step, but the environments are
        already at the rollout's end.

        Returning False stops training; returning nothing does not.
        """
        self.n_calls += 1
        return self._on_step()

    def on_rollout_end(self) -> None:
        """After each rollout, and before the update, if one follows."""
        self._on_rollout_end()

    def on_training_end(self) -> None:
        """After the last update, or when training is interrupted."""
        self._on_training_end()

    def update_locals(self, locals_: Mapping[str, Any]) -> None:
        """Set the contents of `locals`."""
        self.locals.update(locals_)
        self.update_child_locals(locals_)

    def update_child_locals(self, locals_: Mapping[str, Any]) -> None:
        """For callbacks that call others: pass `locals_` on to them."""

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

    def _is_due(self, every: int) -> bool:
        """Whether a multiple of `every` steps was reached since this was asked before."""
        before, self._asked_at = self._asked_at, self.n_calls
        return self.n_calls // every > before // every


def stops(wish: Any) -> bool:
    """Whether a callback's return value ends training: False does, also NumPy's and torch's. None,
    from a function without a `return`, does not; in Stable-Baselines3 it does."""
    return wish is not None and not wish


def is_callback(value: object) -> bool:
    """Whether it is a callback object: ours, or one of Stable-Baselines3's."""
    methods = ("init_callback", "on_step", "on_rollout_start", "update_locals")
    is_object = not isinstance(value, type)
    return is_object and all(callable(getattr(value, method, None)) for method in methods)


def start(callback: Any, locals_: dict[str, Any], globals_: Mapping[str, Any]) -> None:
    """Call `on_training_start` with the two dictionaries, as Stable-Baselines3's callbacks
    expect."""
    if isinstance(callback, BaseCallback):
        callback.locals.update(locals_)
        callback.on_training_start()
    else:
        callback.on_training_start(locals_, globals_)


class ConvertCallback(BaseCallback):
    """A function of `locals` and `globals`, called after each step; False stops training."""

    def __init__(self, callback: Callable[..., Any], verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback

    def _on_step(self) -> bool:
        return not stops(self.callback(self.locals, self.globals))


class CallbackList(BaseCallback):
    """Several callbacks as one, called in order."""

    def __init__(self, callbacks: Sequence[Any]) -> None:
        super().__init__()
        self.callbacks: list[Any] = []
        for callback in callbacks:
            if is_callback(callback):
                self.callbacks.append(callback)
            elif callable(callback) and not isinstance(callback, type):
                self.callbacks.append(ConvertCallback(callback))
            else:
                raise TypeError(
                    "callback must be a rlox.learner.callbacks.BaseCallback, one of "
                    "Stable-Baselines3's, a function of two dictionaries, or a list of these; got "
                    f"{callback!r}"
                )

    def overriding(self, method: str) -> list[str]:
        """The classes of the callbacks, and of the callbacks that they call, which have their own
        `method`, not one of this package."""
        return [name for callback in self.callbacks for name in _overriding(callback, method)]

    def count_calls(self, n: int) -> None:
        """Count `n` steps for which no callback had to be called."""
        for callback in self.callbacks:
            if isinstance(callback, CallbackList):
                callback.count_calls(n)
            callback.n_calls += n

    def asks_for_steps(self) -> bool:
        """Whether a callback does something at each step."""
        for callback in self.callbacks:
            if isinstance(callback, CallbackList):
                if callback.asks_for_steps():
                    return True
                continue
            told = (getattr(type(callback), name, None) for name in ("on_step", "_on_step"))
            if list(told) != [BaseCallback.on_step, BaseCallback._on_step]:
                return True
            if {"on_step", "_on_step"} & vars(callback).keys():
                return True
        return False

    def _init_callback(self) -> None:
        for callback in self.callbacks:
            callback.init_callback(self.model)
            if callback.parent is None:
                callback.parent = self.parent

    def _on_training_start(self) -> None:
        for callback in self.callbacks:
            start(callback, self.locals, self.globals)

    def on_step(self) -> bool:
        # Every callback is called at every step, even if an earlier one asks to stop.
        wishes = [callback.on_step() for callback in self.callbacks]
        return not any(map(stops, wishes))

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


def _overriding(callback: Any, method: str) -> list[str]:
    found: list[str] = []
    listed = getattr(callback, "callbacks", ())
    children = [*listed] if isinstance(listed, list | tuple) else []
    children += [getattr(callback, name, None) for name in ("callback", "callback_on_new_best")]
    for child in filter(is_callback, children):
        found += _overriding(child, method)
    own = getattr(callback, method)
    function = getattr(own, "__func__", None)
    written_here = getattr(function, "__module__", "").startswith(OURS)
    if not written_here or isinstance(callback, ConvertCallback):
        found.append(type(callback).__name__)
    return found


class EventCallback(BaseCallback):
    """Calls `callback` at an event."""

    def __init__(self, callback: Any = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.callback = callback
        if callback is not None:
            callback.parent = self

    def init_callback(self, model: "Algorithm") -> None:
        super().init_callback(model)
        if self.callback is not None:
            self.callback.init_callback(model)

    def _on_training_start(self) -> None:
        if self.callback is not None:
            start(self.callback, self.locals, self.globals)

    def _on_event(self) -> bool:
        """The event has happened; False stops training."""
        return self.callback is None or not stops(self.callback.on_step())

    def update_child_locals(self, locals_: Mapping[str, Any]) -> None:
        if self.callback is not None:
            self.callback.update_locals(locals_)


class EveryNTimesteps(EventCallback):
    """Calls `callback` every `n_steps` environment steps."""

    def __init__(self, n_steps: int, callback: Any) -> None:
        require_integers(1, n_steps=n_steps)
        super().__init__(callback)
        self.n_steps, self.last_time_trigger = n_steps, 0

    def _on_step(self) -> bool:
        if self.num_timesteps - self.last_time_trigger < self.n_steps:
            return True
        self.last_time_trigger = self.num_timesteps
        return self._on_event()


class LogEveryNTimesteps(EveryNTimesteps):
    """Shows figures every `n_steps` environment steps; for use with `learn(log_interval=None)`."""

    def __init__(self, n_steps: int) -> None:
        super().__init__(n_steps, None)

    def _on_event(self) -> bool:
        self.model.dump_logs()
        return True
