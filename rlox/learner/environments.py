"""Makes the vector environment that a trainer learns in from what the user gave."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from rlox import _core
from rlox.env import VecEnv
from rlox.env.native_backend import NativeBackend
from rlox.learner.infos import last_obs
from rlox.learner.spaces import flatten_obs, stacked
from rlox.learner.vector_envs import AnyEnv, FromTheirs, NextStep, OfTrainer, is_theirs
from rlox.timing import Timing


class TimedEnv(VectorWrapper):
    """A Python vector environment whose steps are timed as the phase `python_env`."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.timing = Timing(enabled=False)

    def step(self, actions: Any) -> Any:
        with self.timing.add_time("python_env"):
            return self.env.step(actions)


class NoEnv(VectorEnv[Any, Any, Any]):
    """Takes the place of environments: the spaces of a trainer that was loaded without any."""

    def __init__(self, spaces: Sequence[Any], n_envs: int) -> None:
        self.num_envs, self.timing = n_envs, Timing(enabled=False)
        self.single_observation_space, self.single_action_space = spaces
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def reset(self, **_: Any) -> Any:
        raise RuntimeError(
            "env: the trainer was loaded without an environment; give one, load(path, env=…) or "
            "set_env(env)"
        )


def make_vector_env(env: Any, n_envs: int) -> AnyEnv:
    """A vector environment with same-step autoreset, or a `NextStep`, that has a `timing`.

    `env` is the id of a registered environment (`n_envs` of them are made), one environment, a
    callable that makes one, several callables, a vector environment of Gymnasium's or of
    Stable-Baselines3's kind, or what a trainer's `get_env()` returned. All but an id bring their
    own number of environments.
    """
    if isinstance(env, str):
        return VecEnv(env, n_envs, copy=False)  # trainers copy what they keep of a step
    if getattr(env, "__dict__", {}).get("of_a_trainer"):
        env = env.venv
    if isinstance(env, OfTrainer):
        env.moved()
        env = env.env
    if is_theirs(env):
        return FromTheirs(env)
    if isinstance(env, NoEnv | NextStep):
        return env
    if isinstance(env, VectorEnv):
        mode = env.metadata.get("autoreset_mode")
        if mode == AutoresetMode.NEXT_STEP:
            return NextStep(env)
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(_remedy(env, mode))
        return env if hasattr(env, "timing") else TimedEnv(env)
    if isinstance(env, gym.Env):
        return VecEnv(env, 1)
    if isinstance(env, list | tuple) and env and all(map(callable, env)):
        return VecEnv(list(env), len(env))
    if callable(env):
        return VecEnv(env, 1)
    raise TypeError(
        "env must be an environment id, a gymnasium.Env, a gymnasium.vector.VectorEnv, a VecEnv of "
        f"Stable-Baselines3, or callables that make environments; got {type(env).__name__}"
    )


def _remedy(env: AnyEnv, mode: object) -> str:
    """What to use instead of an environment with this autoreset `mode`."""
    n, same_step = env.num_envs, "gymnasium.vector.AutoresetMode.SAME_STEP"
    maker, where = "make_env", ", where make_env() makes one environment"
    if env.spec is not None:
        of_vectors = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")
        own = {name: v for name, v in env.spec.kwargs.items() if name not in of_vectors}
        more = "".join(f", {name}={value!r}" for name, value in own.items())
        maker, where = f"lambda: gymnasium.make({env.spec.id!r}{more})", ""
    return (
        f"env resets with {mode}; the trainers need AutoresetMode.SAME_STEP or NEXT_STEP. "
        f"Build it as `rlox.VecEnv({maker}, {n})` or "
        f"`gymnasium.vector.SyncVectorEnv([{maker}] * {n}, autoreset_mode={same_step})`{where}"
    )


def rust_core(env: object) -> _core.VecEnv | None:
    """The environments in Rust behind `env`, unless Python code steps them: a subclass of `VecEnv`
    may have its own `step`."""
    if type(env) is VecEnv and isinstance(env.backend, NativeBackend):
        return env.backend.core
    return None


def final_obs(infos: Any, rows: NDArray[np.intp], space: gym.Space[Any]) -> NDArray[Any]:
    """The last observations, as rows, of the episodes that ended in the environments `rows`."""
    return flatten_obs(stacked(last_obs(infos, rows.tolist()), space), space)
