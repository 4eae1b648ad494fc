"""Torch's threads, precision and tanh: held while learning, put back afterwards."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import nn

import rlox
from rlox.learner import torch_settings as module
from rlox.learner.callbacks import BaseCallback
from rlox.learner.pairs import PAIRS
from rlox.learner.torch_settings import (
    precision_of_onednn,
    tanh_of_numpy,
    threads_for,
    torch_settings,
    why_not_numpy,
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


@pytest.fixture
def calls(monkeypatch):
    """How often NumPy's tanh stands in, on a machine where it is the faster one."""
    seen = []
    tanh = module._numpys_tanh
    monkeypatch.setattr(module, "why_not_numpy", lambda: None)
    monkeypatch.setattr(module, "_numpys_tanh", lambda x, out: (seen.append(x.shape), tanh(x, out)))
    return seen


FLOATS = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=0, min_side=0), elements=st.floats(width=32)
)


@given(FLOATS)
def test_numpys_tanh_is_torchs(array):
    """Within two units in the last place, infinities, numbers that are none and all."""
    x = torch.from_numpy(array)
    expected = torch.tanh(x.double())
    with torch_settings(1, "highest", numpys_tanh=True):
        found, in_place = torch.tanh(x), torch.tanh_(x.clone())
    assert found.dtype == torch.float32 and found.shape == x.shape
    torch.testing.assert_close(found.double(), expected, rtol=3e-7, atol=1e-45, equal_nan=True)
    assert torch.equal(found.nan_to_num(), in_place.nan_to_num())


OTHERS = [
    torch.tensor([0.5, -1.0], dtype=torch.float64),
    torch.tensor([0.5 + 1j]),
    torch.arange(12.0).view(3, 4).t(),
    torch.arange(3),
    torch.tensor([True, False]),
]


@pytest.mark.parametrize("x", OTHERS, ids=lambda x: str(x.dtype))
def test_what_numpy_is_not_for_is_left_to_torch(calls, x):
    expected = torch.tanh(x)
    for numpys in (True, False):  # the kernels are there for good
        with torch_settings(1, "highest", numpys_tanh=numpys):
            torch.testing.assert_close(torch.tanh(x), expected, rtol=0, atol=0)
            if x.is_floating_point():
                assert torch.equal(x.clone().tanh_(), expected)
    assert not calls


BESIDE = """
import threading, torch
from rlox.learner.torch_settings import torch_settings

x, ends = torch.ones(64), threading.Event()

def compute():
    while not ends.is_set():
        torch.tanh(x)

others = [threading.Thread(target=compute) for _ in range(2)]
for other in others:
    other.start()
for _ in range(3000):
    with torch_settings(torch.get_num_threads(), "highest", numpys_tanh=True):
        torch.tanh(x)
ends.set()
for other in others:
    other.join()
"""


def test_other_threads_may_be_in_a_tanh_when_learning_ends():
    subprocess.run([sys.executable, "-c", BESIDE], check=True, timeout=280)


def test_other_threads_keep_torchs_tanh(calls):
    with torch_settings(1, "highest", numpys_tanh=True):
        other = threading.Thread(target=lambda: torch.tanh(torch.zeros(3)))
        other.start()
        other.join()
    assert not calls


def test_many_threads_of_torch_are_left_their_tanh(calls):
    assert [tanh_of_numpy(threads) for threads in (1, 2, 64)] == [True, True, False]


def test_gradients_go_through_numpys_tanh(calls):
    x = torch.randn(7, requires_grad=True)
    with torch_settings(1, "highest", numpys_tanh=True):
        (gradient,) = torch.autograd.grad(nn.Tanh()(x).sum(), x)
        mapped = torch.func.vmap(torch.func.grad(torch.tanh))(x)
    assert len(calls) == 2
    torch.testing.assert_close(gradient, 1 - torch.tanh(x.detach()) ** 2)
    torch.testing.assert_close(mapped, gradient)


def test_torchs_tanh_is_put_back(calls):
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), torch_settings(1, "highest", numpys_tanh=True):
            with torch_settings(1, "highest", numpys_tanh=True):  # a callback that trains
                pass
            torch.tanh(torch.zeros(3))
            raise error
    assert len(calls) == 2
    torch.tanh(torch.zeros(3))
    assert len(calls) == 2


@pytest.mark.parametrize(("on", "replaced"), [((), False), (["R15"], True)])
def test_a_trainer_with_r15_has_numpys_tanh(calls, on, replaced):
    rlox.PPO("CartPole-v1", n_envs=2, n_steps=2, optimizations=on).learn(4)
    assert bool(calls) == replaced
    torch.tanh(torch.zeros(3))
    assert (3,) not in calls


def test_mkl_is_left_its_tanh_on_other_cpus(monkeypatch):
    monkeypatch.setattr(module, "is_amd", lambda: False)
    assert "MKL" in why_not_numpy()


@pytest.mark.parametrize("workload", PAIRS["R15"].workloads, ids=lambda workload: workload.name)
def test_training_with_numpys_tanh_is_as_with_torchs(calls, workload):
    """On every machine, whoever is faster there."""
    arms = PAIRS["R15"].arms(workload, {"n_envs": 3, "n_steps": 5, "batch_size": 9}, 1)
    for _ in range(3):
        PAIRS["R15"].compare(*(arm.outcome(arm.call()) for arm in arms))
    assert calls, "nothing was replaced, so nothing is shown"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"matmul_precision": "low"}, "must be .*, got 'low'"),
    ],
)
def test_what_cannot_be_set_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        rlox.PPO("CartPole-v1", **arguments)
