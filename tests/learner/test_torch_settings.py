"""Torch's threads and precision: held while learning, put back afterwards."""

import pytest
import torch
from torch import nn

import rlox
from rlox.learner import torch_settings as module
from rlox.learner.callbacks import BaseCallback
from rlox.learner.pairs import PAIRS
from rlox.learner.torch_settings import (
    precision_of_onednn,
    threads_for,
    torch_settings,
    why_not_onednn,
)


class Sees(BaseCallback):
    def on_step(self):
        self.threads = torch.get_num_threads()
        self.precision = torch.get_float32_matmul_precision()


@pytest.fixture
def three_threads():
    """The fixture of all trainers' tests puts back what was there."""
    torch.set_num_threads(3)


@pytest.mark.parametrize(
    ("algorithm", "env", "arguments", "threads"),
    [
        (rlox.PPO, "CartPole-v1", {}, 1),
        (rlox.PPO, "CartPole-v1", {"threads": 2}, 2),
        (rlox.SAC, "Pendulum-v1", {"optimizations": ()}, 3),  # 256 x 256 x 256
        (rlox.SAC, "Pendulum-v1", {}, 1),  # Rust's are beside them
    ],
)
def test_threads_while_learning(three_threads, algorithm, env, arguments, threads):
    callback = Sees()
    algorithm(env, **arguments).learn(4, callback)
    assert callback.threads == threads
    assert torch.get_num_threads() == 3


def test_precision_is_asked_for_and_put_back():
    usual, asked = Sees(), Sees()
    rlox.PPO("CartPole-v1", n_envs=1, n_steps=2).learn(2, usual)
    rlox.PPO("CartPole-v1", n_envs=1, n_steps=2, matmul_precision="medium").learn(2, asked)
    assert (usual.precision, asked.precision) == ("highest", "medium")
    assert torch.get_float32_matmul_precision() == "highest"


def test_settings_are_put_back_after_an_error(three_threads):
    with pytest.raises(RuntimeError, match="oops"), torch_settings(1, "high"):
        raise RuntimeError("oops")
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (3, "highest")


def test_one_thread_only_where_every_product_is_small(three_threads):
    small, large = nn.Linear(64, 64), nn.Linear(256, 256)
    assert threads_for([small], 512) == 1
    assert threads_for([small, large], 512) == 3
    assert threads_for([nn.Flatten()], 512) == 1


SMALL, LARGE = nn.Linear(64, 64), nn.Linear(256, 256)


@pytest.mark.parametrize(
    ("asked", "network", "why_not", "precision"),
    [
        ("highest", LARGE, None, "medium"),
        ("highest", SMALL, None, "highest"),
        ("highest", LARGE, "it rounds", "highest"),
        ("high", LARGE, None, "high"),
    ],
)
def test_onednn_multiplies_what_is_large_and_asked_for_in_full(
    asked, network, why_not, precision, monkeypatch
):
    monkeypatch.setattr(module, "why_not_onednn", lambda: why_not)
    assert precision_of_onednn(asked, [network], 256) == precision


def test_a_trainer_with_r13_lets_onednn_multiply(monkeypatch):
    monkeypatch.setattr(module, "why_not_onednn", lambda: None)
    for on, precision in (((), "highest"), (["R13"], "medium")):
        sees = Sees()
        rlox.SAC("Pendulum-v1", optimizations=on).learn(4, sees)
        assert sees.precision == precision
    rlox.SAC("Pendulum-v1", optimizations=["R9", "R13"]).learn(4, sees)
    assert sees.precision == "highest", "nothing of torch's is large there"
    assert torch.get_float32_matmul_precision() == "highest"


def test_mkl_is_left_to_multiply_on_other_cpus(monkeypatch):
    monkeypatch.setattr(module, "is_amd", lambda: False)
    assert "MKL" in why_not_onednn.__wrapped__()


def test_precision_of_an_accelerator_is_left_alone(monkeypatch):
    monkeypatch.setattr(module, "is_amd", lambda: True)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert "accelerator" in why_not_onednn.__wrapped__()


def test_a_product_in_bfloat16_is_noticed(monkeypatch):
    full = torch.full
    monkeypatch.setattr(module, "is_amd", lambda: True)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch, "full", lambda *a, **kw: full(*a, **kw).bfloat16().float())
    assert "bfloat16" in why_not_onednn.__wrapped__()


@pytest.mark.skipif(why_not_onednn() is not None, reason=str(why_not_onednn()))
def test_an_update_of_onednns_is_mkls():
    pair = PAIRS["R13"]
    (workload,) = pair.workloads
    arms = pair.arms(workload, {"batch_size": 256}, 3)
    for _ in range(3):
        pair.compare(*(arm.outcome(arm.call()) for arm in arms))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"matmul_precision": "low"}, "one of highest, high, medium, got 'low'"),
    ],
)
def test_what_cannot_be_set_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        rlox.PPO("CartPole-v1", **arguments)
