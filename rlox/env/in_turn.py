"""R21's seam: how Gymnasium's environments are stepped, one after the other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate
from numpy.typing import NDArray

from rlox.env.backend import Step
from rlox.env.infos import InfosInTurn

Envs = SyncVectorEnv[Any, Any]


def step_by_gymnasium(envs: Envs, actions: NDArray[Any]) -> Step:
    """R21's baseline: Gymnasium's own step."""
    return envs.step(actions)


def step_in_turn(envs: Envs, actions: NDArray[Any]) -> Step:
    """R21's optimised form: the same for same-step autoreset, with less around each environment.

    Infos are joined when somebody reads them, by `_add_info` of the environments. Observations that
    are no arrays of the space's dtype and shape are joined by Gymnasium.
    """
    n = envs.num_envs
    rewards, terminations, truncations = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    told: InfosInTurn | None = None
    single = envs._env_obs
    pairs = zip(envs.envs, iterate(envs.action_space, actions), strict=True)
    for i, (env, action) in enumerate(pairs):
        obs, rewards[i], terminated, truncated, info = env.step(action)
        terminations[i], truncations[i] = terminated, truncated
        if terminated or truncated:
            told = told if told is not None else InfosInTurn(envs)
            told.add_end(i, obs, info)
            obs, info = env.reset()
        if info:
            told = told if told is not None else InfosInTurn(envs)
            told.add(i, info)
        single[i] = obs
    return _joined(envs), rewards, terminations, truncations, {} if told is None else told


def reset_in_turn(
    envs: Envs, seeds: list[int | None] | None, options: dict[str, Any] | None
) -> tuple[Any, dict[str, Any]]:
    """Gymnasium's own reset, but for infos, which are joined when somebody reads them."""
    told = InfosInTurn(envs)
    found: dict[str, Any] = {}

    def add(infos: dict[str, Any], info: dict[str, Any], row: int) -> dict[str, Any]:
        nonlocal found
        if info:
            told.add(row, info)
            found = told
        return infos

    envs._add_info = add  # type: ignore[method-assign, assignment]
    try:
        obs, _ = envs.reset(seed=seeds, options=options)
    finally:
        del envs._add_info  # the class's own is seen again
    return obs, found


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
