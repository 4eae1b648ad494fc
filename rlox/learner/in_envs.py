"""A trainer's environments, and the returns and lengths of their episodes."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlox.env.gymnasium_backend import GymnasiumBackend
from rlox.learner import switchboard
from rlox.learner.arguments import Unsupported
from rlox.learner.environments import NoEnv, make_vector_env, rust_core
from rlox.learner.features import with_channels_first
from rlox.learner.finite import FiniteSteps
from rlox.learner.infos import TheirInfos, last_infos, monitored_episodes
from rlox.learner.spaces import are_same, flatten_obs
from rlox.learner.their_names import TrainerNames
from rlox.learner.vector_envs import (
    AnyEnv,
    FromTheirs,
    NextStep,
    holds_monitor,
    their_base,
    to_theirs,
)
from rlox.timing import Timing


class InEnvs(TrainerNames):
    """The part of a trainer that handles its environments and their episodes."""

    vector_env: AnyEnv
    env_id: str | None
    n_envs: int
    observation_space: spaces.Space[Any]
    num_timesteps: int
    episode_returns: list[float]
    episode_lengths: list[int]
    stats_window_size: int
    optimizations: frozenset[str]
    timing: Timing
    _their_env: Any
    _workers: Any
    _env_seed: int | None
    _new_seed: Any
    _finite: FiniteSteps
    _last_obs: NDArray[Any] | None
    # While callbacks are told of a step: the observations after it; `_last_obs` are those before.
    _next_obs: NDArray[Any] | None = None
    _inner_env: Any
    # What a Monitor has told of the latest episodes, by their place in the list `_heard_in`.
    _heard_of: dict[int, dict[str, Any]]
    _heard_in: list[float] | None = None
    _successes: list[bool]
    _successes_in: list[float] | None = None

    @property
    def _rank(self) -> int:
        return self._workers.rank if self._workers else 0

    @property
    def _all_envs(self) -> int:
        """The number of environments of all processes that train this model."""
        return self.n_envs * (self._workers.size if self._workers else 1)

    @property
    def env(self) -> Any:
        """As `get_env()`. `vector_env` is Gymnasium's kind, which the trainer steps."""
        return self.get_env()

    @env.setter
    def env(self, env: Any) -> None:
        self.set_env(env)

    def get_env(self) -> Any:
        """The environments as a vector environment of Stable-Baselines3's kind: the one that was
        given, or this trainer's with the same methods. If the program has imported that library, a
        wrapper puts the channels of images first. None if the trainer has no environments."""
        if isinstance(self.vector_env, NoEnv):
            return None
        if not isinstance(self._their_env, their_base()) or self._their_env is None:
            self._their_env = to_theirs(self.vector_env, self._env_moved)
            if their_base() is not object:
                self._their_env = with_channels_first(self._their_env)
        return self._their_env

    def _env_moved(self) -> None:
        """Called when code outside the trainer resets or steps the environments: new episodes begin
        before the trainer's next step (in Rust: its next rollout)."""
        self._last_obs = self._next_obs = None

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Train in `env` from now on, in new episodes. With `force_reset=False` the present
        episodes continue if `env` is the trainer's own. ValueError for other spaces."""
        own = (self.get_env(), self.vector_env, getattr(self.vector_env, "theirs", None))
        if env is not None and any(env is one for one in own):
            if force_reset:
                self._last_obs = self._next_obs = None
            return
        made = self._steppable(make_vector_env(env, self.n_envs))
        for what in ("observation", "action"):
            old, new = getattr(self, f"{what}_space"), getattr(made, f"single_{what}_space")
            if not are_same(old, new):
                raise ValueError(f"env: its {what} space is {new}, and the trainer's is {old}")
        if made.num_envs != self.n_envs:
            raise Unsupported(
                f"env: has {made.num_envs} environments, and the trainer was made for "
                f"{self.n_envs}; make it with n_envs={made.num_envs}, or load it with env=…"
            )
        self.vector_env, self.env_id = made, env if isinstance(env, str) else None
        self.vector_env.timing = self.timing  # type: ignore[attr-defined]
        self._last_obs = self._next_obs = None
        self._finite = FiniteSteps(cast(Any, self))
        self._watch_env()

    def _steppable(self, made: AnyEnv) -> AnyEnv:
        """The environments; ValueError if this trainer cannot step them."""
        if self._workers and isinstance(made, NextStep):
            raise Unsupported(
                "env: resets in the step after an episode's end, so that the rollouts of several "
                "processes differ in length; make it with "
                "autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP"
            )
        return made

    def _watch_env(self) -> None:
        """Look up the parts of the environments that each counted step needs."""
        self._their_env = None
        self._inner_env = self.vector_env.unwrapped  # without the wrappers that a trainer adds
        self._next_step = self.vector_env if isinstance(self.vector_env, NextStep) else None
        self._monitored = holds_monitor(self.vector_env)
        # Environments in Rust tell nothing of an episode but its last observation.
        self._hears_ends = rust_core(self.vector_env) is None
        backend = getattr(self.vector_env, "backend", None)
        if isinstance(backend, GymnasiumBackend):
            backend.step_all = switchboard.STEP_ENVS.of(self.optimizations)

    def get_vec_normalize_env(self) -> Any:
        """The `VecNormalize` around the environments; None if there is none."""
        env = self.vector_env.theirs if isinstance(self.vector_env, FromTheirs) else None
        # Of its class: a wrapper around it passes on what is asked of an object.
        while env is not None and not hasattr(type(env), "normalize_obs"):
            env = getattr(env, "venv", None)
        return env

    @property
    def ep_info_buffer(self) -> list[dict[str, Any]]:
        """The latest episodes: `r`, return, `l`, length, and what else a `Monitor` tells."""
        heard = self._heard_of if self._heard_in is self.episode_returns else {}
        first = max(0, len(self.episode_returns) - self.stats_window_size)
        latest = zip(self.episode_returns[first:], self.episode_lengths[first:], strict=True)
        return [
            {**heard.get(at, {}), "r": r, "l": length}
            for at, (r, length) in enumerate(latest, first)
        ]

    def _reset_env(self) -> NDArray[Any]:
        """Reset; returns the first observations. Every `learn` uses another seed."""
        seed = self._env_seed
        if seed is not None:
            self._env_seed = self._new_seed()
            seed += self._rank * self.n_envs  # the seeds of one process with all environments
        obs = flatten_obs(self.vector_env.reset(seed=seed)[0], self.observation_space)
        self._begin_episodes(obs)
        return obs

    def _go_on_from(self, obs: NDArray[Any]) -> None:
        """Continue in the episodes that are under way in the environments, whose observations are
        `obs`. New episodes begin if the number of environments differs, or if several processes
        share them."""
        if self._workers or len(obs) != self.n_envs:
            return
        self._begin_episodes(obs)
        self._last_obs = obs

    def _begin_episodes(self, obs: NDArray[Any]) -> None:
        """Count steps from here on; `obs` are the environments' present observations."""
        self._running_return = np.zeros(self.n_envs)
        self._running_length = np.zeros(self.n_envs, dtype=np.int64)
        self._episode_starts = np.ones(self.n_envs, np.float32)  # of the next step
        self._finite.reset(obs)
        self._inner_env.stepped_by = self

    @property
    def _moved(self) -> bool:
        """Whether no episode is under way, or others have stepped the environments meanwhile, of
        which Stable-Baselines3's kind tell only where `get_env` gave them."""
        return self._last_obs is None or self._inner_env.stepped_by is not self

    def _current_obs(self) -> NDArray[Any]:
        """The present observations. New episodes begin if the environments were moved."""
        obs = None if self._moved else self._last_obs
        if obs is None:
            obs = self._last_obs = self._reset_env()
        return obs

    def _last_infos(self, infos: Any, ended: Sequence[int]) -> list[dict[str, Any]] | None:
        """The last infos of the episodes that have ended in the environments `ended`, if known."""
        return last_infos(infos, self.n_envs, ended) if self._hears_ends else None

    def _heard(
        self, infos: Any, last: Sequence[dict[str, Any]] | None
    ) -> list[dict[str, Any] | None] | None:
        """What a `Monitor` tells of the episodes with these `last` infos; None if there is none."""
        return monitored_episodes(last, isinstance(infos, TheirInfos), self._monitored)

    def _count_step(
        self, rewards: NDArray[Any], dones: NDArray[np.bool_], infos: Any = None
    ) -> None:
        """Count one vectorised step. Without its `infos` no Monitor is asked."""
        self.num_timesteps += self._all_envs
        self._running_return += rewards
        self._running_length += 1
        if self._next_step is not None:
            self._running_length -= self._next_step.idle
        if np.count_nonzero(dones):  # takes a fifth of the time of dones.any()
            heard = None
            if infos is not None:
                last = self._last_infos(infos, np.flatnonzero(dones).tolist())
                heard = self._heard(infos, last)
                self._note_success(last or ())
            if heard is None:
                self.episode_returns += [float(x) for x in self._running_return[dones]]
                self.episode_lengths += [int(x) for x in self._running_length[dones]]
            else:
                self._count_heard([one for one in heard if one])
            self._running_return[dones] = 0
            self._running_length[dones] = 0

    def _note_success(self, last: Sequence[dict[str, Any]]) -> None:
        """Note the `is_success` of the `last` infos of episodes."""
        found = [info["is_success"] for info in last if info.get("is_success") is not None]
        if found:
            self._successes = [*self.ep_success_buffer, *map(bool, found)]
            self._successes = self._successes[-self.stats_window_size :]
            self._successes_in = self.episode_returns

    @property
    def ep_success_buffer(self) -> list[bool]:
        """The `is_success` of the latest episodes that had one in their last infos."""
        return self._successes if self._successes_in is self.episode_returns else []

    def _success_rate(self) -> dict[str, float]:
        """The figure of `ep_success_buffer`, if it holds anything."""
        found = self.ep_success_buffer
        return {"rollout/success_rate": float(np.mean(found))} if found else {}

    def _count_heard(self, episodes: Sequence[dict[str, Any]]) -> None:
        """Count episodes of which a Monitor has told."""
        if self._heard_in is not self.episode_returns:  # a count begins with a new list
            self._heard_in, self._heard_of = self.episode_returns, {}
        for one in episodes:
            at = len(self.episode_returns)
            self._heard_of[at] = one
            self._heard_of.pop(at - self.stats_window_size, None)
            self.episode_returns.append(float(one["r"]))
            self.episode_lengths.append(int(one["l"]))
