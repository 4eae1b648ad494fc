"""What the trainers learn in: one vectorised environment, whatever the user gave."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from rlox import _core
from rlox.env import VecEnv
from rlox.env.native_backend import NativeBackend
from rlox.timing import Timing

AnyEnv = VectorEnv[Any, Any, Any]


class TimedEnv(VectorWrapper):
    """A Python vector environment whose steps show as the phase `python_env`."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.timing = Timing(enabled=False)

    def step(self, actions: Any) -> Any:
        with self.timing.add_time("python_env"):
            return self.env.step(actions)


def make_vector_env(env: str | gym.Env[Any, Any] | AnyEnv, n_envs: int) -> AnyEnv:
    """A vector environment that resets within the step and has a `timing`.

    `env` is the id of a registered environment (`n_envs` of them are made), one environment, or a
    vector environment; the last two bring their own number of environments.
    """
    if isinstance(env, str):
        return VecEnv(env, n_envs, copy=False)  # what is kept of a step is copied
    if isinstance(env, VectorEnv):
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(_remedy(env, mode))
        return env if hasattr(env, "timing") else TimedEnv(env)
    if isinstance(env, gym.Env):
        return VecEnv(env, 1)
    raise TypeError(
        "env must be an environment id, a gymnasium.Env or a gymnasium.vector.VectorEnv, "
        f"got {type(env).__name__}"
    )


def _remedy(env: AnyEnv, mode: object) -> str:
    """What to build in place of an environment that resets with `mode`."""
    n, same_step = env.num_envs, "gymnasium.vector.AutoresetMode.SAME_STEP"
    maker, where = "make_env", ", where make_env() makes one environment"
    if env.spec is not None:
        of_vectors = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")
        own = {name: v for name, v in env.spec.kwargs.items() if name not in of_vectors}
        more = "".join(f", {name}={value!r}" for name, value in own.items())
        maker, where = f"lambda: gymnasium.make({env.spec.id!r}{more})", ""
    return (
        f"env resets with {mode}; the trainers need AutoresetMode.SAME_STEP, which not every "
        f"vector environment has. Build it as `rlox.VecEnv({maker}, {n})` or "
        f"`gymnasium.vector.SyncVectorEnv([{maker}] * {n}, autoreset_mode={same_step})`{where}"
    )


def rust_core(env: object) -> _core.VecEnv | None:
    """The environments in Rust behind `env`, if nothing of Python's steps them: a subclass of ours
    may step otherwise."""
    if type(env) is VecEnv and isinstance(env.backend, NativeBackend):
        return env.backend.core
    return None


def require_box_observations(env: AnyEnv) -> spaces.Box:
    """The observation space of one environment; ValueError if it is not a `Box`."""
    space = env.single_observation_space
    if not isinstance(space, spaces.Box):
        raise ValueError(
            f"observation space {space} is not supported: the trainers take Box; "
            "`gymnasium.wrappers.FlattenObservation(env)` turns any other into one"
        )
    return space


def flatten_obs(obs: Any, space: spaces.Box) -> NDArray[Any]:
    """Observations `[n, *space.shape]` as a fresh `[n, obs_dim]`, float32, or uint8 if they are.

    Always a copy: a vector environment with `copy=False` writes the next step into the same array.
    """
    dtype = np.uint8 if space.dtype == np.uint8 else np.float32
    array = np.array(obs, dtype=dtype)
    return array.reshape(len(array), -1)


def final_obs(infos: dict[str, Any], rows: NDArray[np.intp], space: spaces.Box) -> NDArray[Any]:
    """Last observations, `[len(rows), obs_dim]`, of the episodes that ended in `rows`."""
    return flatten_obs(np.stack([infos["final_obs"][row] for row in rows]), space)
