"""The native environments are Gymnasium's: the same start, the same step, the same episodes."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rlox import VecEnv, _core

ENV_IDS = ["CartPole-v1", "Pendulum-v1"]
# One unit in the last place of a float32, relative; and next to zero.
FLOAT32 = {"rtol": 1.2e-7, "atol": 1e-12}


def gymnasium_env(env_id: str, n_envs: int) -> SyncVectorEnv[Any, Any]:
    return SyncVectorEnv(
        [lambda: gym.make(env_id)] * n_envs, autoreset_mode=AutoresetMode.SAME_STEP
    )


def one_step(env_id: str, state: list[float], action: NDArray[Any]) -> tuple[Any, ...]:
    """The step of both libraries from `state`: next observations, rewards, terminations."""
    theirs = gym.make(env_id).unwrapped
    theirs.reset(seed=0)
    theirs.state = np.array(state)  # type: ignore[attr-defined]
    their_obs, their_reward, their_end, _, _ = theirs.step(action)
    ours = _core.VecEnv(env_id, 1, 0)
    ours.reset()
    ours.set_state(0, np.array(state))
    obs, rewards, terminations, _, infos = ours.step(np.asarray([action]))
    last = infos["final_obs"][0] if infos else obs[0]
    return (last, their_obs), (rewards[0], their_reward), (terminations[0], their_end)


reals = st.floats(-5, 5)


@settings(max_examples=200)
@given(st.tuples(st.floats(-2.5, 2.5), reals, st.floats(-0.25, 0.25), reals), st.integers(0, 1))
def test_cartpole_steps_as_gymnasiums_from_any_state(state: tuple[float, ...], action: int) -> None:
    obs, rewards, ends = one_step("CartPole-v1", list(state), np.int64(action))
    np.testing.assert_allclose(*obs, **FLOAT32)
    assert rewards[0] == rewards[1]
    assert ends[0] == ends[1]


@settings(max_examples=200)
@given(st.floats(-20, 20), st.floats(-8, 8), st.floats(-3, 3, width=32))
def test_pendulum_steps_as_gymnasiums_from_any_state(
    theta: float, speed: float, torque: float
) -> None:
    action = np.array([torque], np.float32)
    obs, rewards, _ = one_step("Pendulum-v1", [theta, speed], action)
    # cos and sin next to zero cannot be better than the last place of theta.
    np.testing.assert_allclose(*obs, rtol=1.2e-7, atol=1e-8)
    np.testing.assert_allclose(*rewards, rtol=1.2e-7, atol=1e-9)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_whole_episodes_are_gymnasiums(env_id: str) -> None:
    n_envs, steps = 4, 2000
    theirs, ours = gymnasium_env(env_id, n_envs), VecEnv(env_id, n_envs)
    np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    theirs.action_space.seed(1)
    ended = 0
    for _ in range(steps):
        actions = theirs.action_space.sample()
        obs, rewards, terminations, truncations, infos = ours.step(actions)
        expected = theirs.step(actions)
        # Sine and cosine of the two libraries may differ in the last place of a float64.
        np.testing.assert_allclose(obs, expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(rewards, expected[1], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(terminations, expected[2])
        np.testing.assert_array_equal(truncations, expected[3])
        assert infos.keys() == expected[4].keys()
        if infos:
            mask = expected[4]["_final_obs"]
            np.testing.assert_array_equal(infos["_final_obs"], mask)
            np.testing.assert_array_equal(infos["_final_info"], expected[4]["_final_info"])
            assert infos["final_info"] == expected[4]["final_info"]
            for found, last in zip(infos["final_obs"], expected[4]["final_obs"], strict=True):
                assert (found is None) == (last is None)
                if last is not None:
                    np.testing.assert_allclose(found, last, rtol=1e-5, atol=1e-6)
            # The next episode starts from the environment's own stream, to the bit.
            np.testing.assert_array_equal(obs[mask], expected[0][mask])
            ended += mask.sum()
    assert ended >= n_envs * (steps // 500)


@settings(max_examples=50)
@given(st.sampled_from(ENV_IDS), st.integers(0, 2**100))
def test_a_seed_means_what_it_means_in_gymnasium(env_id: str, seed: int) -> None:
    ours = VecEnv(env_id, 3)
    theirs = [gym.make(env_id).unwrapped for _ in range(3)]
    obs, _ = ours.reset(seed=seed)
    for i, env in enumerate(theirs):
        np.testing.assert_array_equal(obs[i], env.reset(seed=seed + i)[0])
    again, _ = ours.reset()
    for i, env in enumerate(theirs):
        np.testing.assert_array_equal(again[i], env.reset()[0])


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {"low": -0.2, "high": 0.1}),
        ("CartPole-v1", {"high": 0.3}),
        ("Pendulum-v1", {"x_init": 0.5, "y_init": 2}),
        ("Pendulum-v1", {"y_init": 0.25}),
        ("CartPole-v1", {"something": "else"}),
    ],
)
def test_reset_options_are_gymnasiums(env_id: str, options: dict[str, Any]) -> None:
    theirs, ours = gymnasium_env(env_id, 2), VecEnv(env_id, 2)
    expected, _ = theirs.reset(seed=3, options=dict(options))
    np.testing.assert_array_equal(ours.reset(seed=3, options=options)[0], expected)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_spaces_and_spec_are_gymnasiums(env_id: str) -> None:
    theirs, ours = gymnasium_env(env_id, 3), VecEnv(env_id, 3)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    assert ours.spec is not None
    assert ours.spec.id == env_id
    assert _core.VecEnv(env_id, 1, 0).env_id == env_id


@pytest.mark.parametrize(("env_id", "limit"), [("CartPole-v1", 500), ("Pendulum-v1", 200)])
def test_the_time_limit_is_the_registrys(env_id: str, limit: int) -> None:
    assert gym.spec(env_id).max_episode_steps == limit
    env = VecEnv(env_id, 1, seed=0)
    env.reset()
    state = np.zeros(4 if env_id == "CartPole-v1" else 2)
    actions = np.zeros_like(env.action_space.sample())
    core = env.backend.core  # type: ignore[attr-defined]
    core.set_state(0, state, limit - 2)
    assert not env.step(actions)[3][0]
    _, _, terminations, truncations, infos = env.step(actions)
    assert truncations[0]
    assert not terminations[0]
    assert infos["_final_obs"][0]
    assert core.state(0)[1] == 0


def test_states_and_bounds_that_lie_badly_are_refused() -> None:
    """Fields of records have neither their type's stride nor its alignment."""
    core = _core.VecEnv("CartPole-v1", 1, 0)
    records = np.zeros(4, [("a", "u1"), ("b", "f8")])
    with pytest.raises(ValueError, match="state: is not C-contiguous"):
        core.set_state(0, records["b"])
    with pytest.raises(ValueError, match=r"bounds: has shape \[4, 1\], expected \(state_dim, 2\)"):
        core.reset(bounds=np.zeros((4, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_state_that_is_no_number_is_refused(bad: float) -> None:
    core = _core.VecEnv("CartPole-v1", 1, 0)
    core.reset()
    before = core.state(0)[0]
    with pytest.raises(ValueError, match=r"state: is .* at index 2, expected finite numbers"):
        core.set_state(0, np.array([0, 0, bad, 0]))
    np.testing.assert_array_equal(core.state(0)[0], before)


def test_the_last_step_that_can_be_counted_ends_an_episode() -> None:
    core = _core.VecEnv("CartPole-v1", 1, 0)
    core.reset()
    core.set_state(0, np.zeros(4), 2**32 - 1)
    assert core.step(np.array([0]))[3].tolist() == [True]
