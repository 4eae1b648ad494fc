"""Names that callbacks and scripts for Stable-Baselines3 look up, beside theirs."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, VecTransposeImage
from test_drop_in import LAST, SMALL, Sees

import rlox

PENDULUM = "Pendulum-v1"
LIBRARIES = (rlox, stable_baselines3)


def small(name):
    """A training of a few steps."""
    if name == "PPO":
        return {"n_steps": 16, "batch_size": 16, "n_epochs": 2}
    return {"learning_starts": 8, "buffer_size": 100, "batch_size": 4}


def weights(model):
    return torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


class Reads(BaseCallback):
    """Keeps what it finds at the first step of a `learn`."""

    def _on_training_start(self):
        model = self.model
        self.read = model._num_timesteps_at_start, model._total_timesteps

    def _on_step(self):
        return True


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_a_callback_reads_where_training_began_and_ends(name):
    read = []
    for library in LIBRARIES:
        model = getattr(library, name)("MlpPolicy", PENDULUM, **small(name))
        for reset in (True, False):
            reads = Reads()
            model.learn(16, callback=reads, reset_num_timesteps=reset)
            read.append(reads.read)
    assert read == [(0, 16), (16, 32)] * 2


def test_the_statistics_around_the_environments_are_found():
    env = VecNormalize(DummyVecEnv([lambda: gym.make(PENDULUM)]))
    assert rlox.PPO("MlpPolicy", env)._vec_normalize_env is env
    assert rlox.PPO("MlpPolicy", PENDULUM)._vec_normalize_env is None


@pytest.mark.parametrize("ent_coef", ["auto_0.5", 0.25])
def test_the_temperature_has_their_names(ent_coef):
    ours, theirs = (
        library.SAC("MlpPolicy", PENDULUM, ent_coef=ent_coef, buffer_size=50)
        for library in LIBRARIES
    )
    assert (ours.ent_coef, ours.buffer_size) == (theirs.ent_coef, theirs.buffer_size)
    assert ours.policy_class is type(ours.policy)
    assert (theirs.log_ent_coef is None) == (ours.log_ent_coef is None) == (ent_coef == 0.25)
    if ours.log_ent_coef is None:
        assert ours.ent_coef_optimizer is theirs.ent_coef_optimizer is None
    else:
        assert ours.log_ent_coef.item() == pytest.approx(theirs.log_ent_coef.item())
        assert ours.ent_coef_optimizer.param_groups[0]["params"] == [ours.log_ent_coef]


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_all_weights_are_one_vector(name):
    one, other = (getattr(rlox, name)("MlpPolicy", PENDULUM, seed=s, **small(name)) for s in (1, 2))
    vector = one.policy.parameters_to_vector()
    other.policy.load_from_vector(vector)
    obs = np.zeros(3, np.float32)
    for model in (one, other):
        assert model.predict(obs, deterministic=True) == one.predict(obs, deterministic=True)
    vector[:] = 0
    assert other.policy.parameters_to_vector().any()
    other.learn(32)  # with the weights that were loaded
    with pytest.raises(ValueError, match=f"vector: has 3 numbers, and the policy {len(vector)}"):
        one.policy.load_from_vector(np.zeros(3))


@pytest.mark.parametrize("path", ["native", "torch"])
@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_from_the_same_seed_on_training_is_the_same(name, path):
    found = []
    for first_seed in (1, 2, 3):
        optimizations = None if path == "native" else []
        settings = {**small(name), "optimizations": optimizations, "seed": first_seed}
        model = getattr(rlox, name)("MlpPolicy", PENDULUM, **settings)
        if first_seed == 1:
            begin = copy.deepcopy(model.get_parameters())
        model.set_parameters(begin)
        if first_seed != 3:
            model.set_random_seed(7)
        model.set_random_seed(None)
        model.learn(32)
        drawn = model.predict(np.zeros(3, np.float32))[0]
        found.append((weights(model), model.action_space.sample(), drawn))
    one, same, other = found
    for ours, again, apart in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(ours, again)
        assert not np.array_equal(ours, apart)


def test_what_sac_has_stored_stays():
    model = rlox.SAC("MlpPolicy", PENDULUM, seed=1, **small("SAC")).learn(20)
    before = model.replay_buffer.transitions()
    model.set_random_seed(5)
    for name, column in model.replay_buffer.transitions().items():
        np.testing.assert_array_equal(column, before[name])
    prioritized = rlox.SAC("MlpPolicy", PENDULUM, prioritized=True, **small("SAC"))
    prioritized.set_random_seed(5)
    prioritized.learn(10)
    with pytest.raises(ValueError, match="call set_random_seed before learn"):
        prioritized.set_random_seed(5)
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        model.set_random_seed(-1)


def test_a_logger_tells_its_folder_and_takes_texts(tmp_path, capsys):
    model = rlox.PPO("MlpPolicy", PENDULUM, **small("PPO"))
    assert model.logger.get_dir() is model.logger.dir is None
    model.logger.info("nobody reads this")
    model.logger.verbose = 1
    model.logger.debug("nor this")
    model.logger.info("three", 3)
    model.logger.warn("four")
    assert capsys.readouterr().out == "three 3\nfour\n"
    model.set_logger(configure(str(tmp_path), ["log"]))
    assert model.logger.dir == model.logger.get_dir() == str(tmp_path)
    model.logger.error("told")
    assert "told" in (tmp_path / "log.txt").read_text()


def test_a_run_of_tensorboard_has_the_folder_of_theirs(tmp_path):
    folders = []
    for library in LIBRARIES:
        folder = tmp_path / library.__name__
        settings = {**small("PPO"), "tensorboard_log": str(folder)}
        model = library.PPO("MlpPolicy", PENDULUM, **settings).learn(16, tb_log_name="run")
        assert model.logger.dir == model.logger.get_dir()
        folders.append(model.logger.dir.removeprefix(str(folder)))
    assert folders == ["/run_1", "/run_1"]


class Keeps(BaseCallback):
    """Keeps the shapes of the last observations, and of the space that goes with them."""

    def _on_step(self):
        new_obs, space = self.locals["new_obs"], self.locals["env"].observation_space
        if isinstance(space, spaces.Dict):
            new_obs, space = new_obs["image"], space["image"]
        self.shapes = new_obs.shape, space.shape
        return True


@pytest.mark.parametrize("given", ["env", "vector", "Dict"])
def test_images_in_locals_are_as_the_environment_shows_them(given):
    space = spaces.Dict({"image": LAST}) if given == "Dict" else LAST
    policy = "MultiInputPolicy" if given == "Dict" else "CnnPolicy"
    shapes = []
    for library in LIBRARIES:
        env = Sees(space)
        if given == "vector":
            env = VecTransposeImage(DummyVecEnv([lambda env=env: env]))
        keeps = Keeps()
        library.PPO(policy, env, **SMALL).learn(16, keeps)
        shapes.append(keeps.shapes)
    assert shapes == [((1, 3, 36, 36), (3, 36, 36))] * 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_figures_may_be_shown_by_hand(library, tmp_path):
    model = library.PPO("MlpPolicy", "CartPole-v1", tensorboard_log=str(tmp_path), **small("PPO"))
    model.learn(16)
    logger = model.logger
    logger.record_mean("mine", None)
    logger.record_mean("mine", 2.0)
    logger.record("said", "a text", exclude="tensorboard")
    assert logger.name_to_value["mine"] == 2.0
    logger.dump(step=5)
    logger.dump()
    (written,) = tmp_path.rglob("events.*")
    assert b"a text" not in written.read_bytes()


def test_the_name_of_a_run_may_lie_in_folders(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", tensorboard_log=str(tmp_path), **small("PPO"))
    for _ in range(2):
        model.learn(16, tb_log_name="group/mine")
    assert {path.name for path in (tmp_path / "group").iterdir()} == {"mine_1", "mine_2"}
