"""The `locals` of a step, for callbacks written for Stable-Baselines3."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
    new_obs: NDArray[Any],
    rewards: NDArray[Any],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    infos: Mapping[str, Any],
) -> dict[str, Any]:
    """The `locals` of a step that was just counted; no array in it is overwritten later."""
    dones = terminations | truncations
    told = [dict(info) for info in getattr(infos, "each", [])] or each_info(infos, model.n_envs)
    ended = [] if hasattr(infos, "each") else np.flatnonzero(dones).tolist()
    first = len(model.episode_returns) - len(ended)
    for row, r, length in zip(
        ended, model.episode_returns[first:], model.episode_lengths[first:], strict=True
    ):
        # The other infos already belong to the next episode.
        last, final = told[row]["final_obs"], told[row].get("final_info", {})
        told[row] = {**final, "terminal_observation": last, "episode": {"r": r, "l": length}}
    cut_short = (truncations & ~terminations).tolist()
    for info, truncated in zip(told, cut_short, strict=True):
        info["TimeLimit.truncated"] = truncated
    return {
        "self": model,
        "env": model.get_env(),
        "actions": np.array(actions),
        "new_obs": np.array(new_obs),
        "rewards": np.array(rewards),
        "dones": dones,
        "infos": told,
    }


def each_info(infos: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """Gymnasium's infos of a vector environment, as one dictionary for each environment. `_name`
    says which environments have a `name`."""
    found: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, values in infos.items():
        if name.startswith("_") and name[1:] in infos:
            continue
        column = each_info(values, n) if isinstance(values, Mapping) else values
        if not isinstance(column, list | tuple | np.ndarray) or len(column) != n:
            column = [column] * n  # one value for all environments
        for row in np.flatnonzero(infos.get(f"_{name}", np.ones(n, bool))):
            found[row][name] = column[row]
    return found
