"""What Stable-Baselines3 does without being asked, and what is learnt hangs on."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import SAC as TheirSAC
from stable_baselines3.common.noise import NormalActionNoise, VectorizedActionNoise
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize
from toys import Clock

import rlox

BOX = spaces.Box(-1, 1, (1,), np.float32)
SMALL = {"learning_starts": 4, "batch_size": 4, "seed": 1}
PPO_SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "seed": 0}


def normalized(n=2, **more):
    return VecNormalize(DummyVecEnv([lambda: Clock(5, action_space=BOX)] * n), **more)


@pytest.mark.parametrize("wrap", [lambda env: env, VecMonitor, lambda env: VecFrameStack(env, 2)])
def test_the_normaliser_is_found_behind_other_wrappers(wrap):
    env = normalized()
    assert rlox.PPO("MlpPolicy", wrap(env), n_steps=8, batch_size=8).get_vec_normalize_env() is env


def test_sac_keeps_what_came_before_the_normaliser_and_normalises_what_it_draws():
    def learnt(trainer, **more):
        env = normalized(gamma=0.9)
        model = trainer("MlpPolicy", env, learning_starts=100, **more).learn(24)
        return env, model

    _, theirs = learnt(TheirSAC, device="cpu")
    env, ours = learnt(rlox.SAC)
    kept, buffer, n = ours.replay_buffer.transitions(), theirs.replay_buffer, 12
    for name, column in (("obs", "observations"), ("next_obs", "next_observations")):
        np.testing.assert_allclose(
            kept[name], getattr(buffer, column)[:n].reshape(2 * n, -1), atol=1e-5, err_msg=name
        )
    np.testing.assert_array_equal(kept["reward"], buffer.rewards[:n].ravel())
    drawn, raw = ours._draw(), ours.replay_buffer.transitions()
    possible = env.normalize_obs(raw["obs"])
    assert np.isin(drawn["obs"], possible).all()
    assert np.isin(drawn["reward"], env.normalize_reward(raw["reward"]).astype(np.float32)).all()
    ours.learning_starts = 4
    ours.learn(24)
    assert ours.update_path == "native"


class Dropping(BaseFeaturesExtractor):
    """Batch norm and dropout."""

    def __init__(self, space):
        super().__init__(space, 8)
        layers = torch.nn.Linear(1, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, obs):
        return self.layers(obs)


def test_target_critics_drop_nothing_and_follow_the_statistics():
    env = Clock(5, action_space=BOX)
    kwargs = {"features_extractor_class": Dropping}
    model = rlox.SAC("MlpPolicy", env, policy_kwargs=kwargs, **SMALL).learn(12)
    obs, actions = torch.randn(4, 1), torch.zeros(4, 1)
    first, second = (torch.stack(model.critic_target(obs, actions)) for _ in range(2))
    assert (first == second).all()
    pairs = list(zip(model.critic.buffers(), model.critic_target.buffers(), strict=True))
    assert pairs
    assert all((ours == theirs).all() for ours, theirs in pairs)


class Counting(NormalActionNoise):
    """Counts its resets."""

    def __init__(self, mean):
        self.resets = 0
        super().__init__(np.array([mean]), np.zeros(1))

    def reset(self):
        self.resets += 1


@pytest.mark.parametrize("trainer", [rlox.SAC, TheirSAC])
def test_action_noise_may_be_replaced_and_changed_and_begins_anew_with_each_learn(trainer):
    env = Clock(50, action_space=BOX)
    model = trainer("MlpPolicy", env, learning_starts=1000)
    model.action_noise = noise = Counting(9.0)
    model.learn(3)
    assert env.actions[-1][0] == 1
    noise._mu[:] = -9
    model.learn(3)
    assert env.actions[-1][0] == -1
    assert noise.resets == 2


def test_noise_for_several_environments_is_taken():
    noise = VectorizedActionNoise(NormalActionNoise(np.zeros(1), np.ones(1)), 3)
    env = DummyVecEnv([lambda: Clock(5, action_space=BOX)] * 3)
    rlox.SAC("MlpPolicy", env, action_noise=noise, **SMALL).learn(12)
    with pytest.raises(ValueError, match="action_noise: is for 3 environments, and there are 1"):
        rlox.SAC("MlpPolicy", Clock(5, action_space=BOX), action_noise=noise)


@pytest.mark.parametrize("given", [4, (4, "step"), TrainFreq(4, TrainFrequencyUnit.STEP)])
def test_train_freq_may_be_set_in_each_of_its_forms(given):
    model = rlox.SAC("MlpPolicy", Clock(50, action_space=BOX), **SMALL)
    model.train_freq = given
    assert model.learn(20)._n_updates == 4


def test_a_train_of_the_users_own_is_called():
    class Own(rlox.SAC):
        calls = 0

        def train(self, gradient_steps, batch_size=64):
            self.calls += 1
            super().train(gradient_steps, batch_size)

    model = Own("MlpPolicy", Clock(50, action_space=BOX), **SMALL).learn(20)
    assert model.calls == model._n_updates == 16


def test_figures_of_an_update_are_there_where_no_episode_has_ended():
    model = rlox.SAC("MlpPolicy", Clock(50, action_space=BOX), **SMALL).learn(20)
    assert model.logger.name_to_value["train/n_updates"] == 16


def test_a_schedule_that_is_not_given_again_is_missed_and_its_first_value_taken(tmp_path):
    """Its last one is often 0, with which nothing is learnt."""

    def schedule(left):
        return left * 1e-2

    model = rlox.PPO("MlpPolicy", "CartPole-v1", learning_rate=schedule, **PPO_SMALL)
    model.learn(32).save(tmp_path / "model")
    with pytest.warns(UserWarning, match=r"^learning_rate: .* cannot hold"):
        loaded = rlox.PPO.load(tmp_path / "model")
    assert loaded.learning_rate == loaded.optimizer.param_groups[0]["lr"] == 1e-2
    with warnings.catch_warnings(action="error"):
        assert rlox.PPO.load(tmp_path / "model", learning_rate=schedule).lr_schedule(0.5) == 5e-3
        assert rlox.PPO.load(tmp_path / "model", learning_rate=1e-3).learning_rate == 1e-3
        model.learning_rate = 1e-3
        model.save(tmp_path / "model")
        rlox.PPO.load(tmp_path / "model")


def test_networks_that_a_file_cannot_describe_are_to_be_given_again(tmp_path):
    """Others may fit the weights, and act differently."""
    described = {"activation_fn": partial(torch.nn.LeakyReLU, 0.3), "net_arch": [8]}
    model = rlox.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=described, **PPO_SMALL)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"^policy_kwargs: .* must be given to load"):
        rlox.PPO.load(tmp_path / "model")
    loaded = rlox.PPO.load(tmp_path / "model", policy_kwargs=described)
    obs = np.ones((5, 4), np.float32)
    assert (loaded.predict(obs)[0] == model.predict(obs)[0]).all()
    model.set_parameters(str(tmp_path / "model.zip"))
    described = {"net_arch": [8], "log_std_init": np.float32(0.5)}
    model = rlox.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=described, **PPO_SMALL)
    model.save(tmp_path / "model")
    rlox.PPO.load(tmp_path / "model")


def test_attributes_set_since_are_saved(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, learning_rate=1e-4)
    model.gamma, model.n_epochs, model.ent_coef = 0.7, 4, 0.3
    model.learn(32).save(tmp_path / "model")
    loaded = rlox.PPO.load(tmp_path / "model")
    assert (loaded.gamma, loaded.n_epochs, loaded.ent_coef) == (0.7, 4, 0.3)
    assert loaded._n_updates == model._n_updates > 0


def test_a_figure_is_written_once(tmp_path, capsys):
    from rlox.learner.logger import Logger

    logger = Logger(verbose=1)
    logger.start("PPO", 0, 100, False)
    logger.record("custom/once", 1)
    logger.dump(10)
    assert "custom/once" in capsys.readouterr().out
    logger.record("custom/twice", 2)
    logger.dump(20)
    shown = capsys.readouterr().out
    assert "custom/twice" in shown
    assert "custom/once" not in shown
    assert logger.values["custom/once"] == 1


@pytest.mark.parametrize("name", ["clip_range", "clip_range_vf"])
def test_a_clip_range_may_be_set_to_a_number_or_a_schedule(tmp_path, name):
    """A function raised an error that did not name it, and a number did not replace a schedule."""
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **{name: lambda left: 0.3 * left}, **PPO_SMALL)
    assert getattr(model, name) == 0.3
    setattr(model, name, 0.05)
    assert getattr(model.learn(32), name) == 0.05
    model.save(tmp_path / "model")
    with warnings.catch_warnings(action="error"):
        assert getattr(rlox.PPO.load(tmp_path / "model"), name) == 0.05
    setattr(model, name, lambda left: 0.2 * left)
    assert getattr(model.learn(64), name) == pytest.approx(0.2 * model._current_progress_remaining)
    model.save(tmp_path / "model")
    with pytest.warns(UserWarning, match=rf"^{name}: .* cannot hold"):
        assert getattr(rlox.PPO.load(tmp_path / "model"), name) == 0.2
    with pytest.raises(ValueError, match=f"{name} must be at least 0"):
        setattr(model, name, -1.0)
    if name == "clip_range_vf":
        model.clip_range_vf = None
        model.learn(32).save(tmp_path / "model")
        assert rlox.PPO.load(tmp_path / "model").clip_range_vf is None


@pytest.mark.parametrize("arch", [{"pi": [8], "vf": [8]}, {"qf": [8]}])
def test_a_network_without_layers_is_not_made_by_mistake(arch):
    with pytest.raises(AssertionError):
        TheirSAC("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": arch})
    with pytest.raises(ValueError, match=r"net_arch is .*give widths, .*qf=\["):
        rlox.SAC("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": arch})


def test_values_that_may_not_move_are_refused():
    with pytest.raises(ValueError, match=r"clip_range_vf: is 0, .*None sets no bound"):
        rlox.PPO("MlpPolicy", "CartPole-v1", clip_range_vf=0.0)


@pytest.mark.parametrize("make", [rlox.PPO, rlox.SAC])
def test_adam_need_not_be_fused(make):
    model = make("MlpPolicy", "Pendulum-v1", policy_kwargs={"optimizer_kwargs": {"fused": False}})
    found = model.optimizer if make is rlox.PPO else model.actor_optimizer
    assert found.defaults["fused"] is False


def test_another_number_of_environments_is_said(capsys, monkeypatch):
    monkeypatch.setattr(rlox.PPO, "_said", set())
    rlox.PPO("CartPole-v1").learn(1)
    assert "n_envs=8 for 1" in "".join(capsys.readouterr())
