"""SAC's update with products of bfloat16 (R20), and with those by AMX (R22)."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import rlox
from rlox import _core
from rlox.learner.native import sac_update


def trainer(optimizations, batch_size=64):
    model = rlox.SAC(
        "Pendulum-v1", seed=1, batch_size=batch_size, buffer_size=512, learning_starts=0,
        optimizations=optimizations,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    obs, next_obs = rng.normal(size=(2, 512, 3)).astype(np.float32)
    actions = rng.uniform(-1, 1, (512, 1)).astype(np.float32)
    rewards, ended = rng.normal(size=512).astype(np.float32), rng.random(512) < 0.1
    model.replay_buffer.push_batch(obs, next_obs, actions, rewards, ended, ~ended)
    return model


def learnt(model, updates=3):
    for _ in range(updates):
        model.train_once()
    return torch.cat([p.detach().flatten() for p in model.critic.parameters()])


@pytest.fixture
def everywhere(monkeypatch):
    """R20 applies on any processor; without the instruction Rust rounds the factors itself."""
    monkeypatch.setattr(sac_update, "why_not_bfloat16", lambda: None)


@pytest.mark.usefixtures("everywhere")
def test_what_is_learnt_differs_by_the_rounding_of_factors():
    exact, rounded = (learnt(trainer(on)) for on in (["R9"], ["R9", "R20"]))
    before = learnt(trainer(["R9"]), updates=0)
    moved = (exact - before).abs().mean()
    apart = (exact - rounded).abs().mean()
    assert 1e-3 * moved < apart < 0.2 * moved


@pytest.mark.usefixtures("everywhere")
def test_small_products_stay_as_they_are():
    exact, rounded = (learnt(trainer(on, batch_size=31)) for on in (["R9"], ["R9", "R20", "R22"]))
    assert torch.equal(exact, rounded)


@pytest.mark.usefixtures("everywhere")
def test_amx_changes_the_order_of_sums_alone():
    before = learnt(trainer(["R9"]), updates=0)
    rounded, by_amx = (learnt(trainer(["R9", "R20", *on])) for on in ([], ["R22"]))
    assert torch.equal(rounded, by_amx) != _core.has_amx()
    assert (rounded - by_amx).abs().mean() < 1e-3 * (rounded - before).abs().mean()


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("on", [["R9", "R20"], ["R9", "R20", "R22"]])
def test_threads_do_not_change_it(on):
    one, two = trainer(on), trainer(on)
    for model, threads in ((one, 1), (two, 2)):
        model._choose_update()
        model._native.threads = threads
    assert torch.equal(learnt(one), learnt(two))


def test_it_applies_where_the_processor_has_it_and_may_use_it():
    asks = "from rlox import _core; print(_core.has_bfloat16(), _core.has_amx())"
    for level in ("portable", "avx2"):
        environment = {**os.environ, "RLOX_INSTRUCTIONS": level}
        run = subprocess.run(
            [sys.executable, "-c", asks],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == ["False", "False"]
    if _core.has_bfloat16():
        assert _core.instructions() == "avx512"
    assert _core.has_bfloat16() or not _core.has_amx()


def test_who_asks_for_it_is_told_where_it_does_nothing(monkeypatch):
    monkeypatch.setattr(sac_update, "why_not_bfloat16", lambda: "the processor has none")
    with pytest.warns(UserWarning, match="R20: products stay float32: the processor has none"):
        trainer(["R9", "R20"]).learn(1)
    with pytest.warns(UserWarning, match="R20: products stay float32: updates run in torch"):
        trainer(["R20"]).learn(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer(["R9"]).learn(1)
