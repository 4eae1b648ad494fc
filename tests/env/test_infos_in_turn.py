"""Infos that are joined when somebody reads them: a dictionary like any other."""

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import rlox


class Tells(gym.Env[Any, Any]):
    """Writes each step's number into the same dictionary; an episode has three steps."""

    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, n: int = 2) -> None:
        self.info: dict[str, Any] = {"v": np.ones(n)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.info["at"] = 0
        return np.zeros(1, np.float32), self.info

    def step(self, action: Any) -> Any:
        self.info["at"] += 1
        return np.zeros(1, np.float32), 1.0, False, self.info["at"] == 3, self.info


def test_infos_that_are_read_later_are_still_those_of_their_step() -> None:
    env = rlox.VecEnv([Tells] * 2, 2)
    told = [env.reset()[1]]
    told += [env.step(np.zeros(2, int))[4] for _ in range(4)]
    assert [infos["at"].tolist() for infos in told] == [[n, n] for n in (0, 1, 2, 0, 1)]
    assert told[3]["final_info"]["at"].tolist() == [3, 3]


class Reuses(Tells):
    """Writes each step's number into the same arrays, too."""

    def __init__(self) -> None:
        super().__init__()
        self.obs = np.zeros(1, np.float32)
        self.info = {"mask": np.zeros(1), "of": {"mask": np.zeros(1)}}
        self.at = 0

    def put(self, at: int) -> None:
        self.at = self.obs[:] = self.info["mask"][:] = self.info["of"]["mask"][:] = at

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.put(0)
        return self.obs, self.info

    def step(self, action: Any) -> Any:
        self.put(self.at + 1)
        return self.obs, 1.0, False, self.at == 3, self.info


def test_arrays_in_infos_and_last_observations_are_those_of_their_step() -> None:
    env = rlox.VecEnv([Reuses] * 2, 2)
    told = [env.reset()[1], *(env.step(np.zeros(2, int))[4] for _ in range(4))]
    for found in (told, [infos["of"] for infos in told]):
        assert [one["mask"].ravel().tolist() for one in found] == [[n, n] for n in (0, 1, 2, 0, 1)]
    assert told[3]["final_info"]["mask"].ravel().tolist() == [3, 3]
    assert [obs.tolist() for obs in told[3]["final_obs"]] == [[3], [3]]


@pytest.mark.parametrize(
    "copied", [dict, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_are_plain_dictionaries(copied: Any) -> None:
    env = rlox.VecEnv([Tells] * 2, 2)
    env.reset()
    found = copied(env.step(np.zeros(2, int))[4])
    assert type(found) is dict
    assert sorted(found) == ["_at", "_v", "at", "v"]


def test_what_somebody_has_written_into_infos_counts() -> None:
    class Adds(gym.vector.VectorWrapper):  # type: ignore[type-arg]
        def step(self, actions: Any) -> Any:
            *found, infos = self.env.step(actions)
            infos["more"] = np.array([5, 6])
            return *found, infos

    seen: list[Any] = []
    model = rlox.PPO("MlpPolicy", Adds(rlox.VecEnv([Tells] * 2, 2)), n_steps=4, batch_size=8)
    model.learn(8, lambda local, _: seen.append([one.get("more") for one in local["infos"]]))
    assert seen[0] == [5, 6]


def test_what_gymnasium_cannot_join_raises_when_it_is_read() -> None:
    env = rlox.VecEnv([lambda: Tells(2), lambda: Tells(3)], 2)
    env.reset()
    infos = env.step(np.zeros(2, int))[4]
    with pytest.raises(ValueError, match="broadcast"):
        infos["v"]
