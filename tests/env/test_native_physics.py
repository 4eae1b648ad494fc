"""The native environments are Gymnasium's: the same start, the same step, the same episodes."""

import functools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rlox import VecEnv, _core

ENV_IDS = sorted(_core.builtin_envs())
# One unit in the last place of a float32, relative; and next to zero.
FLOAT32 = {"rtol": 1.2e-7, "atol": 1e-12}
LIMITS = {env_id: gym.spec(env_id).max_episode_steps for env_id in ENV_IDS}


def gymnasium_env(env_id: str, n_envs: int) -> SyncVectorEnv[Any, Any]:
    return SyncVectorEnv(
        [lambda: gym.make(env_id)] * n_envs, autoreset_mode=AutoresetMode.SAME_STEP
    )


@functools.cache
def original(env_id: str) -> Any:
    """Gymnasium's environment, whose episodes the caller begins."""
    return gym.make(env_id).unwrapped


def one_step(env_id: str, state: list[float], action: NDArray[Any]) -> tuple[Any, ...]:
    """The step of both libraries from `state`: next observations, rewards, terminations."""
    theirs = original(env_id)
    theirs.reset(seed=0)
    theirs.state = np.array(state)
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


@settings(max_examples=200)
@given(
    st.tuples(
        st.floats(-math.pi, math.pi),
        st.floats(-math.pi, math.pi),
        st.floats(-4 * math.pi, 4 * math.pi),
        st.floats(-9 * math.pi, 9 * math.pi),
    ),
    st.integers(0, 2),
)
def test_acrobot_steps_as_gymnasiums_from_any_state(state: tuple[float, ...], action: int) -> None:
    obs, rewards, ends = one_step("Acrobot-v1", list(state), np.int64(action))
    # cos and sin next to zero cannot be better than the last places of an angle.
    np.testing.assert_allclose(*obs, rtol=1.2e-7, atol=1e-8)
    assert rewards[0] == rewards[1]
    assert ends[0] == ends[1]


positions, velocities = st.floats(-1.2, 0.6), st.floats(-0.07, 0.07)


@settings(max_examples=200)
@given(positions, velocities, st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=5))
def test_mountain_car_continuous_steps_as_gymnasiums_to_the_bit(
    position: float, velocity: float, throttles: list[float]
) -> None:
    """It goes on in float32 after the first step, and in float64 where a throttle is beyond 1."""
    theirs = original("MountainCarContinuous-v0")
    theirs.reset(seed=0)
    theirs.state = np.array([position, velocity])
    ours = _core.VecEnv("MountainCarContinuous-v0", 1, 0)
    ours.reset()
    ours.set_state(0, np.array([position, velocity]))
    for throttle in throttles:
        action = np.array([throttle], np.float32)
        expected, reward, end, _, _ = theirs.step(action)
        obs, rewards, terminations, _, _ = ours.step(action[None])
        assert rewards[0] == reward
        assert terminations[0] == end
        if end:
            break
        np.testing.assert_array_equal(obs[0], expected)
        np.testing.assert_array_equal(ours.state(0)[0], theirs.state)


@settings(max_examples=200)
@given(st.tuples(positions, velocities), st.integers(0, 2))
def test_mountain_car_steps_as_gymnasiums_from_any_state(
    state: tuple[float, float], action: int
) -> None:
    obs, rewards, ends = one_step("MountainCar-v0", list(state), np.int64(action))
    np.testing.assert_allclose(*obs, **FLOAT32)
    assert rewards[0] == rewards[1]
    assert ends[0] == ends[1]


def assert_same_start(ours: VecEnv, obs: NDArray[Any], theirs: list[Any]) -> None:
    """States to the bit, and observations: NumPy's cosine of a float32, which Acrobot's first
    observation is, is good to two units in the last place."""
    core = ours.backend.core  # type: ignore[attr-defined]
    for i, (env, first) in enumerate(theirs):
        np.testing.assert_array_equal(core.state(i)[0], np.asarray(env.unwrapped.state))
        if core.env_id == "Acrobot-v1":
            np.testing.assert_allclose(obs[i], first, rtol=2.4e-7)
        else:
            np.testing.assert_array_equal(obs[i], first)


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_whole_episodes_are_gymnasiums(env_id: str) -> None:
    n_envs, steps, limit = 4, 1200, LIMITS[env_id]
    theirs, ours = gymnasium_env(env_id, n_envs), VecEnv(env_id, n_envs)
    core = ours.backend.core  # type: ignore[attr-defined]
    obs, expected_obs = ours.reset(seed=5)[0], theirs.reset(seed=5)[0]
    assert_same_start(ours, obs, list(zip(theirs.envs, expected_obs, strict=True)))
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
            for i in np.flatnonzero(mask):
                state = np.asarray(theirs.envs[i].unwrapped.state)
                np.testing.assert_array_equal(core.state(i)[0], state)
            ended += mask.sum()
        if env_id == "Acrobot-v1":  # which is chaotic: a last place would become another trajectory
            for i, env in enumerate(theirs.envs):
                core.set_state(i, np.asarray(env.unwrapped.state, float), core.state(i)[1])
    assert ended >= n_envs * (steps // limit)


CARS = [env_id for env_id in ENV_IDS if env_id.startswith("MountainCar")]


@pytest.mark.parametrize("env_id", CARS)
def test_the_goal_ends_an_episode_and_is_paid_as_in_gymnasium(env_id: str) -> None:
    """Reached by driving where the car rolls to."""
    theirs, ours = gym.make(env_id), VecEnv(env_id, 1)
    theirs.reset(seed=1)
    obs, infos = ours.reset(seed=1)
    while not infos:
        way = np.where(obs[:, 1] < 0, -1, 1)
        action = way + 1 if isinstance(theirs.action_space, gym.spaces.Discrete) else way[:, None]
        action = action.astype(theirs.action_space.dtype)
        last, reward, ended, cut, _ = theirs.step(action[0])
        obs, rewards, terminations, truncations, infos = ours.step(action)
        assert (rewards[0], terminations[0], truncations[0]) == (reward, ended, cut)
    assert terminations[0]
    np.testing.assert_allclose(infos["final_obs"][0], last, **FLOAT32)


@settings(max_examples=50)
@given(st.sampled_from(ENV_IDS), st.integers(0, 2**100))
def test_a_seed_means_what_it_means_in_gymnasium(env_id: str, seed: int) -> None:
    ours = VecEnv(env_id, 3)
    theirs = [gym.make(env_id) for _ in range(3)]
    obs, _ = ours.reset(seed=seed)
    starts = [(env, env.reset(seed=seed + i)[0]) for i, env in enumerate(theirs)]
    assert_same_start(ours, obs, starts)
    again, _ = ours.reset()
    assert_same_start(ours, again, [(env, env.reset()[0]) for env in theirs])


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {"low": -0.2, "high": 0.1}),
        ("CartPole-v1", {"high": 0.3}),
        ("Pendulum-v1", {"x_init": 0.5, "y_init": 2}),
        ("Pendulum-v1", {"y_init": 0.25}),
        ("CartPole-v1", {"something": "else"}),
        ("Acrobot-v1", {"low": -3, "high": 0.5}),
        ("MountainCarContinuous-v0", {"low": -1.1, "high": "0.2"}),
        ("MountainCarContinuous-v0", {"low": -0.5}),
        ("MountainCar-v0", {"low": -0.9, "high": 0.1}),
    ],
)
def test_reset_options_are_gymnasiums(env_id: str, options: dict[str, Any]) -> None:
    theirs, ours = gymnasium_env(env_id, 2), VecEnv(env_id, 2)
    for seed in (3, None):
        expected, _ = theirs.reset(seed=seed, options=dict(options))
        obs, _ = ours.reset(seed=seed, options=options)
        assert_same_start(ours, obs, list(zip(theirs.envs, expected, strict=True)))


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_bounds_that_are_none_are_refused_as_in_gymnasium(env_id: str) -> None:
    ours, theirs = VecEnv(env_id, 1), gym.make(env_id)
    options = {"low": 1, "high": 0, "x_init": "far"}
    for env in (ours, theirs):
        with pytest.raises(ValueError, match=r"bounds: are 1 and 0|\(1\.0\) must be lower|far"):
            env.reset(options=options)


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


@pytest.mark.parametrize(("env_id", "limit"), LIMITS.items())
def test_the_time_limit_is_the_registrys(env_id: str, limit: int) -> None:
    env = VecEnv(env_id, 1, seed=0)
    env.reset()
    actions = np.zeros_like(env.action_space.sample())
    core = env.backend.core  # type: ignore[attr-defined]
    state, _ = core.state(0)
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
