"""What callbacks are told of a step, and whose word on episodes counts, beside theirs."""

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy as their_evaluation
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from toys import Clock

import rlox
from rlox.learner.evaluation import evaluate_policy

BOX = spaces.Box(-1, 1, (1,), np.float32)
SETTINGS = {
    "PPO": {"n_steps": 8, "batch_size": 8, "n_epochs": 1},
    "SAC": {"learning_starts": 100},
}
LIBRARIES = [rlox, stable_baselines3]


class Tells(Clock):
    """A Clock of three steps with infos: `info(t)`."""

    def __init__(self, info, reset_info=None):
        super().__init__(3, action_space=BOX)
        self.info, self.reset_info = info, reset_info or {}

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], self.reset_info

    def step(self, action):
        return *super().step(action)[:4], self.info(self.t)


class Keeps(BaseCallback):
    """Keeps the locals of each step."""

    def __init__(self):
        super().__init__()
        self.told = []

    def _on_step(self):
        self.told.append(dict(self.locals))
        return True

    def infos(self, *without):
        left_out = ("terminal_observation", *without)
        return [
            {name: value for name, value in info.items() if name not in left_out}
            for told in self.told
            for info in told["infos"]
        ]


def trained(library, name, policy, env, steps=8):
    keeps = Keeps()
    model = getattr(library, name)(policy, env, seed=0, device="cpu", **SETTINGS[name])
    return model.learn(steps, keeps), keeps


EACH = {
    "an integer and a fraction": ({"score": 1}, {"score": 0.5}),
    "nothing within": ({"d": {"x": 1, "y": None}}, {"d": {"x": None, "y": 2.0}}),
    "a dictionary in one alone": ({"d": {"x": 1}}, {"d": "none"}),
    "numbers as keys": ({0: 5}, {0: 6, "_0": 7}),
    "lists": ({"l": [1]}, {"l": [1, 2]}),
}


@pytest.mark.parametrize("name", ["PPO", "SAC"])
@pytest.mark.parametrize("given", EACH.values(), ids=EACH)
def test_callbacks_get_the_infos_that_an_environment_gave(given, name):
    envs = [lambda one=one: Tells(lambda t: one if t > 1 else {}) for one in given]
    ours, theirs = (trained(one, name, "MlpPolicy", env)[1] for one, env in (
        (rlox, envs), (stable_baselines3, DummyVecEnv(envs))
    ))  # fmt: skip
    assert ours.infos("episode") == theirs.infos()


@pytest.mark.parametrize("callback", [None, Keeps()])
def test_infos_of_different_shapes_stop_no_training(callback):
    envs = [lambda n=n: Tells(lambda t: {"a": np.ones(n)}, {"b": np.ones(n)}) for n in (2, 3)]
    model = rlox.PPO("MlpPolicy", envs, **SETTINGS["PPO"]).learn(16, callback)
    assert model.episode_lengths == [3] * 4
    if callback is not None:
        assert [len(info["a"]) for info in callback.infos()] == [2, 3] * 8


def test_keys_may_be_numbers_where_gymnasium_joins():
    env = SyncVectorEnv(
        [lambda: Tells(lambda t: {0: t})] * 2, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )
    told = trained(rlox, "PPO", "MlpPolicy", env, 16)[1].infos("TimeLimit.truncated", "episode")
    assert told[:6] == [{0: 1}, {0: 1}, {0: 2}, {0: 2}, {0: 3}, {0: 3}]


def test_observations_of_a_dict_are_told_as_a_dict():
    class Parts(Clock):
        observation_space = spaces.Dict(b=spaces.Box(0, 9, (2,)), a=spaces.Discrete(9))

        def reset(self, **kwargs):
            super().reset(**kwargs)
            return {"b": np.zeros(2, np.float32), "a": 0}, {}

        def step(self, action):
            return {"b": np.full(2, self.t, np.float32), "a": self.t}, *super().step(action)[1:]

    ours, theirs = (
        [told["new_obs"] for told in trained(one, "PPO", "MultiInputPolicy", Parts())[1].told]
        for one in LIBRARIES
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one["b"], other["b"])
        np.testing.assert_array_equal(one["a"], np.ravel(other["a"]))


def scaled():
    """A Monitor that another wrapper hides."""
    monitored = Monitor(Tells(lambda t: {"k": 7}), info_keywords=("k",))
    return gym.wrappers.TransformReward(monitored, lambda reward: 0.1 * reward)


class Lives(gym.Wrapper):
    """Ends every second step, as the loss of a life ends an episode of Atari's games."""

    over = True

    def reset(self, **kwargs):
        return self.env.reset(**kwargs) if self.over else (np.zeros(1, np.float32), {})

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.over = terminated or truncated
        self.taken = getattr(self, "taken", 0) + 1
        return obs, reward, terminated or self.taken % 2 == 0, truncated, info


@pytest.mark.parametrize("name", ["PPO", "SAC"])
@pytest.mark.parametrize("make", [scaled, lambda: Lives(Monitor(Clock(5, action_space=BOX)))])
def test_a_monitor_below_other_wrappers_is_believed(make, name):
    def without_time(episodes):
        return [{k: v for k, v in one.items() if k != "t"} for one in episodes if one]

    found = []
    for library in LIBRARIES:
        model, keeps = trained(library, name, "MlpPolicy", make(), 24)
        assert all("t" in one for one in model.ep_info_buffer)
        told = [info.get("episode") for info in keeps.infos()]
        found.append([without_time(model.ep_info_buffer), without_time(told)])
    assert found[0] == found[1]
    assert len(found[0][0]) > 3


@pytest.mark.parametrize("evaluate", [evaluate_policy, their_evaluation])
def test_evaluation_believes_a_monitor_below_other_wrappers(evaluate):
    model = rlox.PPO("MlpPolicy", scaled(), **SETTINGS["PPO"])
    for env in (scaled(), model.get_env()):
        assert evaluate(model, env, 2) == (3.0, 0.0)


def test_a_monitor_is_believed_in_environments_that_reset_a_step_later():
    model = rlox.PPO("MlpPolicy", SyncVectorEnv([scaled] * 2), **SETTINGS["PPO"]).learn(16)
    assert model.ep_info_buffer[0].items() >= {"r": 3.0, "l": 3, "k": 7}.items()
