"""Ids are what Gymnasium takes them for: its registry decides what an environment is."""

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import WrapperSpec

import rlox
from rlox import VecEnv
from rlox.env.gymnasium_backend import GymnasiumBackend
from rlox.env.native_backend import ENV_IDS, NativeBackend


class Own(gym.Env[Any, Any]):
    """Pays 7 for anything."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(5)

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    def reset(self, **kwargs: Any) -> Any:
        super().reset(seed=kwargs.get("seed"))
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(3, np.float32), 7.0, False, False, {}


@pytest.mark.parametrize("env_id", sorted(ENV_IDS))
def test_gymnasiums_own_run_natively(env_id: str) -> None:
    assert isinstance(VecEnv(env_id, 1).backend, NativeBackend)


CHANGES: dict[str, dict[str, Any]] = {
    "entry point": {"entry_point": Own},
    "entry point by name": {"entry_point": f"{__name__}:Own"},
    "arguments": {"kwargs": {"render_mode": "rgb_array"}},
    "time limit": {"max_episode_steps": 17},
    "no time limit": {"max_episode_steps": None},
    "wrappers": {
        "additional_wrappers": (
            WrapperSpec("ClipReward", "gymnasium.wrappers:ClipReward", {"min_reward": 3.0}),
        )
    },
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("env_id", sorted(ENV_IDS))
def test_what_was_registered_anew_is_what_runs(
    env_id: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(gym.spec(env_id), **change)
    monkeypatch.setitem(gym.registry, env_id, spec)
    env = VecEnv(env_id, 2)
    assert isinstance(env.backend, GymnasiumBackend)
    theirs = gym.make(env_id)
    assert env.single_observation_space == theirs.observation_space
    assert env.single_action_space == theirs.action_space
    env.reset(seed=0)
    for _ in range(17):
        _, rewards, _, truncations, _ = env.step(env.action_space.sample())
    assert (rewards == 3.0).all() == ("additional_wrappers" in change)
    if env_id == "Pendulum-v1":  # which ends by its limit alone
        assert truncations.all() == (spec.max_episode_steps == 17)


def test_trainers_learn_in_what_was_registered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(gym.spec("CartPole-v1"), entry_point=Own, max_episode_steps=4)
    monkeypatch.setitem(gym.registry, "CartPole-v1", spec)
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=8).learn(16)
    assert model.episode_returns == [28.0] * 4
    with pytest.raises(ValueError, match=r'collector="async" .* this one runs in Python'):
        rlox.PPO("CartPole-v1", collector="async")


def test_what_is_no_longer_registered_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(gym.registry, "Pendulum-v1")
    with pytest.raises(ValueError, match="no environment is registered as 'Pendulum-v1'"):
        VecEnv("Pendulum-v1")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that registers `OfAModule-v0` and `-v3` when it is imported."""
    name = f"registers_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "import gymnasium\n"
        "for version in (0, 3):\n"
        f"    gymnasium.register(f'OfAModule-v{{version}}', '{__name__}:Own', "
        "max_episode_steps=4 + version)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(gym.registry)
    yield name
    sys.modules.pop(name, None)
    gym.registry.clear()
    gym.registry.update(before)


def test_a_module_before_a_colon_is_imported(module: str) -> None:
    env = VecEnv(f"{module}:OfAModule-v3", 2)
    assert env.spec is not None
    assert env.spec.id == "OfAModule-v3"
    env.reset(seed=0)
    assert env.step(np.zeros(2, np.int64))[1].tolist() == [7.0, 7.0]


def test_a_native_id_of_a_module_is_native(module: str) -> None:
    assert isinstance(VecEnv(f"{module}:CartPole-v1").backend, NativeBackend)


def test_without_a_version_the_latest_is_taken_and_said(module: str) -> None:
    with pytest.warns(UserWarning, match="Using the latest versioned environment `OfAModule-v3`"):
        env = VecEnv(f"{module}:OfAModule", 2)
    assert env.spec is not None
    assert env.spec.id == "OfAModule-v3"
    with pytest.warns(UserWarning, match="Using the latest versioned environment `CartPole-v1`"):
        assert isinstance(VecEnv("CartPole", 2).backend, NativeBackend)


def test_an_id_that_has_no_version_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym.envs.registration, "registry", gym.registry)
    gym.register("Versionless", Own)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert VecEnv("Versionless").spec is not None
    finally:
        gym.registry.pop("Versionless")


def test_what_was_saved_is_loaded_in_the_version_that_it_was_trained_in(
    module: str, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match="OfAModule-v3"):
        model = rlox.PPO(f"{module}:OfAModule", n_envs=2, n_steps=8).learn(16)
    model.save(tmp_path / "model.pt")
    gym.register("OfAModule-v4", Own, max_episode_steps=2)
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    assert loaded.env_id == f"{module}:OfAModule-v3"
    assert loaded.vector_env.spec is not None
    assert loaded.vector_env.spec.id == "OfAModule-v3"


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("no_such_module:Env-v0", "no_such_module.* cannot be imported"),
        ("json:Env-v0", "no environment is registered as 'Env-v0'"),
        (":CartPole-v1", "cannot be imported"),
        ("Nothing", "no environment is registered as 'Nothing'"),
        ("CartPole-v99", "did you mean CartPole-v"),
        ("", "no environment is registered as ''"),
    ],
)
def test_what_nobody_has_registered_is_refused(env_id: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"env_id: .*{message}"):
        VecEnv(env_id)
