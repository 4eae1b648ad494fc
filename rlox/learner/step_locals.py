"""The `locals` of a step, for callbacks written for Stable-Baselines3."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlox.learner.features import as_shown_by
from rlox.learner.infos import TheirInfos, copied, told_apart

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm


# What PPO's `locals` have in Stable-Baselines3 only: here a rollout computes it at its end, or in
# Rust. For each, what to call in its place.
_ROWS = "self.model._tensor(self.model._last_obs)"
_TAKEN = "self.model._tensor(self.locals['actions'])"
INSTEAD = {
    "obs_tensor": _ROWS,
    "values": f"self.model.policy.get_value({_ROWS})",
    "log_probs": f"self.model.policy.evaluate_actions({_ROWS}, {_TAKEN})[1]",
}


class Locals(dict[str, Any]):
    """The `locals` of one step. A KeyError lists the names that exist, and says what to use in
    place of some that do not."""

    def __missing__(self, name: str) -> None:
        there = ", ".join(self) or "nothing yet: it is filled before each _on_step"
        instead = f"; in PPO use {INSTEAD[name]}" if name in INSTEAD else ""
        raise KeyError(f"{name}: locals holds {there}{instead}")


def step_locals(
    model: "Algorithm",
    actions: NDArray[Any],
    env_actions: NDArray[Any],
    new_obs: Any,
    rewards: NDArray[Any],
    terminations: NDArray[np.bool_],
    truncations: NDArray[np.bool_],
    infos: Mapping[str, Any],
) -> dict[str, Any]:
    """The `locals` of a step that was just counted; no array in it is overwritten later. `actions`
    are as the policy drew them, `env_actions` as the environment got them. `rewards` are not
    copied, so that a callback may change what is learnt; the array must belong to this step alone.
    """
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
    shape = (-1, *(model.action_space.shape or ()))
    acted = (np.array(one).reshape(shape) for one in (actions, env_actions))
    return {
        "self": model,
        "env": env,
        **dict(zip(model._action_names, acted, strict=True)),
        "new_obs": as_shown_by(env, copied(new_obs)),
        "rewards": rewards,
        "dones": dones,
        "infos": told,
    }
