"""What trainers are told is a number of its kind and range, or an error that names it."""

from fractions import Fraction

import numpy as np
import pytest
from trainers import ppo, sac

from rlox import VecEnv
from rlox.learner.callbacks import BaseCallback

NAN, INF = float("nan"), float("inf")
INTEGERS = {
    ppo: ["n_envs", "seed", "n_steps", "batch_size", "n_epochs", "threads"],
    sac: [
        *("n_envs", "seed", "buffer_size", "learning_starts", "batch_size", "gradient_steps"),
        "threads",
    ],
}
NUMBERS = {
    ppo: [
        *("learning_rate", "gamma", "gae_lambda", "clip_range", "ent_coef", "vf_coef"),
        "max_grad_norm",
    ],
    sac: ["learning_rate", "tau", "gamma", "ent_coef", "target_entropy"],
}
FLAGS = {ppo: ["normalize_advantage"], sac: ["prioritized"]}


def each(arguments):
    cases = [(make, name) for make, names in arguments.items() for name in names]
    ids = [f"{make.__name__}-{name}" for make, name in cases]
    return pytest.mark.parametrize(("make", "name"), cases, ids=ids)


@each(INTEGERS)
@pytest.mark.parametrize("value", [2.5, 64.0, np.float64(64), NAN, INF, True, np.bool_(True), "64"])
def test_what_counts_is_an_integer(make, name, value):
    with pytest.raises(TypeError, match=rf"{name}: is .*expected an integer"):
        make(**{name: value})


@each(INTEGERS)
def test_what_counts_has_its_range(make, name):
    with pytest.raises(ValueError, match=f"{name} must be .*at least [01], got -2"):
        make(**{name: -2})


@each(NUMBERS)
@pytest.mark.parametrize("value", [True, np.bool_(False), [0.5], 1j, lambda progress: "0.1"])
def test_what_measures_is_a_number(make, name, value):
    with pytest.raises((TypeError, ValueError), match=f"{name}.* (number|auto)"):
        make(**{name: value})


@each(NUMBERS)
def test_nothing_measures_not_a_number(make, name):
    for value in (NAN, np.float32(NAN)):
        with pytest.raises(ValueError, match=f"{name}.* got .*nan"):
            make(**{name: value})


@each(NUMBERS)
def test_what_measures_is_finite_but_for_what_a_limit_may_be(make, name):
    if name in ("clip_range", "max_grad_norm"):  # none at all
        make(**{name: INF}).learn(128)
        return
    for value in (INF, -INF):
        with pytest.raises(ValueError, match=f"{name}.* got .*inf"):
            make(**{name: value})


@pytest.mark.parametrize("name", ["learning_rate", "clip_range", "max_grad_norm", "vf_coef"])
def test_what_measures_is_not_below_zero(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 0.*, got -0.1"):
        ppo(**{name: -0.1})


@pytest.mark.parametrize("value", ["auto_nan", "auto_inf", "nan"])
def test_a_temperature_starts_at_a_number(value):
    with pytest.raises(ValueError, match="ent_coef must be"):
        sac(ent_coef=value)


@each(FLAGS)
@pytest.mark.parametrize("value", ["False", 0, None, NAN])
def test_flags_are_true_or_false(make, name, value):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got"):
        make(**{name: value})


def test_numbers_of_any_kind_will_do():
    model = ppo(n_steps=np.int16(32), learning_rate=Fraction(1, 1000), gamma=np.float16(0.5))
    model.learn(np.int64(128))
    assert (type(model.n_steps), type(model.gamma)) == (int, float)
    assert type(sac(batch_size=np.uint8(32), tau=np.float32(0.5)).batch_size) is int


@pytest.mark.parametrize("value", [NAN, INF, True, "1000", 100.5, None])
def test_training_has_an_end(value):
    class Stops(BaseCallback):  # whatever else would go on for ever
        def on_step(self):
            return self.model.num_timesteps < 10_000

    with pytest.raises(TypeError, match=r"total_timesteps: is .*, expected an integer"):
        ppo().learn(value, Stops())


def test_a_million_may_be_written_as_1e6():
    model = ppo().learn(1e3)
    assert model.num_timesteps == 1024
    assert type(model._end) is int


@pytest.mark.parametrize("arguments", [{"n_envs": True}, {"n_envs": 2.0}, {"seed": False}])
def test_environments_count_alike(arguments):
    with pytest.raises(TypeError, match=r": is .*, expected an integer"):
        VecEnv("CartPole-v1", **arguments)
    with pytest.raises(TypeError, match="seed: is True"):
        VecEnv("CartPole-v1", 2).reset(seed=True)
