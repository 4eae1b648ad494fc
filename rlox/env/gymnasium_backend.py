"""Any Gymnasium environment: from its id, from a callable, or from an instance."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from rlox.env.backend import Step, Timer
from rlox.env.in_turn import reset_in_turn, step_in_turn

EnvFactory = Callable[[], gymnasium.Env[Any, Any]]
EnvSource = str | gymnasium.Env[Any, Any] | EnvFactory | Sequence[EnvFactory]


class GymnasiumBackend:
    """`SyncVectorEnv` with same-step autoreset; its steps are timed as `python_env`. `step_all`
    steps it, in one of the forms of R21."""

    def __init__(
        self, source: EnvSource, n_envs: int, seed: int | None, copy: bool, kwargs: dict[str, Any]
    ) -> None:
        self.envs: SyncVectorEnv[Any, Any] = SyncVectorEnv(
            [partial(_made, factory) for factory in _factories(source, n_envs, kwargs)],
            copy=copy,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        self.single_observation_space = self.envs.single_observation_space
        self.single_action_space = self.envs.single_action_space
        self.metadata = self.envs.metadata
        self.spec = self.envs.envs[0].spec
        self.render_mode = self.envs.render_mode
        self.timing: Timer | None = None
        self.step_all = step_in_turn
        # Random streams begin with the first reset, so the seeds are kept until then.
        self._seeds = None if seed is None else [seed + i for i in range(n_envs)]

    def reset(
        self, seeds: Sequence[int | None] | None, options: dict[str, Any] | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start new episodes."""
        if self._seeds is not None:
            given = seeds or [None] * len(self._seeds)
            seeds = [
                own if new is None else new for new, own in zip(given, self._seeds, strict=True)
            ]
        # A copy, since `SyncVectorEnv` takes `reset_mask` out of the dictionary it is given.
        first = reset_in_turn(
            self.envs,
            None if seeds is None else list(seeds),
            dict(options) if options else None,
        )
        self._seeds = None
        return first

    def step(self, actions: NDArray[Any]) -> Step:
        """Step every environment."""
        self._check(actions)
        if self.timing is None:
            return self.step_all(self.envs, actions)
        with self.timing.add_time("python_env"):
            return self.step_all(self.envs, actions)

    def _check(self, actions: NDArray[Any]) -> None:
        """Refuse wrong actions here. Inside an environment they would raise an unclear error, or
        none."""
        space = self.envs.action_space
        if space.shape is None:
            return
        if not isinstance(actions, np.ndarray):
            raise TypeError(f"actions: is a {type(actions).__name__}, expected a NumPy array")
        if actions.shape != space.shape:
            raise ValueError(f"actions: has shape {actions.shape}, expected {space.shape}")
        single = self.single_action_space
        if isinstance(single, gymnasium.spaces.Discrete):
            if actions.dtype.kind not in "iu":
                raise TypeError(f"actions: has dtype {actions.dtype}, expected integers")
            low, high = single.start, single.start + single.n - 1
            if actions.min() < low or actions.max() > high:
                raise ValueError(f"actions: {actions} are not all within {low} to {high}")
        elif actions.dtype.kind == "f" and not np.isfinite(actions).all():
            raise ValueError("actions: not all numbers are finite")

    def render(self) -> tuple[Any, ...]:
        """One frame of each environment."""
        return tuple(self.envs.render())

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()


class WithoutOptions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """For environments whose `reset` takes only a seed, as some older than Gymnasium do."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if options:
            raise ValueError(f"options: {self.unwrapped} takes none; it was given {options}")
        return self.env.reset(seed=seed)


def _made(factory: EnvFactory) -> gymnasium.Env[Any, Any]:
    env = factory()
    takes = inspect.signature(env.reset).parameters.values()
    known = any(one.name == "options" or one.kind is one.VAR_KEYWORD for one in takes)
    return env if known else WithoutOptions(env)


def _factories(source: EnvSource, n_envs: int, kwargs: dict[str, Any]) -> Sequence[EnvFactory]:
    if isinstance(source, str):
        return [partial(gymnasium.make, source, **kwargs)] * n_envs
    if kwargs:
        raise ValueError(f"{', '.join(kwargs)}: keyword arguments go with an id only")
    if isinstance(source, gymnasium.Env):
        return [lambda: source, *_more_like(source, n_envs - 1)]
    if callable(source):
        return [source] * n_envs
    if len(source) != n_envs or not all(map(callable, source)):
        raise ValueError(f"env_id: expected {n_envs} callables (n_envs), got {len(source)} items")
    return list(source)


def _more_like(env: gymnasium.Env[Any, Any], n: int) -> list[EnvFactory]:
    if n == 0:
        return []
    if env.spec is None:
        raise ValueError(
            "env_id: an instance that gymnasium.make did not make cannot be multiplied; "
            "pass a callable that makes one, or n_envs=1"
        )
    return [partial(gymnasium.make, env.spec)] * n


def exact_id(env_id: str) -> str:
    """`env_id` with its version: the one given, otherwise the latest, with Gymnasium's warning. The
    module before a colon is imported first, since it may register the environment.

    Raises `ValueError`, with similar names, if there is no such environment.
    """
    module, colon, name = env_id.rpartition(":")
    if colon:
        try:
            importlib.import_module(module)
        except (ImportError, TypeError, ValueError) as error:  # the last two: no valid module name
            raise ValueError(
                f"env_id: the module of {env_id!r} cannot be imported ({error})"
            ) from error
    if name in gymnasium.registry:
        return env_id
    try:
        namespace, base, version = parse_env_id(name)
    except gymnasium.error.Error:
        latest = None
    else:
        latest = find_highest_version(namespace, base) if version is None else None
    if latest is None:
        close = difflib.get_close_matches(name, gymnasium.registry, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"env_id: no environment is registered as {name!r}{hint}")
    exact = get_env_id(namespace, base, latest)
    gymnasium.logger.warn(
        f"Using the latest versioned environment `{exact}` "
        f"instead of the unversioned environment `{name}`."
    )
    return f"{module}{colon}{exact}"
