"""`policy.get_distribution` gives what Stable-Baselines3's gives with the same weights."""

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from toys import Seen

import rlox

SPACES = {
    "Discrete": spaces.Discrete(3),
    "Box": spaces.Box(-1, 1, (2,), np.float32),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2]),
    "MultiBinary": spaces.MultiBinary(4),
}
OBS = spaces.Box(-1, 1, (3,), np.float32)


def both(space, **kwargs):
    """The distributions of ours and of theirs for the same observations and weights."""
    made = {"n_steps": 8, "batch_size": 8, "device": "cpu", **kwargs}
    models = [one.PPO("MlpPolicy", Seen(OBS, space), **made) for one in (rlox, stable_baselines3)]
    models[0].policy.load_state_dict(models[1].policy.state_dict())
    obs = torch.linspace(-1, 1, 15).reshape(5, 3)
    with torch.no_grad():
        return [model.policy.get_distribution(obs) for model in models]


def assert_alike(ours, theirs):
    actions = theirs.sample()
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    torch.testing.assert_close(ours.get_actions(deterministic=True), theirs.mode())


@pytest.mark.parametrize("name", SPACES)
def test_a_distribution_is_theirs(name):
    ours, theirs = both(SPACES[name])
    assert_alike(ours, theirs)
    assert type(ours.distribution) is type(theirs.distribution)
    torch.manual_seed(0)
    drawn = torch.stack([ours.sample() for _ in range(2000)]).float()
    again = torch.stack([theirs.sample() for _ in range(2000)]).float()
    assert drawn.shape == again.shape
    spread = (drawn.var(0) + again.var(0)) / 2000
    assert ((drawn.mean(0) - again.mean(0)).abs() < 5 * spread.sqrt() + 1e-6).all()


def test_that_of_noise_which_depends_on_the_state_is_too():
    ours, theirs = both(SPACES["Box"], use_sde=True)
    assert_alike(ours, theirs)


def test_probabilities_of_one_observation_are_read_as_programs_do():
    model = rlox.PPO("CartPole-v1")
    obs, _ = model.policy.obs_to_tensor(np.zeros(4, np.float32))
    probs = model.policy.get_distribution(obs).distribution.probs
    assert probs.shape == (1, 2)
    assert probs.sum().item() == pytest.approx(1)


def test_squashed_actions_have_none():
    kwargs = {"use_sde": True, "policy_kwargs": {"squash_output": True}}
    model = rlox.PPO("MlpPolicy", Seen(OBS, SPACES["Box"]), n_steps=8, batch_size=8, **kwargs)
    with pytest.raises(ValueError, match="squash_output"):
        model.policy.get_distribution(torch.zeros(1, 3))


def test_a_policy_class_of_theirs_answers_itself():
    class Policy(stable_baselines3.common.policies.ActorCriticPolicy):
        pass

    model = rlox.PPO(Policy, Seen(OBS, SPACES["Discrete"]), n_steps=8, batch_size=8)
    found = model.policy.get_distribution(torch.zeros(1, 3))
    assert found.distribution.probs.shape == (1, 3)
