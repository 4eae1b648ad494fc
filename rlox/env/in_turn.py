"""R21's seam: how Gymnasium's environments are stepped, one after the other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate
from numpy.typing import NDArray

from rlox.env.backend import Step

Envs = SyncVectorEnv[Any, Any]


def step_by_gymnasium(envs: Envs, actions: NDArray[Any]) -> Step:
    """R21's baseline: Gymnasium's own step."""
    return envs.step(actions)


def step_in_turn(envs: Envs, actions: NDArray[Any]) -> Step:
    """R21's optimised form: the same for same-step autoreset, with less around each environment.

    Infos are added as Gymnasium adds them, so a subclass's `_add_info` is called. Observations that
    are no arrays of the space's dtype and shape are joined by Gymnasium.
    """
    n = envs.num_envs
    rewards, terminations, truncations = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    infos: dict[str, Any] = {}
    single = envs._env_obs
    pairs = zip(envs.envs, iterate(envs.action_space, actions), strict=True)
    for i, (env, action) in enumerate(pairs):
        obs, rewards[i], terminated, truncated, info = env.step(action)
        terminations[i], truncations[i] = terminated, truncated
        if terminated or truncated:
            last = {"final_obs": obs, "final_info": info}
            infos = envs._add_info(infos, last, i)
            obs, info = env.reset()
        if info:
            infos = envs._add_info(infos, info, i)
        single[i] = obs
    return _joined(envs), rewards, terminations, truncations, infos


def _joined(envs: Envs) -> Any:
    """The latest observations as a batch: a new one, or the one that is kept if `copy` is false."""
    kept = envs._observations
    if isinstance(kept, np.ndarray):
        batch = np.array(envs._env_obs)
        if batch.dtype == kept.dtype and batch.shape == kept.shape:
            if envs.copy:
                return batch
            kept[...] = batch
            return kept
    kept = concatenate(envs.single_observation_space, envs._env_obs, kept)
    envs._observations = kept
    return deepcopy(kept) if envs.copy else kept
