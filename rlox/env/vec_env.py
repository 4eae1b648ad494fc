"""`VecEnv`: one interface for environments in Rust and in Python."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rlox.env.arguments import integer
from rlox.env.backend import Backend, ClosedBackend, Step, Timer
from rlox.env.gymnasium_backend import EnvSource, GymnasiumBackend, exact_id
from rlox.env.native_backend import NativeBackend, runs_natively


class VecEnv(VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]]):
    """`n_envs` environments that are stepped together: a `gymnasium.vector.VectorEnv`.

    Acrobot-v1, CartPole-v1, MountainCar-v0, MountainCarContinuous-v0 and Pendulum-v1 run in Rust.
    Gymnasium runs all others: other ids, ids with keyword arguments, a callable that makes an
    environment (or `n_envs` callables), and an instance. Ids mean what they mean to Gymnasium:
    "module:Env-v0" imports the module first, and "Env" is the latest version (with a warning). If
    the program has registered an environment of its own under a native id, that one runs.

    Autoreset is same-step: if an episode ends, the returned observation is the first one of the
    next episode. `infos["final_obs"]` (object array, `None` elsewhere; mask `_final_obs`) has the
    last observation of the ended episode, for bootstrapping. Infos are made when one of their
    methods is first called, which C code such as `json`'s does not do: give it `dict(infos)`.

    Environment i is seeded with `seed + i`, and starts in the same state as Gymnasium's. Without a
    seed, environments in Python keep their own random state. With `copy=False` every call returns
    the same arrays, and overwrites them. With `copy=True`, and for infos always, no array that you
    still refer to is overwritten: arrays are new, or are earlier ones to which nothing refers any
    more.

    Raises `ValueError` for an unknown id (with similar names), and for a bad `n_envs` or `seed`.
    """

    def __init__(
        self,
        env_id: EnvSource,
        n_envs: int = 1,
        seed: int | None = None,
        copy: bool = True,
        **env_kwargs: Any,
    ) -> None:
        n_envs = integer("n_envs", n_envs)
        if n_envs < 1:
            raise ValueError(f"n_envs: is {n_envs}, expected at least 1")
        given = None if seed is None else _seed(seed)
        if isinstance(env_id, str):
            env_id = exact_id(env_id).rpartition(":")[2]
        self.backend: Backend
        if isinstance(env_id, str) and runs_natively(env_id) and not env_kwargs:
            first = secrets.randbits(64) if given is None else given
            self.backend = NativeBackend(env_id, n_envs, first, copy)
        else:
            self.backend = GymnasiumBackend(env_id, n_envs, given, copy, env_kwargs)
        self.num_envs = n_envs
        self.metadata = self.backend.metadata | {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.spec = self.backend.spec
        self.render_mode = self.backend.render_mode
        self.single_observation_space = self.backend.single_observation_space
        self.single_action_space = self.backend.single_action_space
        self.observation_space = batch_space(self.single_observation_space, n_envs)
        self.action_space = batch_space(self.single_action_space, n_envs)

    @property
    def n_envs(self) -> int:
        """The number of environments; Gymnasium's name is `num_envs`."""
        return self.num_envs

    @property
    def timing(self) -> Timer | None:
        """The timing to which the time of Python environments is added, as `python_env`."""
        return self.backend.timing

    @timing.setter
    def timing(self, timing: Timer | None) -> None:
        self.backend.timing = timing

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start new episodes; returns observations `[n_envs, …]` and infos.

        `seed`: environment i gets `seed + i`, or the i-th of a sequence; without a seed its random
        stream continues. `options`: those of the environment, and `reset_mask`, bool `[n_envs]`,
        which says which environments to reset. Raises `RuntimeError` after `close`.
        """
        if seed is None:
            return self.backend.reset(None, options)
        if isinstance(seed, Sequence):
            seeds = [None if item is None else _seed(item) for item in seed]
            if len(seeds) != self.num_envs:
                raise ValueError(f"seed: has length {len(seeds)}, expected {self.num_envs}")
        else:
            first = _seed(seed)
            super().reset(seed=first)
            seeds = [first + i for i in range(self.num_envs)]
        return self.backend.reset(seeds, options)

    def step(self, actions: NDArray[Any]) -> Step:
        """Step every environment.

        `actions`: integers `[n_envs]` for a Discrete `action_space`, float32 `[n_envs, act_dim]`
        for a Box. Returns observations, rewards float64, terminations bool, truncations bool (each
        `[n_envs]`), infos. Raises `TypeError` or `ValueError` that names `actions` before any
        environment is stepped, and `RuntimeError` after `close`.
        """
        return self.backend.step(actions)

    def render(self) -> tuple[Any, ...]:
        """One frame of each environment."""
        return self.backend.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Release what the environments hold. Afterwards only `close` may be called."""
        backend, self.backend = self.backend, ClosedBackend(self.backend)
        backend.close()


def _seed(seed: Any) -> int:
    value = integer("seed", seed)
    if not 0 <= value < 1 << 127:
        raise ValueError(f"seed: is {value}, expected at least 0 and below 2**127")
    return value
