"""PPO's native update with `MultiBinary` actions, beside the torch path."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from drawn import make_rollout
from gymnasium import spaces

from rlox import PPO
from rlox.learner.ppo import FIGURES


class Switches(gym.Env):
    """Three switches that do nothing."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.MultiBinary(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action):
        return np.zeros(4, np.float32), 0.0, False, False, {}


def both(**arguments):
    settings = {"seed": 3, "n_epochs": 2, "batch_size": 32, "ent_coef": 0.01, **arguments}
    models = [PPO("MlpPolicy", Switches(), optimizations=on, **settings) for on in ([], ["R9"])]
    assert [model.update_path for model in models] == ["torch", "native"]
    for model in models:
        model.logger.start("PPO", 0, 1, progress_bar=False)
    return models


def parameters(model):
    return torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


@pytest.mark.parametrize("arch", [{}, {"net_arch": [7, 5, 3], "activation_fn": torch.nn.ReLU}])
def test_fifty_updates_with_bits_stay_beside_torchs(arch):
    models = both(policy_kwargs=arch)
    start = parameters(models[0])
    for update in range(50):
        rollout = make_rollout(models[0].policy, 4, 70, seed=update)
        for model in models:
            model.train(rollout)
        figures = [[model.logger.values[name] for name in FIGURES] for model in models]
        assert figures[1] == pytest.approx(figures[0], rel=1e-5, abs=1e-5)
    torchs, natives = (parameters(model) for model in models)
    assert (torchs - start).norm() > 0.2
    assert (natives - torchs).norm() < 1e-4 * (torchs - start).norm()


def test_actions_that_are_no_bits_are_refused():
    _, model = both()
    rollout = make_rollout(model.policy, 4, 8, seed=0)
    with pytest.raises(ValueError, match=r"actions: holds 0\.5, expected bits, 0 or 1"):
        model.train(rollout._replace(actions=0.5 * rollout.actions))
