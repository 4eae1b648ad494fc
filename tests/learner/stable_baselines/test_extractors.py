"""Features extractors beside Stable-Baselines3's: the order of a Dict, layers, and names."""

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
from gymnasium import spaces

import rlox

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
UNSORTED = spaces.Dict(z=spaces.Box(-9, 9, (2,)), a=spaces.Box(-9, 9, (1,)))
SETTINGS = {
    "PPO": {"n_steps": 8, "batch_size": 8, "n_epochs": 1},
    "SAC": {"learning_starts": 4, "batch_size": 4, "buffer_size": 50},
}


class Shows(gym.Env):
    """Shows samples of a space; an episode has five steps."""

    def __init__(self, space, action_space=ACTIONS):
        self.observation_space, self.action_space = space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.at += 1
        return self.observation_space.sample(), 1.0, False, self.at == 5, {}


def both(name, policy, space, **more):
    """A trainer of each library."""
    settings = {"seed": 0, "device": "cpu", **SETTINGS[name], **more}
    return [
        getattr(one, name)(policy, Shows(space), **settings) for one in (rlox, stable_baselines3)
    ]


def test_a_dict_keeps_its_order_in_a_file(tmp_path):
    class Fixed(Shows):
        def reset(self, **kwargs):
            super().reset(**kwargs)
            return {"z": np.float32([1, 2]), "a": np.float32([5])}, {}

    model = rlox.SAC("MultiInputPolicy", Fixed(UNSORTED), **SETTINGS["SAC"]).learn(4)
    model.save(tmp_path / "model")
    loaded = rlox.SAC.load(tmp_path / "model")
    assert list(loaded.observation_space.spaces) == ["z", "a"]
    obs = UNSORTED.sample()
    found, expected = (one.predict(obs, deterministic=True)[0] for one in (loaded, model))
    np.testing.assert_array_equal(found, expected)
    model.save_replay_buffer(tmp_path / "buffer")
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert loaded.replay_buffer.transitions()["obs"][0].tolist() == [1, 2, 5]


def test_features_of_a_dict_stand_in_its_order():
    ours, theirs = both("PPO", "MultiInputPolicy", UNSORTED)
    ours.policy.load_state_dict(theirs.policy.state_dict())
    obs = {key: value[None] for key, value in UNSORTED.sample().items()}
    seen = theirs.policy.obs_to_tensor(obs)[0]
    torch.testing.assert_close(
        ours.policy.predict_values(ours.policy.obs_to_tensor(obs)[0]),
        theirs.policy.predict_values(seen),
    )
