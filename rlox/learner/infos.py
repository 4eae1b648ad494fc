"""What each environment tells beside observations and rewards, and what of an episode's end."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlox.env.infos import given_apart


class TheirInfos(dict[str, Any]):
    """The infos of a step of a vector environment of Stable-Baselines3, which gives one dictionary
    for each environment, in `each`."""

    each: list[dict[str, Any]]


def copied(obs: Any) -> Any:
    """A batch of observations that no later step overwrites."""
    if isinstance(obs, dict):
        return {key: np.array(value) for key, value in obs.items()}
    return np.array(obs)


def each_info(infos: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """The infos of a vector environment, as one dictionary for each environment, under Gymnasium's
    names. Where they are joined, `_name` says which environments have a `name`."""
    if (apart := given_apart(infos)) is not None:
        return apart.each()
    found: list[dict[str, Any]] = [{} for _ in range(n)]
    masks = {f"_{name}" for name in infos}
    for name, values in infos.items():
        if name in masks:
            continue
        column = each_info(values, n) if isinstance(values, Mapping) else values
        if not isinstance(column, list | tuple | np.ndarray) or len(column) != n:
            column = [column] * n  # one value for all environments
        for row in np.flatnonzero(infos.get(f"_{name}", np.ones(n, bool))):
            found[row][name] = column[row]
    return found


def told_apart(infos: Mapping[str, Any], n: int, ended: Sequence[int]) -> list[dict[str, Any]]:
    """New dictionaries with the infos of each of `n` environments, as Stable-Baselines3 has them:
    where an episode has ended, its last infos, and its last observation as
    `terminal_observation`."""
    if isinstance(infos, TheirInfos):
        return [dict(info) for info in infos.each]
    found = each_info(infos, n)
    for row in ended:
        # The other infos already belong to the next episode.
        last, final = found[row].get("final_obs"), found[row].get("final_info", {})
        found[row] = {**final, "terminal_observation": last}
    return found


def last_obs(infos: Mapping[str, Any], ended: Sequence[int]) -> list[Any]:
    """The last observations of the episodes that have ended in the environments `ended`."""
    if (apart := given_apart(infos)) is not None:
        return [apart.ended[row]["final_obs"] for row in ended]
    return [infos["final_obs"][row] for row in ended]


def last_infos(
    infos: Mapping[str, Any], n: int, ended: Sequence[int]
) -> list[dict[str, Any]] | None:
    """The last infos of the episodes that have ended in the environments `ended`; None if the
    vector environment does not keep them."""
    if isinstance(infos, TheirInfos):
        return [infos.each[row] for row in ended]
    if (apart := given_apart(infos)) is not None:
        return [apart.ended[row]["final_info"] for row in ended]
    if "final_info" not in infos:
        return None
    found = each_info(infos["final_info"], n)
    return [found[row] for row in ended]


def monitored_episodes(
    last: Sequence[dict[str, Any]] | None, theirs: bool, monitored: bool
) -> list[dict[str, Any] | None] | None:
    """What a `Monitor` tells of each of the episodes with these `last` infos, None where it tells
    nothing; None if there is no Monitor. Of Stable-Baselines3's vector environments (`theirs`) any
    infos named "episode" are a Monitor's."""
    if last is None or not (monitored or theirs):
        return None
    found = [info.get("episode") for info in last]
    return found if monitored or any(found) else None
