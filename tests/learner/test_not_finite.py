"""Observations and rewards that are no numbers, and observations outside their space, are refused
where they come from."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Clock
from trainers import ppo, sac, weights

import rlox

BOX = spaces.Box(-1, 1, (1,), np.float32)


class Faulty(Clock):
    """Gives `value` as the third observation or reward of its second episode, or as its first
    observation."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)

    def __init__(self, what, value, action_space=None, at=3):
        super().__init__(length=5, action_space=action_space)
        self.what, self.value, self.at, self.episode = what, value, at, 0

    def reset(self, **kwargs):
        _, info = super().reset(**kwargs)
        self.episode += 1
        return self.obs(0), info

    def step(self, action):
        _, reward, *rest = super().step(action)
        if self.what == "reward" and self.now():
            reward = self.value
        return self.obs(self.t), reward, *rest

    def now(self):
        return self.episode == 2 and self.t == self.at

    def obs(self, t):
        obs = np.full(2, t, np.float64)
        if self.what == "observation" and self.now():
            obs[1] = self.value
        return obs


def faulty(what, value, action_space=None, at=3):
    """Two environments, of which the second is faulty."""
    makers = [
        lambda: Faulty("nothing", 0, action_space),
        lambda: Faulty(what, value, action_space, at),
    ]
    return rlox.VecEnv(makers, 2)


KINDS = {
    "ppo": (None, lambda env: ppo(env, n_steps=16)),
    "ppo-plain": (None, lambda env: ppo(env, n_steps=16, optimizations=())),
    "ppo-continuous": (BOX, lambda env: ppo(env, n_steps=16)),
    "sac": (BOX, lambda env: sac(env, learning_starts=4)),
    "sac-torch": (BOX, lambda env: sac(env, learning_starts=4, optimizations=())),
    "sac-prioritized": (BOX, lambda env: sac(env, learning_starts=4, prioritized=True)),
}
each_kind = pytest.mark.parametrize(("action_space", "make"), KINDS.values(), ids=KINDS)
VALUES = [np.nan, np.inf, -np.inf, 1e300]  # the last is infinite as float32


@each_kind
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("what", ["observation", "reward"])
def test_the_environment_is_blamed_and_nothing_is_learnt_from_it(action_space, make, what, value):
    model = make(faulty(what, value, action_space))
    with pytest.raises(ValueError) as raised:
        model.learn(200)
    said = str(raised.value)
    assert said.startswith("env: environment 1 of 2")
    assert f"{what} " in said
    assert "step 3 of its episode" in said
    assert "16 " in said  # steps of both environments: 5 of the first episode and 3 of the second
    assert "policy" not in said
    assert all(p.isfinite().all() for p in weights(model))
    if isinstance(model, rlox.SAC):
        kept = model.replay_buffer.sample(500)
        assert all(np.isfinite(kept[name]).all() for name in ("obs", "next_obs", "reward"))


@each_kind
@pytest.mark.parametrize("at", [0, 5], ids=["first", "last"])
def test_first_and_last_observations_of_an_episode_are_looked_at_too(action_space, make, at):
    model = make(faulty("observation", np.nan, action_space, at))
    with pytest.raises(ValueError, match=r"env: environment 1 of 2 .* observation .*nan"):
        model.learn(200)


def test_the_very_first_observation_is_looked_at():
    class Blind(Clock):
        def reset(self, **kwargs):
            return np.full(1, np.nan, np.float32), super().reset(**kwargs)[1]

    with pytest.raises(ValueError, match=r"environment 0 of 1 .* first observation"):
        ppo(Blind()).learn(128)


def test_the_environment_is_named():
    class Nowhere(gym.Wrapper):
        def step(self, action):
            return np.full(6, np.nan), *self.env.step(action)[1:]

    env = SyncVectorEnv(
        [lambda: Nowhere(gym.make("Acrobot-v1"))] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    with pytest.raises(ValueError, match=r"environment 0 of 2 \(Acrobot-v1\)"):
        ppo(env).learn(128)


def test_a_subclass_of_ours_is_looked_at():
    class Dark(rlox.VecEnv):
        def step(self, actions):
            obs, rewards, *rest = super().step(actions)
            return obs * np.nan, rewards, *rest

    with pytest.raises(ValueError, match=r"environment 0 of 2 \(CartPole-v1\)"):
        ppo(Dark("CartPole-v1", 2)).learn(128)


def test_training_may_go_on_after_it():
    model = ppo(faulty("observation", np.nan), n_steps=16)
    with pytest.raises(ValueError, match="env: "):
        model.learn(200)
    assert model.learn(64, reset_num_timesteps=False).num_timesteps >= 64


LISTS = {
    "Discrete(4)": (spaces.Discrete(4), 4),
    "Discrete(4, start=1)": (spaces.Discrete(4, start=1), 0),
    "MultiDiscrete([3 2])": (spaces.MultiDiscrete([3, 2]), [2, 2]),
}


@pytest.mark.parametrize("name", LISTS)
def test_what_a_space_does_not_list_is_refused(name):
    space, beyond = LISTS[name]

    class Beyond(Clock):
        observation_space = space

        def reset(self, **kwargs):
            return space.sample(), super().reset(**kwargs)[1]

        def step(self, action):
            obs = space.sample() if self.t < 2 else np.array(beyond)
            return obs, *super().step(action)[1:]

    model = ppo(Beyond(length=5))
    said = re.escape(f"(Beyond) gave an observation that is not in {name}: {np.max(beyond)}")
    with pytest.raises(ValueError, match=f"env: environment 0 of 1 {said}.* step 3 of its episode"):
        model.learn(64)
    with pytest.raises(ValueError, match=rf"obs: holds {np.max(beyond)}, which is not in"):
        model.predict(np.array(beyond))
    with pytest.raises(ValueError, match=r"obs: holds 1\.5, which is not in"):
        model.predict(np.full(space.shape, 1.5))
