"""Environments that Gymnasium steps: from ids, callables and instances; their time is a phase of
its own."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import gymnasium as gym
import in_python
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rlox import VecEnv
from rlox.env.gymnasium_backend import GymnasiumBackend
from rlox.env.native_backend import NativeBackend


class Clock:
    """Remembers the names it was asked to time."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add_time(self, name: str) -> AbstractContextManager[Any]:
        self.names.append(name)
        return nullcontext()


class Bare(gym.Env[Any, Any]):
    """An environment that no registry knows."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, **kwargs: Any) -> Any:
        super().reset(seed=kwargs.get("seed"))
        return self.observation_space.low, {}

    def step(self, action: Any) -> Any:
        return self.observation_space.low, 0.5, False, False, {"action": int(action)}


def test_native_ids_run_natively_until_they_are_asked_for_more() -> None:
    assert isinstance(VecEnv("CartPole-v1", 1).backend, NativeBackend)
    paid_otherwise = VecEnv("CartPole-v1", 1, sutton_barto_reward=True)
    assert isinstance(paid_otherwise.backend, GymnasiumBackend)
    paid_otherwise.reset(seed=0)
    assert paid_otherwise.step(np.zeros(1, np.int64))[1] == [0.0]
    heavy = VecEnv("Pendulum-v1", 1, g=20.0)
    assert heavy.backend.spec is not None
    assert heavy.backend.spec.kwargs["g"] == 20.0


def test_the_adapter_is_a_sync_vector_env_with_same_step_autoreset() -> None:
    ours = VecEnv(in_python.ACROBOT, 2, seed=4)
    theirs = SyncVectorEnv(
        [lambda: gym.make("Acrobot-v1")] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    np.testing.assert_array_equal(ours.reset()[0], theirs.reset(seed=4)[0])
    theirs.action_space.seed(0)
    for _ in range(600):
        actions = theirs.action_space.sample()
        for found, expected in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_instances_and_callables_are_sources_too() -> None:
    made = [gym.make("CartPole-v1")]
    one = VecEnv(made[0], 1, seed=0)
    two = VecEnv(made[0], 2, seed=0)
    each = VecEnv([lambda: gym.make("CartPole-v1")] * 2, 2, seed=0)
    same = VecEnv(lambda: gym.make("CartPole-v1"), 2, seed=0)
    native = VecEnv("CartPole-v1", 2, seed=0).reset()[0]
    np.testing.assert_array_equal(one.reset()[0], native[:1])
    for env in (two, each, same):
        np.testing.assert_array_equal(env.reset()[0], native)


def test_an_environment_that_no_registry_knows_runs() -> None:
    env = VecEnv(Bare, 2, seed=0)
    env.reset()
    _, rewards, _, _, infos = env.step(np.array([0, 1]))
    assert rewards.tolist() == [0.5, 0.5]
    assert infos["action"].tolist() == [0, 1]
    VecEnv(Bare(), 1).reset()
    with pytest.raises(ValueError, match="pass a callable"):
        VecEnv(Bare(), 2)


def test_sources_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="expected 3 callables"):
        VecEnv([Bare, Bare], 3)
    with pytest.raises(ValueError, match="g: keyword arguments go with an id only"):
        VecEnv(Bare, 1, g=1)


def test_only_python_environments_are_timed() -> None:
    for env_id, expected in [(in_python.ACROBOT, ["python_env"] * 2), ("CartPole-v1", [])]:
        clock = Clock()
        env = VecEnv(env_id, 1, seed=0)
        assert env.timing is None
        env.timing = clock
        env.reset()
        for _ in range(2):
            env.step(np.zeros(1, np.int64))
        assert clock.names == expected


def test_rendering_goes_through_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    env = VecEnv(Bare, 2)
    monkeypatch.setattr(Bare, "render", lambda self: "picture")
    assert env.render() == ("picture", "picture")


def test_closing_closes_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Bare] = []
    monkeypatch.setattr(Bare, "close", lambda self: closed.append(self))
    env = VecEnv(Bare, 2)
    env.close()
    env.close()
    assert len(closed) == 2


class SeedAlone(gym.Env[Any, Any]):
    """Its `reset` is of before options."""

    observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
        self.seeded = seed
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.ones(1, np.float32), 0.0, True, False, {}


def test_an_environment_whose_reset_takes_no_options_is_stepped_and_refuses_them() -> None:
    env = VecEnv(SeedAlone, 2)
    env.reset(seed=7)
    assert [one.unwrapped.seeded for one in env.backend.envs.envs] == [7, 8]  # type: ignore[attr-defined]
    obs, *_ = env.step(np.zeros(2, np.int64))
    np.testing.assert_array_equal(obs, np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"options: .*takes none"):
        env.reset(options={"low": 1})


def test_a_first_reset_that_fails_leaves_the_seed_to_the_next() -> None:
    env = VecEnv(SeedAlone, 2, seed=7)
    with pytest.raises(ValueError, match="takes none"):
        env.reset(options={"low": 1})
    env.reset()
    assert [one.unwrapped.seeded for one in env.backend.envs.envs] == [7, 8]  # type: ignore[attr-defined]


class Scaled(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper whose `reset` is of before options."""

    def reset(self, seed: int | None = None) -> Any:  # type: ignore[override]
        obs, info = self.env.reset(seed=seed)
        return obs + 5, info


def test_a_wrapper_whose_reset_takes_no_options_is_not_left_out() -> None:
    obs, _ = VecEnv(lambda: Scaled(gym.make("CartPole-v1"))).reset(seed=0)
    assert (obs > 4).all()
