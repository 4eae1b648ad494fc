"""What programs of Stable-Baselines3's users do with a model besides training it."""

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3.common.callbacks import BaseCallback as TheirCallback
from stable_baselines3.common.callbacks import LogEveryNTimesteps
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv
from test_drop_in import LAST, SMALL, Sees
from toys import Clock

import rlox
from rlox.learner.callbacks import BaseCallback


def test_environments_of_a_trainer_are_another_trainers():
    """As `PPO.load(path, env=model.get_env())`; natively stepped ones stay so."""
    first = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(32)
    second = rlox.PPO("MlpPolicy", first.get_env(), **SMALL)
    assert second.vector_env is first.vector_env
    assert second.learn(32).rollout_path == "native"
    first.learn(32, reset_num_timesteps=False)  # from new episodes: its own were left
    assert first.num_timesteps == 64


@pytest.mark.parametrize("buffer_size", [1000, 90])
def test_a_replay_buffer_is_written_and_learnt_from_elsewhere(buffer_size, tmp_path):
    first = rlox.SAC("MlpPolicy", "Pendulum-v1", buffer_size=buffer_size, seed=0).learn(110)
    first.save(tmp_path / "sac")
    first.save_replay_buffer(tmp_path / "kept")
    assert (tmp_path / "kept.pkl").exists()
    second = rlox.SAC.load(tmp_path / "sac")
    second.set_env("Pendulum-v1")
    assert second.replay_buffer.size() == 0
    second.load_replay_buffer(tmp_path / "kept")
    before, after = first.replay_buffer.transitions(), second.replay_buffer.transitions()
    for name, column in before.items():
        assert len(column) == min(110, buffer_size)
        np.testing.assert_array_equal(column, after[name], err_msg=name)
    weights = [p.clone() for p in second.policy.parameters()]
    second.learn(1, reset_num_timesteps=False)
    assert second.replay_buffer.size() == min(111, buffer_size)
    changed = zip(weights, second.policy.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in changed), "it learns at once"


def test_a_replay_buffer_of_other_observations_is_refused(tmp_path):
    rlox.SAC("MlpPolicy", "Pendulum-v1").learn(10).save_replay_buffer(tmp_path / "kept.pkl")
    other = rlox.SAC("MlpPolicy", "MountainCarContinuous-v0")
    with pytest.raises(ValueError, match=r"obs: has shape \(10, 3\), expected \(n, 2\)"):
        other.load_replay_buffer(tmp_path / "kept.pkl")
    with pytest.raises(ValueError, match="prioritized"):
        rlox.SAC("MlpPolicy", "Pendulum-v1", prioritized=True).save_replay_buffer(tmp_path / "p")


def test_their_callback_shows_figures_every_so_many_steps(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(96, callback=LogEveryNTimesteps(n_steps=32), log_interval=None)
    told = (tmp_path / "progress.csv").read_text().splitlines()
    assert len(told) == 1 + 3
    assert "rollout/ep_rew_mean" in told[0]


def test_noise_follows_from_the_seed_and_leaves_the_global_stream():
    def trained():
        noise = NormalActionNoise(np.zeros(1), np.full(1, 0.1))
        model = rlox.SAC("MlpPolicy", "Pendulum-v1", action_noise=noise, learning_starts=0, seed=3)
        return model.learn(20).replay_buffer.transitions()["action"]

    np.random.seed(0)  # noqa: NPY002
    first = trained()
    drawn = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert drawn == np.random.random()  # noqa: NPY002
    np.testing.assert_array_equal(first, trained())


def test_a_model_has_env_and_rollout_buffer_as_theirs_has():
    told = []

    class Looks(BaseCallback):
        def on_rollout_end(self):
            told.append(self.model.rollout_buffer)

    model = rlox.PPO("MlpPolicy", gym.make("CartPole-v1"), **SMALL)
    assert model.env.observation_space.contains(model.env.reset()[0])
    assert len(model.env.envs) == 1
    model.learn(16, callback=Looks())
    (rollout,) = told
    assert rollout.size() == 16
    assert rollout.observations.shape == (16, 1, 4)
    np.testing.assert_allclose(rollout.values, rollout.returns - rollout.advantages, atol=1e-6)


def test_the_same_environment_without_reset_goes_on_in_its_episodes():
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(16)
    under_way = model._last_obs
    model.set_env(model.get_env(), force_reset=False)
    assert model._last_obs is under_way is not None
    model.set_env(model.get_env())
    assert model._last_obs is None


@pytest.mark.parametrize("said", [False, np.bool_(0), torch.tensor(False)])
def test_whatever_is_false_ends_training_and_none_does_not(said):
    class Says(TheirCallback):
        def _on_step(self):
            return said

    model = rlox.SAC("MlpPolicy", "Pendulum-v1").learn(10, callback=Says())
    assert model.num_timesteps == 1
    model.learn(5, callback=lambda *_: None)
    assert model.num_timesteps == 5


def test_arguments_are_left_out_of_a_file_and_put_into_it(tmp_path):
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", verbose=2, gradient_steps=0)
    model.save(tmp_path / "one", exclude=["verbose"])
    assert rlox.SAC.load(tmp_path / "one").verbose == 0
    model.verbose = 1
    model.save(tmp_path / "one", exclude=["verbose"], include=["verbose"])
    assert rlox.SAC.load(tmp_path / "one").verbose == 1


def test_without_gradient_steps_nothing_is_learnt():
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", gradient_steps=0, learning_starts=0)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(10)
    for a, b in zip(before, model.policy.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_the_cpu(tmp_path):
    with pytest.warns(UserWarning, match="there is no 'cuda' here"):
        rlox.PPO("MlpPolicy", "CartPole-v1", device="cuda").save(tmp_path / "one")
    with pytest.warns(UserWarning, match="there is no 'cuda' here"):
        assert rlox.PPO.load(tmp_path / "one", device="cuda").device.type == "cpu"


class Drawn(Clock):
    """A Clock that is drawn as a picture whose brightness is the time."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}

    def render(self):
        return np.full((2, 2, 3), self.t) if self.render_mode == "rgb_array" else None


def test_an_environment_that_was_made_without_a_render_mode_is_drawn_when_asked():
    model = rlox.PPO("MlpPolicy", Drawn(5), **SMALL)
    model.env.reset()
    before = model.env.render(mode="rgb_array")
    model.env.step([0])
    assert (model.env.render(mode="rgb_array") == before + 1).all()
    assert rlox.PPO("MlpPolicy", Drawn(5), **SMALL).env.render() is None


@pytest.mark.parametrize("optimizations", [None, ()], ids=["native", "torch"])
def test_sac_learns_from_its_buffer_alone(optimizations):
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", seed=0, optimizations=optimizations).learn(90)
    before = [p.clone() for p in model.policy.parameters()]
    model.train(gradient_steps=0)
    assert all(torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    model.train(gradient_steps=3, batch_size=16)
    assert model.num_timesteps == 90
    assert model.batch_size == 256
    changed = zip(before, model.policy.parameters(), strict=True)
    assert not any(torch.equal(a, b) for a, b in changed)


def test_a_learning_rate_that_is_set_holds_from_then_on(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    assert model.lr_schedule(0.5) == 3e-4
    model.learning_rate = 1e-2
    assert model.optimizer.param_groups[0]["lr"] == 1e-2
    model.lr_schedule = lambda left: 0.0
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(32)
    assert all(torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True))
    model.learning_rate = 2e-3
    model.save(tmp_path / "one")
    assert rlox.PPO.load(tmp_path / "one").learning_rate == 2e-3


def test_a_compiled_policy_is_saved_as_it_was_made(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    weights = model.get_parameters()["policy"]
    model.policy = torch.compile(model.policy, backend="eager")  # the wrapper is the same
    assert model.get_parameters()["policy"].keys() == weights.keys()
    model.save(tmp_path / "one")
    found = rlox.PPO.load(tmp_path / "one").get_parameters()["policy"]
    assert all(torch.equal(found[name], one) for name, one in weights.items())


def test_what_asks_for_what_is_done_anyway_is_taken():
    anyway = {"handle_timeout_termination": True}
    rlox.SAC("MlpPolicy", "Pendulum-v1", optimize_memory_usage=True, replay_buffer_kwargs=anyway)
    with pytest.raises(ValueError, match="replay_buffer_kwargs: holds n_envs; handle_timeout"):
        rlox.SAC("MlpPolicy", "Pendulum-v1", replay_buffer_kwargs={"n_envs": 2})


@pytest.mark.parametrize("given", ["one", "theirs"])
def test_image_environments_of_a_trainer_are_anothers_though_they_turn_images(given, tmp_path):
    def make():
        env = Sees(LAST)
        return env if given == "one" else DummyVecEnv([lambda: env])

    few = {"features_extractor_kwargs": {"features_dim": 8}}
    model = rlox.PPO("CnnPolicy", make(), policy_kwargs=few, **SMALL)
    assert model.get_env().observation_space.shape == (3, 36, 36), "as in Stable-Baselines3"
    model.save(tmp_path / "one")
    rlox.PPO.load(tmp_path / "one", env=model.get_env()).learn(16)
    other = rlox.PPO("CnnPolicy", make(), policy_kwargs=few, **SMALL)
    other.set_env(model.get_env())
    other.learn(16)
    assert other.observation_space == LAST


def test_a_trainer_whose_environments_another_has_stepped_begins_new_episodes():
    first = rlox.PPO("MlpPolicy", Clock(100), **SMALL)
    second = rlox.PPO("MlpPolicy", first.get_env(), **SMALL)
    first.learn(16)
    second.learn(32)
    assert first.learn(16, reset_num_timesteps=False)._last_obs == 16, "steps of its own episode"
    assert second.learn(16, reset_num_timesteps=False)._last_obs == 16


def test_what_a_callback_writes_into_the_rollout_buffer_is_refused_since_it_is_not_learnt_from():
    class Spoils(BaseCallback):
        def on_rollout_end(self):
            for column in self.model.rollout_buffer:
                with pytest.raises(ValueError, match="read-only"):
                    column[:] = 0
            self.called = True

    spoils = Spoils()
    rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(16, callback=spoils)
    assert spoils.called


def test_parameters_of_a_compiled_policy_go_back_into_it():
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.policy = torch.compile(model.policy, backend="eager")  # the wrapper is the same
    weights = {name: torch.zeros_like(w) for name, w in model.get_parameters()["policy"].items()}
    model.set_parameters({**model.get_parameters(), "policy": weights})
    assert not any(w.any() for w in model.get_parameters()["policy"].values())


def test_before_any_learn_all_of_training_remains(tmp_path):
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", seed=0).learn(110)
    model.save(tmp_path / "sac")
    model.save_replay_buffer(tmp_path / "kept")
    again = rlox.SAC.load(tmp_path / "sac", learning_rate=lambda left: 1e-3 * left)
    again.load_replay_buffer(tmp_path / "kept")
    again.train(2)
    assert again.actor_optimizer.param_groups[0]["lr"] == 1e-3


@pytest.mark.parametrize(("settings", "eps"), [(None, 1e-5), ({"weight_decay": 0.1}, 1e-8)])
def test_adams_epsilon_is_theirs_with_settings_and_without(settings, eps):
    kwargs = {} if settings is None else {"optimizer_kwargs": settings}
    for library in (rlox.PPO, TheirPPO):
        model = library("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs)
        optimizer = model.optimizer if library is rlox.PPO else model.policy.optimizer
        assert optimizer.param_groups[0]["eps"] == eps
