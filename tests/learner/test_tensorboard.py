"""Runs of TensorBoard lie in folders of their own, named as Stable-Baselines3 names them."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import configure
from toys import Clock
from trainers import ppo, sac

import rlox
from rlox.learner.logger import Logger


def runs(folder):
    """Event files of each run."""
    return {path.name: len(list(path.glob("events.*"))) for path in sorted(folder.iterdir())}


def read(folder):
    """What is in the run's files."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return accumulator.EventAccumulator(str(folder)).Reload()


def steps(folder):
    """Steps at which figures were written, over the run's files."""
    return [event.step for event in read(folder).Scalars("train/loss")]


def test_each_training_is_a_run(tmp_path):
    model = ppo(tensorboard_log=tmp_path)
    assert not list(tmp_path.iterdir())
    model.learn(256).learn(128)
    assert runs(tmp_path) == {"PPO_1": 1, "PPO_2": 1}
    assert steps(tmp_path / "PPO_1") == [128, 256]
    assert steps(tmp_path / "PPO_2") == [128]


def test_training_that_goes_on_is_the_same_run(tmp_path):
    model = ppo(tensorboard_log=tmp_path).learn(128)
    other = ppo(tensorboard_log=tmp_path).learn(128)
    model.learn(128, reset_num_timesteps=False)  # in its own, not in the other's
    assert steps(tmp_path / "PPO_1") == [128, 256]
    assert steps(tmp_path / "PPO_2") == [128]
    other.learn(128)
    assert list(runs(tmp_path)) == ["PPO_1", "PPO_2", "PPO_3"]


def test_what_was_loaded_goes_on_in_the_last_run(tmp_path):
    ppo(tensorboard_log=tmp_path / "log").learn(128).learn(128).save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt", tensorboard_log=str(tmp_path / "log"))
    loaded.learn(128, reset_num_timesteps=False)
    assert runs(tmp_path / "log") == {"PPO_1": 1, "PPO_2": 2}
    assert steps(tmp_path / "log" / "PPO_2") == [128, 256]


def test_other_files_are_no_runs(tmp_path):
    for name in ("PPO_7x", "PPO_", "PPO", "SAC_9", "my_PPO_5"):
        (tmp_path / name).mkdir()
    ppo(tensorboard_log=tmp_path).learn(128, reset_num_timesteps=False)
    (tmp_path / "PPO_12").mkdir()
    ppo(tensorboard_log=tmp_path).learn(128)
    assert {"PPO_1", "PPO_13"} <= runs(tmp_path).keys()


def test_runs_of_each_trainer_are_counted_apart(tmp_path):
    ppo(tensorboard_log=tmp_path).learn(128)
    box = rlox.VecEnv("Pendulum-v1", 1).single_action_space
    sac(Clock(10, action_space=box), tensorboard_log=tmp_path).learn(60)
    assert runs(tmp_path) == {"PPO_1": 1, "SAC_1": 1}


def test_arrays_and_tensors_are_histograms_as_theirs_are(tmp_path):
    told = {
        "array": np.ones((2, 3), np.float32),
        "tensor": torch.ones(4, requires_grad=True),
        "one": torch.tensor([2.0]),
        "no_axes": torch.tensor(2.0),
        "number": np.float32(2),
        "text": "said",
    }
    ours = Logger(tmp_path / "ours")
    ours.start("PPO", 0, 100, False)
    theirs = configure(str(tmp_path / "theirs"), ["tensorboard"])
    for logger in (ours, theirs):
        for name, value in told.items():
            logger.record(name, value)
        logger.dump(step=7)
    ours.stop()
    theirs.close()
    found, expected = (
        read(folder).Tags() for folder in (tmp_path / "ours" / "PPO_1", tmp_path / "theirs")
    )
    assert {*found["histograms"]} == {*expected["histograms"]} == set([*told][:4])
    assert {*found["tensors"]} == {*expected["tensors"]}
    assert {*found["scalars"]} - {"time/fps"} == {*expected["scalars"]} == {"number"}
    assert ours.values["one"] == 2.0


def test_an_array_that_torch_does_not_take_is_a_histogram_too(tmp_path):
    logger = Logger(tmp_path)
    logger.start("PPO", 0, 100, False)
    logger.record("backwards", np.arange(3.0)[::-1])
    logger.dump(step=7)
    logger.stop()
    assert read(tmp_path / "PPO_1").Tags()["histograms"] == ["backwards"]
