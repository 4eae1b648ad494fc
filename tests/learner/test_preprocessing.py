"""What networks are shown of observations: as Stable-Baselines3 shows them to its own."""

import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from toys import Seen
from trainers import ppo, sac

import rlox
from rlox.learner.policies import CategoricalActorCritic

BOX = spaces.Box(-1, 1, (1,), np.float32)
SPACES = {
    "one-hot bytes": spaces.Box(0, 1, (4,), np.uint8),
    "bytes in a row": spaces.Box(0, 255, (4,), np.uint8),
    "bytes in a table": spaces.Box(0, 255, (6, 5), np.uint8),
    "a colour image": spaces.Box(0, 255, (6, 5, 3), np.uint8),
    "a stack of images": spaces.Box(0, 255, (12, 6, 5), np.uint8),
    "not up to 255": spaces.Box(0, 254, (6, 5, 3), np.uint8),
    "not from 0": spaces.Box(1, 255, (6, 5, 3), np.uint8),
    "an image of floats": spaces.Box(0, 1, (6, 5, 3), np.float32),
    "an image of longs": spaces.Box(0, 255, (6, 5, 3), np.int64),
    "bits": spaces.Box(0, 1, (4,), np.int8),
    "doubles": spaces.Box(-1, 1, (2, 2), np.float64),
}


def quietly(make, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return make(*arguments, **keywords)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_networks_are_shown_what_stable_baselines_shows_its_own(space):
    obs = np.stack([space.sample() for _ in range(3)])
    expected = preprocess_obs(torch.from_numpy(obs), space).flatten(1)
    shown = []

    class Spy(CategoricalActorCritic):
        def get_action_and_logprob(self, obs, deterministic=False, generator=None):
            shown.append(obs)
            return super().get_action_and_logprob(obs, deterministic, generator)

    model = ppo(Seen(space), policy=Spy(int(np.prod(space.shape)), 2))
    model.predict(obs)
    assert shown[0].dtype == torch.float32
    torch.testing.assert_close(shown[0], expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["one-hot bytes", "a colour image", "bytes in a table", "bits"])
def test_a_replay_buffer_gives_back_what_networks_are_shown(name):
    space = SPACES[name]
    model = quietly(sac, Seen(space, BOX), learning_starts=20, batch_size=64).learn(20)
    kept = model.replay_buffer.sample(64)["obs"]
    assert kept.dtype == (np.uint8 if space.dtype == np.uint8 else np.float32)
    shown = model._sample().obs
    assert shown.max() == (1 if name != "bytes in a table" else 255)


class OneHotBandit(gym.Env):
    """One step; the right arm is the one that the observation marks with a 1."""

    observation_space = spaces.Box(0, 1, (4,), np.uint8)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.right = int(self.np_random.integers(4))
        return np.eye(4, dtype=np.uint8)[self.right], {}

    def step(self, action):
        return np.zeros(4, np.uint8), float(action == self.right), True, False, {}


def test_a_bandit_of_one_hot_bytes_is_learnt():
    env = rlox.VecEnv(OneHotBandit, 8, seed=0)
    model = rlox.PPO(env, n_steps=32, batch_size=64, learning_rate=3e-3, seed=0).learn(6_000)
    assert np.mean(model.episode_returns[-500:]) > 0.8  # chance: 0.25


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        ([0, 0, np.nan, 0], "obs: holds nan"),
        (np.full((2, 4), np.inf), "obs: holds inf"),
        (np.array([0, 0, 0, 1e300]), "obs: holds inf"),  # as float32
        (["a", "b", "c", "d"], "obs: has dtype <U1"),
        ([None] * 4, "obs: has dtype object"),
        (np.zeros(4, complex), "obs: has dtype complex128"),
        ([[0, 0], [0]], "obs: is no array"),
        (np.zeros(3), r"obs: has shape \(3,\)"),
        (np.zeros((2, 2, 4)), r"obs: has shape \(2, 2, 4\)"),
        (0.0, r"obs: has shape \(\)"),
    ],
)
@pytest.mark.parametrize("make", [ppo, lambda: sac(Clock4())], ids=["ppo", "sac"])
def test_what_is_no_observation_gets_no_action(make, obs, message):
    with pytest.raises(ValueError, match=message):
        make().predict(obs)


class Clock4(Seen):
    def __init__(self):
        super().__init__(spaces.Box(-1, 1, (4,), np.float32), BOX)


@pytest.mark.parametrize("obs", [[0, 0, 256, 0], [0, -1, 0, 0], [0, 0.5, 0, 0]])
def test_what_bytes_cannot_hold_is_no_observation_of_bytes(obs):
    model = ppo(Seen(SPACES["bytes in a row"]))
    with pytest.raises(ValueError, match=r"obs: holds .*, expected integers from 0 to 255"):
        model.predict(obs)
    model.predict([0, 1, 2, 255])


@pytest.mark.parametrize("make", [ppo, lambda env: sac(env)], ids=["ppo", "sac"])
@pytest.mark.parametrize("name", ["a colour image", "an image of floats", "bytes in a table"])
def test_flattening_an_image_is_said(make, name):
    with pytest.warns(UserWarning, match=r"observations of shape .* are flattened .*policy="):
        make(Seen(SPACES[name], None if make is ppo else BOX))


def test_flattening_is_said_once_and_only_of_images_in_our_own_networks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ppo(Seen(SPACES["doubles"]))
        ppo(Seen(SPACES["a colour image"]), policy=CategoricalActorCritic(90, 2))


def test_what_the_warning_says_can_be_done():
    """A network of the user's that gives images their shape back, as the warning tells."""
    with pytest.warns(UserWarning) as caught:
        ppo(Seen(SPACES["a colour image"]))
    (said,) = [str(one.message) for one in caught]
    view = re.search(r"obs\.view\((.*?)\)", said)

    class Shaped(CategoricalActorCritic):
        def get_action_and_logprob(self, obs, deterministic=False, generator=None):
            assert eval(view[0]).shape == (len(obs), 6, 5, 3)
            return super().get_action_and_logprob(obs, deterministic, generator)

    ppo(Seen(SPACES["a colour image"]), n_steps=8, policy=Shaped(90, 2)).learn(8)
