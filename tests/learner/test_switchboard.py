"""Which planned optimisations a trainer runs with."""

import pytest

from rlox import PPO, SAC
from rlox.learner import switchboard


def test_nothing_said_means_what_is_accepted() -> None:
    assert PPO("CartPole-v1").optimizations == switchboard.ACCEPTED


def test_ids_are_taken_in_any_case() -> None:
    assert PPO("CartPole-v1", optimizations=["r1", "R8"]).optimizations == {"R1", "R8"}
    assert SAC("Pendulum-v1", optimizations=()).optimizations == frozenset()


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(ValueError, match=r"optimizations holds P5; there are R1, R2"):
        PPO("CartPole-v1", optimizations=["p5", "r1"])
