"""`VecEnv` as its users see it: a Gymnasium `VectorEnv`, whatever steps its environments."""

import copy
import pickle
from typing import Any

import gymnasium as gym
import in_python
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from rlox import VecEnv, _core

NATIVE = sorted(_core.builtin_envs())
# And one of the adapter's for each kind of action.
ENV_IDS = [*NATIVE, in_python.ACROBOT, in_python.CAR]


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_it_keeps_the_contract_of_a_vector_env(env_id: str) -> None:
    n_envs = 3
    env = VecEnv(env_id, n_envs, seed=0)
    assert isinstance(env, VectorEnv)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert env.num_envs == env.n_envs == n_envs
    obs, infos = env.reset(seed=1)
    assert obs in env.observation_space
    assert infos == {}
    env.action_space.seed(0)
    for _ in range(300):
        actions = env.action_space.sample()
        obs, rewards, terminations, truncations, infos = env.step(actions)
        assert obs in env.observation_space
        assert (rewards.shape, rewards.dtype) == ((n_envs,), np.float64)
        assert (terminations.shape, terminations.dtype) == ((n_envs,), np.bool_)
        assert (truncations.shape, truncations.dtype) == ((n_envs,), np.bool_)
        done = terminations | truncations
        assert ("final_obs" in infos) == bool(done.any())
        for i in range(n_envs if infos else 0):
            last = infos["final_obs"][i]
            assert infos["_final_obs"][i] == done[i] == (last is not None)
            assert last is None or last in env.single_observation_space
    env.close()
    assert env.closed


def test_last_observations_are_an_array_of_objects_as_any_other() -> None:
    env = VecEnv("CartPole-v1", 9, seed=0)
    env.reset()
    infos: dict[str, Any] = {}
    while not infos:
        *_, infos = env.step(np.zeros(9, np.int64))
    last, ended = infos["final_obs"], infos["_final_obs"]
    assert not ended.all()
    copies = [last.copy(), copy.deepcopy(last), pickle.loads(pickle.dumps(last)), last[::-1][::-1]]
    for found in [last, *copies]:
        assert [row is not None for row in found.tolist()] == ended.tolist()
        assert all(row.shape == (4,) for row in found[ended])
        assert all(row is None for row in found[~ended])
    last[0] = "written to"
    assert last[0] == "written to"


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_the_same_seed_gives_the_same_episodes(env_id: str) -> None:
    def episodes(seed_at: str) -> list[Any]:
        env = VecEnv(env_id, 2, seed=9 if seed_at == "init" else None)
        env.action_space.seed(0)
        trace = [env.reset(seed=9 if seed_at == "reset" else None)[0]]
        for _ in range(250):
            trace.extend(env.step(env.action_space.sample())[:4])
        return trace

    at_init, at_reset = episodes("init"), episodes("reset")
    assert all(map(np.array_equal, at_init, at_reset))


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_without_a_seed_environments_differ(env_id: str) -> None:
    first, second = VecEnv(env_id, 2), VecEnv(env_id, 2)
    obs, again = first.reset()[0], second.reset()[0]
    assert not np.array_equal(obs, again)
    assert not np.array_equal(obs[0], obs[1])


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_seeds_may_be_given_one_by_one(env_id: str) -> None:
    env = VecEnv(env_id, 2)
    obs, _ = env.reset(seed=[7, 3])
    np.testing.assert_array_equal(obs[1], VecEnv(env_id, 1, seed=3).reset()[0][0])
    np.testing.assert_array_equal(env.reset(seed=[7, None])[0][0], obs[0])


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_reset_mask_leaves_the_others_alone(env_id: str) -> None:
    env = VecEnv(env_id, 2, seed=0)
    env.reset()
    before = env.step(env.action_space.sample())[0]
    options = {"reset_mask": np.array([False, True])}
    after, _ = env.reset(options=options)
    np.testing.assert_array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])
    assert "reset_mask" in options, "the caller's dictionary stays as it was"


@pytest.mark.parametrize("mask", [[True, False], np.ones(2), np.ones(3, bool), np.zeros(2, bool)])
def test_a_bad_reset_mask_is_refused(mask: Any) -> None:
    env = VecEnv("CartPole-v1", 2, seed=0)
    env.reset()
    with pytest.raises((TypeError, ValueError), match="reset_mask"):
        env.reset(options={"reset_mask": mask})


def test_copies_are_independent_and_the_reused_arrays_are_not() -> None:
    actions = np.zeros(2, np.int64)
    env = VecEnv("CartPole-v1", 2, seed=0)
    first, _ = env.reset()
    kept = first.copy()
    arrays = env.step(actions)[:4]
    env.step(actions)
    np.testing.assert_array_equal(first, kept)
    assert not any(map(np.shares_memory, arrays, env.step(actions)[:4]))

    env = VecEnv("CartPole-v1", 2, seed=0, copy=False)
    first, _ = env.reset()
    np.testing.assert_array_equal(first, kept)
    arrays = env.step(actions)[:4]
    assert arrays[0] is first
    assert all(a is b for a, b in zip(arrays, env.step(actions)[:4], strict=True))


def test_copy_does_not_change_the_numbers() -> None:
    fresh, reused = (VecEnv("CartPole-v1", 4, seed=2, copy=copy) for copy in (True, False))
    np.testing.assert_array_equal(fresh.reset()[0], reused.reset()[0])
    fresh.action_space.seed(0)
    for _ in range(200):
        actions = fresh.action_space.sample()
        for a, b in zip(fresh.step(actions)[:4], reused.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_last_observations_are_new_also_where_arrays_are_reused() -> None:
    env = VecEnv("CartPole-v1", 3, seed=0, copy=False)
    env.reset()
    kept = []
    for _ in range(60):
        infos = env.step(np.ones(3, np.int64))[4]
        if infos:
            rows = np.flatnonzero(infos["_final_obs"])
            last = [infos["final_obs"][row] for row in rows]
            kept.append((last, [obs.copy() for obs in last]))
    assert len(kept) > 2
    for last, then in kept:
        np.testing.assert_array_equal(last, then)


def test_actions_may_lie_in_an_array_that_is_written_to() -> None:
    """The cosine as the torque, taken from the reused observations."""
    reused, fresh = (VecEnv("Pendulum-v1", 1, seed=0, copy=copy) for copy in (False, True))
    (obs, _), (other, _) = reused.reset(), fresh.reset()
    for _ in range(50):
        obs, other = reused.step(obs[:, :1])[0], fresh.step(other[:, :1].copy())[0]
        np.testing.assert_array_equal(obs, other)


def test_an_output_array_that_cannot_be_written_is_named() -> None:
    core = _core.VecEnv("CartPole-v1", 2, 0)
    core.reset()
    out = core.step(np.zeros(2, np.int64))[:4]
    out[1].flags.writeable = False
    with pytest.raises(ValueError, match=r"out\[1\]: is read-only"):
        core.step(np.zeros(2, np.int64), out)


@settings(max_examples=25)
@given(st.sampled_from(NATIVE), st.integers(1, 20), st.integers(0, 2**64), st.data())
def test_an_environment_moves_alike_among_any_number(
    env_id: str, n_envs: int, seed: int, data: st.DataObject
) -> None:
    """To the bit, wherever it stands among those that are moved by one instruction."""
    together, place = VecEnv(env_id, n_envs, seed=seed), data.draw(st.integers(0, n_envs - 1))
    alone = VecEnv(env_id, 1, seed=seed + place)
    np.testing.assert_array_equal(together.reset()[0][place], alone.reset()[0][0])
    together.action_space.seed(0)
    for _ in range(40):
        actions = together.action_space.sample()
        found, expected = together.step(actions), alone.step(actions[place : place + 1])
        for column, single in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(column[place], single[0])


def test_a_large_batch_is_stepped_to_the_numbers_of_its_halves() -> None:
    n_envs = 700
    large = VecEnv("Pendulum-v1", n_envs, seed=0)
    halves = [VecEnv("Pendulum-v1", n_envs // 2, seed=seed) for seed in (0, n_envs // 2)]
    large.reset()
    for half in halves:
        half.reset()
    large.action_space.seed(0)
    for _ in range(205):
        actions = large.action_space.sample()
        found = large.step(actions)[:4]
        parts = [
            half.step(part)[:4] for half, part in zip(halves, np.split(actions, 2), strict=True)
        ]
        for whole, *pieces in zip(found, *parts, strict=True):
            np.testing.assert_array_equal(whole, np.concatenate(pieces))


def test_gymnasiums_vector_wrappers_count_episodes() -> None:
    env = RecordEpisodeStatistics(VecEnv("CartPole-v1", 2, seed=0))
    env.reset(seed=0)
    lengths: list[float] = []
    for _ in range(100):
        infos = env.step(np.ones(2, np.int64))[4]
        if "episode" in infos:
            lengths.extend(infos["episode"]["l"][infos["_episode"]])
    assert len(lengths) > 10
    assert max(lengths) < 15, "a pole pushed to one side falls within some ten steps"


BAD_ACTIONS = [
    ("CartPole-v1", [0, 1], TypeError, "is a list"),
    ("CartPole-v1", np.zeros(2, np.float32), TypeError, "has dtype float32, expected int64"),
    ("CartPole-v1", np.zeros(2, bool), TypeError, "has dtype bool"),
    ("CartPole-v1", np.zeros(3, np.int64), ValueError, r"has shape \(3,\), expected \(2,\)"),
    ("CartPole-v1", np.zeros((2, 1), np.int64), ValueError, r"has shape \(2, 1\)"),
    ("CartPole-v1", np.array([0, 2]), ValueError, r"actions\[1\] is 2, expected 0 to 1"),
    ("CartPole-v1", np.array([-1, 0]), ValueError, r"actions\[0\] is -1"),
    ("CartPole-v1", np.array([2**64 - 1, 0], np.uint64), (TypeError, ValueError), ""),
    ("CartPole-v1", np.zeros(4, np.int64)[::2], ValueError, "not C-contiguous"),
    ("Pendulum-v1", np.zeros((2, 1)), TypeError, "has dtype float64, expected float32"),
    ("Pendulum-v1", np.zeros(2, np.float32), ValueError, r"has shape \(2,\), expected \(2, 1\)"),
    ("Pendulum-v1", np.array([[0], [np.nan]], np.float32), ValueError, "environment 1 is NaN"),
    ("Pendulum-v1", np.array([[np.inf], [0]], np.float32), ValueError, "environment 0 is inf"),
    ("Pendulum-v1", np.zeros((4, 1), np.float32)[::2], ValueError, "not C-contiguous"),
    (in_python.CAR, np.zeros(2, np.float32), ValueError, "has shape"),
    (in_python.CAR, np.full((2, 1), np.nan, np.float32), ValueError, "finite"),
    (in_python.ACROBOT, [0, 1], TypeError, "is a list"),
    (in_python.ACROBOT, np.zeros(2), TypeError, "expected integers"),
    (in_python.ACROBOT, np.array([0, 3]), ValueError, "within 0 to 2"),
    (in_python.ACROBOT, np.array([-1, 0]), ValueError, "within 0 to 2"),
]


@pytest.mark.parametrize(("env_id", "actions", "error", "message"), BAD_ACTIONS)
def test_bad_actions_are_named_and_move_nothing(
    env_id: str, actions: Any, error: type[Exception], message: str
) -> None:
    env, twin = VecEnv(env_id, 2, seed=0), VecEnv(env_id, 2, seed=0)
    env.reset()
    twin.reset()
    with pytest.raises(error, match=f"actions.*{message}"):
        env.step(actions)
    good = env.action_space.sample()
    np.testing.assert_array_equal(env.step(good)[0], twin.step(good)[0])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.int64])
def test_integers_of_any_width_are_actions(dtype: type[np.integer[Any]]) -> None:
    env, twin = VecEnv("CartPole-v1", 2, seed=0), VecEnv("CartPole-v1", 2, seed=0)
    env.reset()
    twin.reset()
    found = env.step(np.array([1, 0], dtype))[0]
    np.testing.assert_array_equal(found, twin.step(np.array([1, 0]))[0])


@pytest.mark.parametrize("n_envs", [10**12, 2**60, 2**63])
def test_more_environments_than_memory_holds_are_refused(n_envs: int) -> None:
    with pytest.raises(ValueError, match=f"n_envs: is {n_envs}, .* do not fit into memory"):
        _core.VecEnv("CartPole-v1", n_envs, 0)


def test_a_mask_that_is_strided_is_named() -> None:
    env = _core.VecEnv("CartPole-v1", 2, 0)
    with pytest.raises(ValueError, match=r"mask: is not C-contiguous; pass mask\.copy\(\)"):
        env.reset(mask=np.ones(4, bool)[::2])


def test_stepping_before_the_first_reset_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        VecEnv("CartPole-v1", 1).step(np.zeros(1, np.int64))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"env_id": "CartPole-v7"}, ValueError, "did you mean CartPole-v"),
        ({"env_id": "CartPol-v1"}, ValueError, "did you mean CartPole-v1"),
        ({"env_id": "Nothing like it"}, ValueError, "no environment is registered as"),
        ({"env_id": "CartPole-v1", "n_envs": 0}, ValueError, "n_envs: is 0"),
        (
            {"env_id": "CartPole-v1", "n_envs": 1.5},
            TypeError,
            "n_envs: is 1.5, expected an integer",
        ),
        ({"env_id": "CartPole-v1", "seed": -1}, ValueError, "seed: is -1"),
        ({"env_id": "CartPole-v1", "seed": "no"}, TypeError, "seed: is 'no', expected an integer"),
    ],
)
def test_bad_arguments_are_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        VecEnv(**arguments)


@pytest.mark.parametrize("seed", [-1, 1.5, [1], [1, 2, 3]])
def test_bad_reset_seeds_are_refused(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seed"):
        VecEnv("CartPole-v1", 2).reset(seed=seed)


def test_crossings_count_every_step() -> None:
    env = VecEnv("CartPole-v1", 8, seed=0)
    env.reset()
    _core.count_crossings(True)
    try:
        _core.take_crossings()
        for _ in range(5):
            env.step(np.zeros(8, np.int64))
        calls, transferred, nanoseconds = _core.take_crossings()["VecEnv.step"]
    finally:
        _core.count_crossings(False)
    # Observations 16, reward 8, two flags, action 8 bytes an environment.
    assert (calls, transferred) == (5, 5 * 8 * (16 + 8 + 2 + 8))
    assert nanoseconds > 0


def test_make_vec_of_gymnasium_and_ours_agree() -> None:
    theirs = gym.make_vec("CartPole-v1", num_envs=2)
    ours = VecEnv("CartPole-v1", 2)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space


@pytest.mark.parametrize("env_id", ["CartPole-v1", in_python.ACROBOT])
def test_nothing_moves_after_close(env_id: str) -> None:
    """Natively and in Gymnasium; to close twice is fine."""
    env = VecEnv(env_id, 2, seed=0)
    env.reset()
    env.close()
    with pytest.raises(RuntimeError, match=r"step after close\(\); make a new VecEnv"):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(RuntimeError, match=r"reset after close\(\); make a new VecEnv"):
        env.reset()
    with pytest.raises(RuntimeError, match=r"render after close\(\); make a new VecEnv"):
        env.render()
    env.close()
    assert env.single_action_space.n in (2, 3) and env.n_envs == 2
