"""The figures of a training: under which names, where they go, and when."""

import pytest
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3 import SAC as TheirSAC
from stable_baselines3.common.logger import configure

import rlox

SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "seed": 0}


def test_figures_go_to_a_logger_that_is_set(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.set_logger(configure(str(tmp_path), ["csv", "json"]))
    model.learn(48, log_interval=2)
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    times = {"time/fps", "time/time_elapsed", "time/total_timesteps"}
    assert {"train/loss", "train/learning_rate", *times} <= set(header.split(","))
    assert len(rows) == 1  # of three rollouts the second


@pytest.mark.parametrize(
    ("ours", "theirs", "settings"),
    [
        (rlox.PPO, TheirPPO, {"n_steps": 64, "batch_size": 32, "n_epochs": 1}),
        (rlox.SAC, TheirSAC, {"learning_starts": 390, "batch_size": 8}),
        (rlox.SAC, TheirSAC, {"learning_starts": 390, "batch_size": 8, "ent_coef": 0.1}),
    ],
)
def test_figures_have_the_names_that_theirs_have(tmp_path, ours, theirs, settings):
    names = []
    for number, algo in enumerate((ours, theirs)):
        model = algo("MlpPolicy", "Pendulum-v1", **settings)
        model.set_logger(configure(str(tmp_path / f"{number}"), ["csv"]))
        model.learn(400, log_interval=1)
        header = (tmp_path / f"{number}" / "progress.csv").read_text().splitlines()[0]
        names.append({*header.split(",")})
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("algo", "settings", "name"),
    [(rlox.PPO, {"n_steps": 200}, "iterations"), (rlox.SAC, {"learning_starts": 900}, "episodes")],
)
def test_iterations_and_episodes_are_counted_anew_by_each_training(algo, settings, name):
    model = algo("MlpPolicy", "Pendulum-v1", **settings)
    for _ in range(2):
        model.learn(400, log_interval=1)
        assert model.logger.values[f"time/{name}"] == 2


def test_verbose_prints_figures_and_silence_is_the_default(capsys):
    rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(32)
    assert capsys.readouterr().out == ""
    rlox.PPO("MlpPolicy", "CartPole-v1", verbose=1, **SMALL).learn(32, log_interval=2)
    out = capsys.readouterr().out
    assert out.count("train/loss") == 1
    assert "32 |" in out
