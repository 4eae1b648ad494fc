"""Smaller habits of Stable-Baselines3's users: what a program of theirs finds, beside theirs."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

import rlox
from rlox.learner.policies import TwinCritic

ID = "Pendulum-v1"


class Counts(gym.Env):
    """Shows how many steps its episode has; a time limit of five ends it."""

    observation_space = spaces.Box(0, 100, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(1, self.steps, np.float32), 1.0, False, self.steps == 5, {}


def test_a_rollout_buffer_has_rewards_and_episode_starts_as_theirs():
    settings = {"n_steps": 8, "batch_size": 8, "n_epochs": 1, "device": "cpu"}
    models = [one.PPO("MlpPolicy", Counts(), **settings) for one in (rlox, stable_baselines3)]
    models[1].policy.load_state_dict(models[0].policy.state_dict())
    ours, theirs = (model.learn(8).rollout_buffer for model in models)
    assert theirs.episode_starts[:, 0].tolist() == [1, 0, 0, 0, 0, 1, 0, 0]
    np.testing.assert_array_equal(ours.episode_starts, theirs.episode_starts)
    np.testing.assert_allclose(ours.rewards, theirs.rewards, rtol=1e-5)  # of the value, in Rust


def test_a_rollout_in_rust_keeps_them_too():
    settings = {"n_envs": 2, "n_steps": 64, "batch_size": 128, "n_epochs": 1, "seed": 1}
    model = rlox.PPO("CartPole-v1", optimizations=["R4"], **settings)
    seen = []
    for _ in range(2):
        seen.append(model.learn(128, reset_num_timesteps=False).rollout_buffer)
    assert model.rollout_path == "native"
    starts = np.concatenate([one.episode_starts for one in seen])
    lengths = [np.diff(np.flatnonzero(column)) for column in starts.T]
    assert sorted(np.concatenate(lengths)) == sorted(model.episode_lengths)
    assert all((one.rewards == 1).all() for one in seen)


def test_critics_that_are_replaced_are_the_policys():
    model = rlox.SAC(ID)
    for name in ("critic", "critic_target"):
        other = TwinCritic(3, 1, (8,))
        setattr(model, name, other)
        assert getattr(model.policy, name) is other
    policy = rlox.SAC(ID).policy
    model.policy = policy
    assert policy.critic is model.critic


@pytest.mark.parametrize("handled", [True, False])
def test_what_follows_a_time_limit_counts_unless_it_is_told_not_to(handled):
    given = {"handle_timeout_termination": handled}
    model = rlox.SAC("MlpPolicy", Counts(), replay_buffer_kwargs=given).learn(10)
    columns = model.replay_buffer.transitions()
    ends = [False, False, False, False, True] * 2
    assert columns["truncated"].tolist() == ends
    assert columns["terminated"].tolist() == [end and not handled for end in ends]


@pytest.mark.parametrize("n", [1, 3])
def test_there_are_as_many_critics_as_are_asked_for(tmp_path, n):
    kwargs = {"net_arch": [8], "n_critics": n}
    models = [
        library.SAC("MlpPolicy", ID, policy_kwargs=kwargs, learning_starts=8, seed=1, device="cpu")
        for library in (rlox, stable_baselines3)
    ]
    ours, theirs = (model.critic for model in models)
    names = [name for name in theirs.state_dict() if not name.startswith("features")]
    assert [*ours.state_dict()] == names
    theirs.load_state_dict(ours.state_dict())
    obs, actions = torch.randn(5, 3), torch.randn(5, 1)
    for one, other in zip(ours(obs, actions), theirs(obs, actions), strict=True):
        torch.testing.assert_close(one, other[:, 0])
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    models[0].learn(24).save(tmp_path / "model")
    assert all(not torch.equal(before[name], now) for name, now in ours.state_dict().items())
    assert rlox.SAC.load(tmp_path / "model").critic.n == n
    with pytest.raises(ValueError, match="n_critics belongs to SAC; PPO has one value function"):
        rlox.PPO("MlpPolicy", ID, policy_kwargs=kwargs)
    with pytest.raises(ValueError, match="n_critics must be at least 1, got 0"):
        rlox.SAC("MlpPolicy", ID, policy_kwargs={"n_critics": 0})


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_episodes_under_way_go_on_after_load_if_told(tmp_path, name):
    settings = {"n_steps": 8, "batch_size": 8} if name == "PPO" else {"learning_starts": 100}
    trainer, env = getattr(rlox, name), Counts()
    model = trainer("MlpPolicy", env, **settings).learn(8)
    assert env.steps == 3
    model.save(tmp_path / "model")
    shown = []
    for force_reset in (False, True):
        loaded = trainer.load(tmp_path / "model", env=env, force_reset=force_reset)
        shown.append(loaded._current_obs().tolist())
    assert shown == [[[3.0]], [[0.0]]]


def test_observations_become_tensors_as_theirs():
    seen = {"a": spaces.Box(-1, 1, (2, 2)), "b": spaces.Discrete(3)}
    for space in (spaces.Dict(seen), *seen.values()):

        class Shows(gym.Env):
            observation_space, action_space = space, spaces.Box(-1, 1, (1,))

            def reset(self, *, seed=None, options=None):
                return self.observation_space.sample(), {}

        kind = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
        ours, theirs = (one.SAC(kind, Shows()).policy for one in (rlox, stable_baselines3))
        for obs in (space.sample(), _batch(space)):
            (found, many), (expected, also) = ours.obs_to_tensor(obs), theirs.obs_to_tensor(obs)
            assert many == also
            for key in seen if isinstance(space, spaces.Dict) else [...]:
                pair = found[key], expected[key]
                torch.testing.assert_close(*pair, check_dtype=False)
            assert len(ours(found)) == len(_first(found))
            if isinstance(space, spaces.Discrete):
                q1, _ = ours.critic(found, ours(found))
                assert len(q1) == len(found)


def _first(observations):
    return observations["a"] if isinstance(observations, dict) else observations


def _batch(space):
    one = [space.sample() for _ in range(3)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([row[key] for row in one]) for key in space}
    return np.stack(one)


def test_a_policy_has_its_spaces_and_ppos_its_optimizer():
    for model in (rlox.PPO("MlpPolicy", Counts()), rlox.SAC("MlpPolicy", Counts())):
        assert model.policy.observation_space == model.observation_space
        assert model.policy.action_space == model.action_space
    policy = rlox.PPO("MlpPolicy", Counts(), learning_rate=2e-3).policy
    assert policy.optimizer.param_groups[0]["lr"] == 2e-3
    assert not hasattr(copy.deepcopy(policy), "optimizer")
    model = rlox.PPO("MlpPolicy", Counts())
    model.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1)
    assert model.policy.optimizer is model.optimizer


class Succeeds(Counts):
    """Says at each episode's end whether it has succeeded: every second one has."""

    episodes = 0

    def step(self, action):
        *found, ended, _ = super().step(action)
        self.episodes += ended
        return *found, ended, {"is_success": self.episodes % 2 == 1} if ended else {}


class Figures(BaseCallback):
    """Keeps the figures of a training."""

    def _on_step(self):
        return True

    def _on_training_end(self):
        self.found = dict(self.logger.name_to_value)


def test_figures_of_ppo_are_theirs():
    settings = {"n_steps": 40, "batch_size": 40, "n_epochs": 1, "device": "cpu", "seed": 0}
    models = [one.PPO("MlpPolicy", Succeeds(), **settings) for one in (rlox, stable_baselines3)]
    models[1].policy.load_state_dict(models[0].policy.state_dict())
    told = []
    for model in models:
        model.set_logger(configure(None, []))
        figures = Figures()
        model.learn(40, figures)
        told.append(figures.found)
    ours, theirs = told
    assert ours["rollout/success_rate"] == np.mean(models[1].ep_success_buffer) == 0.5
    for name in ("train/std", "train/explained_variance"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-3)


def test_a_trainer_tells_of_what_it_was_given(tmp_path):
    kwargs = {"net_arch": [8]}
    for make in (rlox.PPO, rlox.SAC):
        model = make("MlpPolicy", Counts(), policy_kwargs=kwargs, tensorboard_log=tmp_path)
        assert (model.policy_kwargs, model.tensorboard_log) == (kwargs, str(tmp_path))
        model = make("MlpPolicy", Counts())
        assert (model.policy_kwargs, model.tensorboard_log) == ({}, None)


class Draws(Counts):
    """Rewards an action that it has drawn from its action space."""

    def __init__(self):
        self.action_space = spaces.Discrete(4)

    def step(self, action):
        *_, terminated, truncated, info = super().step(action)
        reward = float(action == self.action_space.sample())
        return np.full(1, self.steps, np.float32), reward, terminated, truncated, info


def test_a_seed_is_also_that_of_the_action_space_from_which_some_environments_draw():
    def returns():
        return rlox.PPO("MlpPolicy", Draws(), n_steps=64, seed=3).learn(256).episode_returns

    found = returns()
    assert found == returns()
    assert len({*found}) > 1


def test_a_method_that_only_their_trainers_call_is_warned_of():
    with pytest.warns(UserWarning, match="class Mine defines _on_step, collect_rollouts, which"):

        class Mine(rlox.PPO):
            def collect_rollouts(self):
                raise AssertionError

            def _on_step(self):
                raise AssertionError


def test_a_train_of_ppo_that_takes_no_rollout_is_warned_of():
    with pytest.warns(UserWarning, match=r"class Mine defines train\(self\), .* train\(self, roll"):

        class Mine(rlox.PPO):
            def train(self):
                raise AssertionError


def test_a_subclass_with_methods_of_its_own_is_not_warned_of(recwarn):
    class Takes(rlox.PPO):
        def train(self, rollout):
            super().train(rollout)

    class Mine(rlox.SAC):
        def train(self, gradient_steps, batch_size=64):
            super().train(gradient_steps, batch_size)

        def report(self):
            """Nothing of theirs."""

    assert not recwarn.list
