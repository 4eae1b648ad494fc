"""The `locals` of a step, for callbacks written for Stable-Baselines3."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlox.learner.features import as_shown_by
from rlox.learner.infos import TheirInfos, copied, told_apart

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm


class Locals(dict[str, Any]):
    """The `locals` of one step. A KeyError lists the names that exist."""

    def __missing__(self, name: str) -> None:
        there = ", ".join(self) or "nothing yet: it is filled before each _on_step"
        raise KeyError(f"{name}: locals holds {there}")


def step_locals(
    model: "Algorithm",
    actions: NDArray[Any],
    new_obs: Any,
    rewards: NDArray[Any],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    infos: Mapping[str, Any],
) -> dict[str, Any]:
    """The `locals` of a step that was just counted; no array in it is overwritten later."""
    dones = terminations | truncations
    ended = np.flatnonzero(dones).tolist()
    told = told_apart(infos, model.n_envs, ended)
    if (
        not isinstance(infos, TheirInfos)
        and model._heard(infos, model._last_infos(infos, ended)) is None
    ):
        first = len(model.episode_returns) - len(ended)
        for row, r, length in zip(
            ended, model.episode_returns[first:], model.episode_lengths[first:], strict=True
        ):
            told[row]["episode"] = {"r": r, "l": length}
    cut_short = (truncations & ~terminations).tolist()
    for info, truncated in zip(told, cut_short, strict=True):
        info["TimeLimit.truncated"] = truncated
    env = model.get_env()
    return {
        "self": model,
        "env": env,
        "actions": np.array(actions),
        "new_obs": as_shown_by(env, copied(new_obs)),
        "rewards": np.array(rewards),
        "dones": dones,
        "infos": told,
    }
