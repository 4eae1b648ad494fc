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
        self,
        actions: Array,
        env_actions: Array,
        keep: Callable[[Array, Array], None] | None = None,
    ) -> Stepped | None:
        """Step all environments with the policy's `actions`, which are `env_actions` to them; None
        if a callback stops training. `keep` stores the rewards and which episodes ended. Where a
        callback is told of steps, they are stored after it: what it adds to `locals["rewards"]` is
        learnt, as in Stable-Baselines3, and it may move the environments."""
        model, timing = self.model, self.model.timing
        told = model._callback.asks_for_steps()
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
            if keep is not None and not told:
                keep(rewards, dones)
            model._count_step(rewards, dones, infos)
            if told:
                rewards = np.array(rewards)
        step = (actions, env_actions, new_obs, rewards, terminations, truncations, infos)
        if not model._tell_step(obs, *step):
            return None
        if model._moved:
            # A callback has moved the environments: their episodes ended here, as by a time limit.
            ended_in = obs.copy()
            if last is not None:
                ended_in[rows] = last
            rows = np.flatnonzero(cut_short | ~dones)
            last, dones = (ended_in[rows] if len(rows) else None), np.ones_like(dones)
            starts = model._episode_starts  # of the rollout's first step
            obs = model._current_obs()
            model._episode_starts = starts
        if keep is not None and told:
            with timing.add_time("store"):
                keep(rewards, dones)
        return Stepped(obs, rewards, dones, None if last is None else (rows, last))
