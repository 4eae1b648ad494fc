"""Drivers of the race book an episode at the environment step at which it ended."""

import importlib
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

PEERS = Path(__file__).parents[2] / "peers"
JOB = {
    "algo": "ppo",
    "env_id": "CartPole-v1",
    "total_timesteps": 256,
    "n_envs": 1,
    "seed": 0,
    "threads": 1,
    "n_steps": 128,
    "batch_size": 64,
    "n_epochs": 1,
    "learning_rate": 3e-4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
SAC = {"algo": "sac", "env_id": "Pendulum-v1", "total_timesteps": 400, "tau": 0.005}
SAC |= {"learning_starts": 390, "buffer_size": 1000, "ent_coef": "auto"}


@pytest.fixture
def driver(tmp_path, monkeypatch, one_thread):
    """Runs a driver in this process; what it has written."""
    monkeypatch.syspath_prepend(PEERS)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"):
        monkeypatch.setenv(name, "1")  # and put back

    def run(name, **job):
        job = {**JOB, "form": "default", "out": str(tmp_path / "outcome.json"), **job}
        monkeypatch.setattr(sys, "argv", [name, json.dumps(job)])
        importlib.import_module(name).main()
        return json.loads((tmp_path / "outcome.json").read_text())

    yield run
    for name in ("run", *{name for name, _ in FORMS.values()}):
        sys.modules.pop(name, None)


FORMS = {
    "ours, in Rust": ("run_rlox", {}),
    "ours, in torch": ("run_rlox", {"form": ["R1", "R8"]}),
    "ours, SAC": ("run_rlox", SAC),
    "ours, in Python's environments": ("run_rlox", {"form": "python"}),
    "Stable-Baselines3": ("run_sb3", {}),
    "Stable-Baselines3, in processes": ("run_sb3", {"form": "processes"}),
    "the environments alone": ("run_environments", {}),
    "in CleanRL's manner": ("run_cleanrl_ppo", {"form": "gymnasium"}),
}


@pytest.mark.parametrize(("name", "job"), FORMS.values(), ids=FORMS)
def test_an_episode_is_booked_at_the_step_at_which_it_ended(name, job, driver):
    """In one environment that is the sum of the lengths until then; CartPole pays 1 a step."""
    found = driver(name, **job)
    seconds, steps, returns = zip(*found["episodes"], strict=True)
    lengths = [200] * len(returns) if job is SAC else returns
    assert list(steps) == list(itertools.accumulate(lengths))
    assert steps[-1] <= found["steps"]
    assert list(seconds) == sorted(seconds)
    assert 0 <= seconds[0] <= seconds[-1] <= found["train_s"]


def test_several_environments_share_a_step(driver):
    found = driver("run_rlox", n_envs=4, total_timesteps=1024)
    steps = np.array([steps for _, steps, _ in found["episodes"]])
    assert (steps % 4 == 0).all()
    assert len(set(steps)) > len(steps) / 3
    assert (np.diff(steps) >= 0).all()


def test_a_rollout_that_is_told_as_a_whole_is_booked_step_by_step(driver, monkeypatch):
    """Four steps of two environments, after eight steps of training."""
    monkeypatch.setattr(sys, "argv", ["run", json.dumps({**JOB, "out": ""})])
    run = importlib.import_module("run").Run()
    run.begin()
    ended = np.array([[0, 1], [0, 0], [1, 1], [0, 0]], bool)
    returns = np.arange(8.0).reshape(4, 2)
    run.rollout(ended, returns, 16)
    assert [(steps, back) for _, steps, back in run.episodes] == [(10, 1.0), (14, 4.0), (14, 5.0)]
