"""Adapters of vector environments. Trainers can then step Stable-Baselines3's environments, and
Gymnasium's with next-step autoreset; and the trainers' own environments get Stable-Baselines3's
interface. That library is needed only for environments of its kind."""

import sys
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from rlox.learner.infos import (
    TheirInfos,
    copied,
    each_info,
    last_infos,
    monitored_episodes,
    told_apart,
)
from rlox.timing import Timing

AnyEnv = VectorEnv[Any, Any, Any]
THEIRS = "stable_baselines3.common.vec_env"


def is_theirs(env: object) -> bool:
    """Whether `env` is a vector environment of Stable-Baselines3."""
    return THEIRS in sys.modules and isinstance(env, their_base())


class OfTrainer:
    """The base of what a trainer's `get_env()` returns, with its environments `env`. `moved` is
    called when code outside the trainer resets or steps them."""

    env: AnyEnv
    moved: Callable[[], None]


class FromTheirs(VectorEnv[Any, Any, Any]):
    """A vector environment of Stable-Baselines3, `theirs`, as one of Gymnasium's with same-step
    autoreset. Its wrappers, such as `VecNormalize`, stay in effect. An episode that a time limit
    ends without a `terminal_observation` counts as terminated: nothing is bootstrapped."""

    def __init__(self, theirs: Any) -> None:
        self.theirs, self.timing = theirs, Timing(enabled=False)
        self.num_envs = int(theirs.num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = theirs.observation_space
        self.single_action_space = theirs.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        if isinstance(seed, int):
            self.theirs.seed(seed)
        return self.theirs.reset(), {}

    def step(self, actions: Any) -> Any:
        with self.timing.add_time("python_env"):
            obs, rewards, dones, each = self.theirs.step(actions)
        infos, truncations = TheirInfos(), np.zeros(self.num_envs, np.bool_)
        infos.each = each
        if dones.any():
            last = [info.get("terminal_observation") for info in each]
            truncated = [
                info.get("TimeLimit.truncated", False) and final is not None
                for info, final in zip(each, last, strict=True)
            ]
            truncations = np.asarray(truncated, dtype=np.bool_) & dones
            begun = _each_obs(obs, self.single_observation_space)
            infos["final_obs"] = [
                new if final is None else final for final, new in zip(last, begun, strict=True)
            ]
        return obs, np.asarray(rewards), dones & ~truncations, truncations, infos

    @cached_property
    def monitored(self) -> bool:
        """Whether a `Monitor` tells of episodes."""
        from stable_baselines3.common.monitor import Monitor
        from stable_baselines3.common.vec_env import VecEnvWrapper, VecMonitor

        env = self.theirs
        while isinstance(env, VecEnvWrapper):
            if isinstance(env, VecMonitor):
                return True
            env = env.venv
        return bool(self.theirs.env_is_wrapped(Monitor)[0])

    def render(self) -> Any:
        return self.theirs.render()

    def close_extras(self, **kwargs: Any) -> None:
        self.theirs.close()


class NextStep(VectorWrapper):
    """An environment with next-step autoreset: it resets in the step after an episode's end, and
    ignores that step's action. `idle` marks the environments whose last step was only such a reset;
    nothing is learnt from those rows."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.timing = Timing(enabled=False)
        self.idle = np.zeros(env.num_envs, np.bool_)
        self._ended = self.idle

    def reset(self, **kwargs: Any) -> Any:
        self._ended = np.zeros(self.num_envs, np.bool_)
        return self.env.reset(**kwargs)

    def step(self, actions: Any) -> Any:
        with self.timing.add_time("python_env"):
            obs, rewards, terminations, truncations, infos = self.env.step(actions)
        self.idle, self._ended = self._ended, terminations | truncations
        if self._ended.any():
            final = _each_obs(obs, self.single_observation_space)
            told = {"final_obs": final, "final_info": infos}
            infos = {**infos, **told, **{f"_{name}": self._ended for name in told}}
        return obs, rewards, terminations, truncations, infos


def _each_obs(obs: Any, space: spaces.Space[Any]) -> list[Any]:
    """The observations of a batch one by one."""
    if isinstance(space, spaces.Dict):
        n = len(next(iter(obs.values())))
        return [{key: obs[key][row] for key in space.spaces} for row in range(n)]
    return list(obs)


def single_envs(env: AnyEnv) -> list[gym.Env[Any, Any]] | None:
    """The environments that `env` steps one by one; None if there are none."""
    inner: Any = env.unwrapped
    inner = getattr(getattr(inner, "backend", None), "envs", inner)
    found: list[gym.Env[Any, Any]] | None = getattr(inner, "envs", None)
    return found


def to_theirs(env: AnyEnv, moved: Callable[[], None]) -> Any:
    """`env`, which has same-step autoreset, as Stable-Baselines3's kind of environment. `moved` is
    called when somebody resets or steps it. It is a subclass of that library's `VecEnv` if the
    program has imported the library."""
    if isinstance(env, FromTheirs):
        return env.theirs
    return _to_theirs_class(their_base())(env, moved)


def their_base() -> Any:
    """Stable-Baselines3's `VecEnv` if the program has imported it, otherwise `object`."""
    module = sys.modules.get(THEIRS)
    return object if module is None else module.VecEnv


@cache
def _to_theirs_class(base: Any) -> Any:
    class ToTheirs(OfTrainer, base):  # type: ignore[misc]
        """A trainer's environments with the methods of Stable-Baselines3's `VecEnv`. The infos have
        returns and lengths of episodes, as a `Monitor` gives them."""

        def __init__(self, env: AnyEnv, moved: Callable[[], None]) -> None:
            self.env, self.moved = env, moved
            self.num_envs = env.num_envs
            self.observation_space = env.single_observation_space
            self.action_space = env.single_action_space
            self.render_mode = env.render_mode
            self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            self.metadata: dict[str, Any] = {"render_modes": []}
            self._seed: int | None = None
            self._options: Any = None
            self._returns = np.zeros(self.num_envs)
            self._lengths = np.zeros(self.num_envs, np.int64)
            self._actions: Any = None
            self._monitored = holds_monitor(env)

        def reset(self) -> Any:
            if isinstance(self.env, NextStep):
                raise ValueError(
                    "env: resets in the step after an episode's end, which a VecEnv must not; make "
                    "it with autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP"
                )
            self.moved()
            self._returns[:], self._lengths[:] = 0, 0
            obs, infos = self.env.reset(seed=self._seed, options=self._options)
            self._seed = self._options = None
            self.reset_infos = each_info(infos, self.num_envs)
            return copied(obs)

        def step(self, actions: Any) -> Any:
            self.step_async(actions)
            return self.step_wait()

        def step_async(self, actions: Any) -> None:
            self._actions = np.asarray(actions)

        def step_wait(self) -> Any:
            self.moved()
            obs, rewards, terminations, truncations, infos = self.env.step(self._actions)
            dones = terminations | truncations
            self._returns += rewards
            self._lengths += 1
            ended = np.flatnonzero(dones).tolist()
            told = told_apart(infos, self.num_envs, ended)
            last = last_infos(infos, self.num_envs, ended) if self._monitored else None
            if monitored_episodes(last, False, self._monitored) is None:
                for row in ended:
                    episode = {"r": float(self._returns[row]), "l": int(self._lengths[row])}
                    told[row]["episode"] = episode
            cut_short = (truncations & ~terminations).tolist()
            for info, truncated in zip(told, cut_short, strict=True):
                info["TimeLimit.truncated"] = truncated
            self._returns[dones], self._lengths[dones] = 0, 0
            return copied(obs), np.array(rewards, np.float32), dones, told

        def seed(self, seed: int | None = None) -> list[int | None]:
            self._seed = seed
            return [None if seed is None else seed + i for i in range(self.num_envs)]

        def set_options(self, options: Any = None) -> None:
            """Options of the next reset: a dictionary, or a list with one for each environment.
            ValueError if these differ, since all are reset together."""
            each = list(options) if isinstance(options, list | tuple) else [options]
            if any(one != each[0] for one in each):
                raise ValueError(f"options: differ, {options}; all environments take the same")
            self._options = each[0] or None

        def close(self) -> None:
            self.env.close()

        def get_images(self) -> Any:
            return self.env.render()

        def render(self, mode: str | None = None) -> Any:
            if self.render_mode is None and mode == "rgb_array":
                # They were made without a render mode, with which some environments step more
                # slowly.
                for one in single_envs(self.env) or ():
                    one.unwrapped.render_mode = mode
                self.render_mode = mode
            if self.render_mode is None:
                return None
            frames = self.env.render()
            return frames[0] if mode == "rgb_array" and frames and len(frames) == 1 else frames

        def _of(self, indices: Any) -> list[Any]:
            envs = single_envs(self.env)
            if envs is None:
                raise AttributeError(
                    "these environments run in Rust, or in other processes, and have no Python "
                    "object each; make them with gymnasium.make and give the trainer that"
                )
            rows = range(self.num_envs) if indices is None else np.atleast_1d(indices).tolist()
            return [envs[row] for row in rows]

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [env.get_wrapper_attr(attr_name) for env in self._of(indices)]

        def has_attr(self, attr_name: str) -> bool:
            return all(env.has_wrapper_attr(attr_name) for env in self._of(None))

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            for env in self._of(indices):
                env.set_wrapper_attr(attr_name, value)

        def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
            indices = kwargs.pop("indices", None)
            return [env.get_wrapper_attr(method_name)(*args, **kwargs) for env in self._of(indices)]

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            if wrapper_class.__name__ == "Monitor":
                return [True] * self.num_envs
            envs = single_envs(self.env)
            if envs is None:
                return [False] * self.num_envs
            return [_wrapped(env, wrapper_class) for env in envs]

        @property
        def envs(self) -> list[Any]:
            return self._of(None)

        @property
        def unwrapped(self) -> Any:
            return self

    return ToTheirs


def holds_monitor(env: AnyEnv) -> bool:
    """Whether a `Monitor` of Stable-Baselines3 tells of the episodes of each environment."""
    if isinstance(env, FromTheirs):
        return env.monitored
    module: Any = sys.modules.get("stable_baselines3.common.monitor")
    envs = None if module is None else single_envs(env)
    return bool(envs) and all(_wrapped(one, module.Monitor) for one in envs or ())


def _wrapped(env: Any, wrapper_class: Any) -> bool:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper_class):
            return True
        env = env.env
    return False
