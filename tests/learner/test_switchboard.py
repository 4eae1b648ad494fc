"""Which planned optimisations a trainer runs with."""

from pathlib import Path

import pytest
import torch

from rlox import PPO, SAC
from rlox.learner import switchboard
from rlox.learner.arguments import accelerator


def test_nothing_said_means_what_is_accepted() -> None:
    assert PPO("CartPole-v1").optimizations == switchboard.ACCEPTED


def test_ids_are_taken_in_any_case() -> None:
    assert PPO("CartPole-v1", optimizations=["r1", "R8"]).optimizations == {"R1", "R8"}
    assert SAC("Pendulum-v1", optimizations=()).optimizations == frozenset()


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(ValueError, match=r"optimizations holds P5; there are R1, R2"):
        PPO("CartPole-v1", optimizations=["p5", "r1"])


def test_a_setting_holds_where_the_argument_is_not_given() -> None:
    assert PPO("CartPole-v1", optimizations=["R11"]).n_envs == 32
    assert PPO("CartPole-v1", n_envs=2, optimizations=["R11"]).n_envs == 2
    assert PPO("CartPole-v1", optimizations=[]).n_envs == 8
    assert [SAC("Pendulum-v1", optimizations=on).n_envs for on in ([], ["R6"])] == [1, 4]
    there = accelerator() or "cpu"
    assert PPO("CartPole-v1", optimizations=["R10"]).device.type == there
    assert PPO("CartPole-v1", optimizations=["R10"], device="cpu").device.type == "cpu"


def test_what_a_setting_gave_is_saved(tmp_path: Path) -> None:
    PPO("CartPole-v1", optimizations=["R11"]).save(tmp_path / "model")
    assert PPO.load(tmp_path / "model").n_envs == 32


def test_compiling_serves_long_runs_and_those_who_ask_for_it() -> None:
    on = frozenset({"R1", "R2", "R3"})
    long = max(switchboard.COMPILED_FROM.values())
    assert switchboard.for_run(False, on, 1) == {"R1"}
    assert switchboard.for_run(False, on, long) == on
    assert switchboard.for_run(True, on, 1) == on


def test_every_choice_has_an_id_of_its_own() -> None:
    twins = [value for value in vars(switchboard).values() if isinstance(value, switchboard.Twins)]
    ids = [of.id for of in twins]
    in_the_native_path = {"R4", "R9", "R19", "R20", "R22", "R23", "R24"}
    assert sorted(ids) == sorted(set(switchboard.OPTIMIZATIONS) - in_the_native_path)
    assert all(of.of({of.id}) is of.optimized and of.of(set()) is of.baseline for of in twins)


@pytest.mark.parametrize("on", [["R1"], ["R7"], ["R8"], ["R1", "R7", "R8"]])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_ppo_learns_the_same_whatever_collects(on: list[str], env: str) -> None:
    """R7 and R8 to the bit; R1 within rounding, which 200 steps do not carry into an action."""
    made = [PPO(env, n_envs=3, n_steps=40, seed=1, optimizations=o).learn(200) for o in ([], on)]
    tolerance = 1e-5 if "R1" in on else 0
    for one, other in zip(*(model.policy.parameters() for model in made), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    assert made[0].episode_returns == pytest.approx(made[1].episode_returns, rel=1e-4)
