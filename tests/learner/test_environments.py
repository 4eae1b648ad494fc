"""Environments that the trainers cannot learn in as they are: what is said, and that it helps."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Clock
from trainers import ppo

import rlox


def remedies(env):
    """Every expression that the refusal of `env` puts between backticks."""
    with pytest.raises(ValueError) as raised:
        ppo(env)
    return re.findall(r"`(.*?)`", str(raised.value))


def made(expression, **names):
    return eval(expression, {"gymnasium": gym, "rlox": rlox, **names})


@pytest.mark.parametrize("env", [lambda: gym.make_vec("CartPole-v1", num_envs=3), Clock])
def test_the_remedy_for_an_autoreset_that_does_not_reset_works(env):
    one = env()
    if isinstance(one, Clock):
        one = SyncVectorEnv([Clock] * 3)
    one.metadata = {**one.metadata, "autoreset_mode": AutoresetMode.DISABLED}
    found = remedies(one)
    assert len(found) == 2
    for expression in found:
        made_one = made(expression, make_env=Clock)
        assert ppo(made_one).learn(128).n_envs == 3


def test_a_mode_by_its_name_is_a_mode():
    env = SyncVectorEnv([Clock] * 2, autoreset_mode="SameStep")
    assert ppo(env).learn(128).n_envs == 2
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP


@pytest.mark.parametrize("env_id", ["Blackjack-v1"])
def test_the_remedy_for_observations_that_are_no_box_works(env_id):
    (expression,) = remedies(gym.make(env_id))
    wrapped = made(expression, env=gym.make(env_id))
    model = ppo(wrapped, n_steps=16).learn(64)
    obs, _ = wrapped.reset()
    assert model.predict(obs)[0] in wrapped.action_space
    assert np.isin(obs, [0, 1]).all()
