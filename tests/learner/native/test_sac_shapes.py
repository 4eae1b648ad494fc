"""SAC's native update with observations of other kinds and networks of other shapes, beside the
torch path."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from rlox import SAC

LINE = spaces.Box(-1, 1, (3,), np.float32)
BYTES = spaces.Box(0, 3, (3,), np.uint8)  # larger ones amplify rounding


class Wanders(gym.Env):
    """Shows what its space samples."""

    action_space = spaces.Box(-2, 2, (2,), np.float32)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action.sum()), False, False, {}


def learnt(space, optimizations, **arguments):
    settings = {"learning_starts": 20, "batch_size": 16, "seed": 4, **arguments}
    settings["policy_kwargs"] = {"net_arch": [16, 16], **settings.get("policy_kwargs", {})}
    name = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    model = SAC(name, Wanders(space), optimizations=optimizations, **settings)
    return model.learn(44)


@pytest.mark.parametrize(
    ("space", "arguments"),
    [
        (spaces.Discrete(5), {}),
        (spaces.MultiDiscrete([2, 3]), {}),
        (spaces.Dict(a=LINE, b=spaces.Discrete(2)), {}),
        (spaces.Dict(a=LINE), {"policy_kwargs": {"share_features_extractor": True}}),
        (BYTES, {}),
        (LINE, {"gradient_steps": 4, "target_update_interval": 3}),
        (LINE, {"policy_kwargs": {"net_arch": {"pi": [], "qf": [8]}}}),
        (
            LINE,
            {"policy_kwargs": {"net_arch": {"pi": [5, 4, 3], "qf": [9]}, "activation_fn": nn.Tanh}},
        ),
    ],
    ids=["one-hot", "several", "dict", "shared", "bytes", "interval", "no-hidden", "tanh"],
)
def test_learning_with_other_shapes_follows_the_torch_path(space, arguments):
    models = [learnt(space, on, **arguments) for on in ([], ["R9"])]
    assert [model.update_path for model in models] == ["torch", "native"]
    for part in ("policy", "critic", "critic_target", "temperature"):
        vectors = [
            nn.utils.parameters_to_vector(getattr(model, part).parameters()) for model in models
        ]
        torch.testing.assert_close(*vectors, rtol=0, atol=1e-4)


def test_critics_that_are_shown_otherwise_are_left_to_torch():
    space = spaces.Dict(a=LINE)
    other = SAC("MlpPolicy", Wanders(LINE)).critic
    model = SAC("MultiInputPolicy", Wanders(space), critic=other, optimizations=["R9"])
    assert model.update_path == "torch: actor and critics are shown observations differently"
    own = SAC("CnnPolicy", Wanders(spaces.Box(0, 255, (36, 36, 3), np.uint8)), buffer_size=10)
    assert "stands before the networks" in own.update_path
