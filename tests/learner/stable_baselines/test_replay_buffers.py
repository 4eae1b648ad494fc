"""A replay buffer under Stable-Baselines3's names, beside theirs."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

import rlox

SMALL = {"learning_starts": 100, "batch_size": 4, "seed": 3}
BOX = spaces.Box(-np.inf, np.inf, (2, 3), np.float32)
DICT = spaces.Dict({"z": spaces.Box(-1, 1, (2,), np.float32), "a": spaces.Discrete(3)})
ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class Told(gym.Env):
    """Shows how many steps there were; every third ends an episode, by a time limit if `limit`."""

    action_space = spaces.Box(-2, 2, (1,), np.float32)

    def __init__(self, space, limit=True):
        self.observation_space, self.limit, self.steps = space, limit, 0

    def shown(self):
        if self.observation_space is BOX:
            return np.full(BOX.shape, self.steps, np.float32)
        return {"z": np.full(2, 1 / (1 + self.steps), np.float32), "a": self.steps % 3}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shown(), {}

    def step(self, action):
        self.steps += 1
        ended = self.steps % 3 == 0
        return self.shown(), 0.5 * self.steps, ended and not self.limit, ended and self.limit, {}


def models(space, n_envs, buffer_size, limit=True, **settings):
    """A trainer of each library, its buffer empty."""
    policy = "MlpPolicy" if space is BOX else "MultiInputPolicy"
    return [
        library.SAC(
            policy, DummyVecEnv([lambda: Told(space, limit)] * n_envs), buffer_size=buffer_size,
            **SMALL, **settings,
        )
        for library in (rlox, stable_baselines3)
    ]  # fmt: skip


def require_same(one, other):
    if isinstance(other, dict):
        assert one.keys() == other.keys()
        for key, part in other.items():
            require_same(one[key], part)
    else:
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape


def until(part, steps):
    if isinstance(part, dict):
        return {key: until(one, steps) for key, one in part.items()}
    return part[:steps]


@pytest.mark.parametrize("limit", [True, False])
@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("space", [BOX, DICT], ids=["Box", "Dict"])
def test_what_was_stored_is_found_under_their_names(space, n_envs, limit):
    ours, theirs = (
        model.learn(7 * n_envs).replay_buffer for model in models(space, n_envs, 40, limit)
    )
    assert (ours.pos, ours.full, ours.buffer_size) == (theirs.pos, theirs.full, theirs.buffer_size)
    assert ours.pos == 7
    for name in ARRAYS:
        expected = until(getattr(theirs, name), theirs.pos)
        if name == "actions":  # drawn by other random numbers
            assert (abs(ours.actions) <= 1).all()
            assert ours.actions.shape == expected.shape
        else:
            require_same(getattr(ours, name), expected)
    assert ours.dones.sum() == 2 * n_envs
    assert ours.timeouts.sum() == 2 * n_envs * limit


def test_a_full_buffer_is_a_ring_that_begins_at_its_oldest_step():
    ours, theirs = (model.learn(14).replay_buffer for model in models(BOX, 2, 8))
    assert ours.full
    assert theirs.full
    for name in ("observations", "rewards", "dones"):
        expected = np.roll(getattr(theirs, name), -theirs.pos, axis=0)
        require_same(np.roll(getattr(ours, name), -ours.pos, axis=0), expected)
    uneven, _ = models(BOX, 2, 7)
    assert uneven.learn(14).replay_buffer.rewards.tolist() == theirs.rewards[[0, 1, 2]].tolist()


@pytest.mark.parametrize("bootstraps", [True, False])
@pytest.mark.parametrize("space", [BOX, DICT], ids=["Box", "Dict"])
def test_a_demonstration_is_added_as_to_theirs(space, bootstraps):
    kwargs = {"handle_timeout_termination": bootstraps}
    made = models(space, 2, 40, replay_buffer_kwargs=kwargs)
    env = DummyVecEnv([lambda: Told(space)] * 2)
    obs = env.reset()
    rng = np.random.default_rng(0)
    for _ in range(5):
        action = rng.uniform(-1, 1, (2, 1)).astype(np.float32)
        new_obs, reward, done, infos = env.step(action)
        for model in made:
            model.replay_buffer.add(obs, new_obs, action, reward, done, infos)
        obs = new_obs
    ours, theirs = (model.replay_buffer for model in made)
    for name in ARRAYS[:-1]:
        require_same(getattr(ours, name), until(getattr(theirs, name), theirs.pos))
    stored = ours.transitions()
    not_bootstrapped = theirs.dones[:5] * (1 - theirs.timeouts[:5])
    assert stored["terminated"].tolist() == not_bootstrapped.reshape(-1).tolist()
    made[0].learn(8)  # goes on with them
    assert len(made[0].replay_buffer) == 18


def test_steps_are_added_together():
    (one, _), (other, _) = models(BOX, 1, 40), models(BOX, 1, 40)
    held = one.learn(7).replay_buffer
    infos = [[{"TimeLimit.truncated": bool(ended)}] for ended in held.timeouts]
    columns = (held.observations, held.next_observations, held.actions, held.rewards, held.dones)
    other.replay_buffer.extend(*columns, infos)
    for name, column in held.transitions().items():
        np.testing.assert_array_equal(other.replay_buffer.transitions()[name], column)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_holds_the_same_and_is_another(copied):
    model, _ = models(DICT, 2, 8)
    empty = copied(model.replay_buffer)
    assert (len(empty), empty.capacity) == (0, 8)
    held = model.learn(14).replay_buffer
    other = copied(held)
    before = {name: column.copy() for name, column in other.transitions().items()}
    for name, column in held.transitions().items():
        np.testing.assert_array_equal(before[name], column)
    model.learn(14, reset_num_timesteps=False)
    for name, column in other.transitions().items():
        np.testing.assert_array_equal(column, before[name])
    model.replay_buffer = other
    model.learn(200, reset_num_timesteps=False)


@pytest.mark.parametrize("n", [2, 7])
def test_its_size_counts_steps_of_all_environments(n):
    ours, theirs = models(BOX, 2, 10)
    for model in (ours, theirs):
        model.learn(2 * n)
    assert ours.replay_buffer.size() == theirs.replay_buffer.size() == min(n, 5)
    assert len(ours.replay_buffer) == min(2 * n, 10), "transitions"
