"""The part of a rollout's step that is Python's: stepping, checks, counts and callbacks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlox.learner.environments import final_obs
from rlox.learner.finite import NOBODY
from rlox.learner.spaces import flatten_obs

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO

Array = NDArray[Any]


class Stepped(NamedTuple):
    """What a step gave: the observations to act on next, as rows; rewards; which episodes ended,
    each `[n_envs]`; and the environments of those that a time limit alone ended, with their last
    observations, or None."""

    obs: Array
    rewards: Array
    dones: NDArray[np.bool_]
    cut_short: tuple[NDArray[np.intp], Array] | None


class EnvSteps:
    """Takes the steps of one rollout. `idle` has, for environments with next-step autoreset, the
    rows of each step that only began an episode."""

    def __init__(self, model: "PPO") -> None:
        self.model = model
        self.idle: list[NDArray[np.bool_]] = []

    def take(
        self, env_actions: Array, keep: Callable[[Array, Array], None] | None = None
    ) -> Stepped | None:
        """Step all environments; None if a callback stops training. `keep` stores the rewards and
        which episodes ended, before they are counted."""
        model, timing = self.model, self.model.timing
        with timing.add_time("env_step"):
            timing.flow("rollout", model._rollout_number)
            new_obs, rewards, terminations, truncations, infos = model.vector_env.step(env_actions)
        with timing.add_time("store"):
            dones = terminations | truncations
            obs = flatten_obs(new_obs, model.observation_space)
            cut_short, rows, last = truncations & ~terminations, NOBODY, None
            if np.count_nonzero(cut_short):
                rows = np.flatnonzero(cut_short)
                last = final_obs(infos, rows, model.observation_space)
            model._finite.step(obs, rewards, dones, rows, last)
            if model._next_step is not None:
                self.idle.append(model._next_step.idle)
            if keep is not None:
                keep(rewards, dones)
            model._last_obs = obs
            model._count_step(rewards, dones, infos)
        if not model._tell_step(env_actions, new_obs, rewards, terminations, truncations, infos):
            return None
        return Stepped(obs, rewards, dones, None if last is None else (rows, last))
