"""`AsyncCollector`: rollouts of a thread are those of a loop, and it always lets go."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rlox import _core, compute_gae_batched

N_ENVS, N_STEPS, GAMMA, LAMBDA = 4, 64, 0.97, 0.9
Array = NDArray[Any]


def act(obs: Array) -> tuple[Array, Array, Array]:
    """Push under the pole."""
    actions = (obs[:, 2] > 0).astype(np.int64)
    return actions, np.full(len(obs), -0.25, np.float32), value(obs)


def value(obs: Array) -> Array:
    return (1 + obs @ np.array([1, 2, 3, 4], np.float32)).astype(np.float32)


def cartpoles(seed: int = 0) -> _core.VecEnv:
    return _core.VecEnv("CartPole-v1", N_ENVS, seed)


def collector(act: Any = act, value: Any = value, **settings: Any) -> _core.AsyncCollector:
    settings = {"n_steps": N_STEPS, "gamma": GAMMA, "gae_lambda": LAMBDA} | settings
    return _core.AsyncCollector(settings.pop("env", None) or cartpoles(), act, value, **settings)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before


def test_a_rollout_is_what_a_synchronous_loop_gives() -> None:
    env = cartpoles()
    # Late in their episodes, so that some are truncated and not terminated.
    states = [(i, np.array([0.0, 0.1 * i, 0.01, 0.0]), 500 - 15 * (i + 1)) for i in range(N_ENVS)]
    twin = cartpoles()
    for one in (env, twin):
        one.reset()
        for state in states:
            one.set_state(*state)
    obs = np.array([state for _, state, _ in states], np.float32)

    columns: dict[str, list[Array]] = {name: [] for name in ("obs", "actions", "rewards")}
    values, bootstrapped, dones = [], [], []
    for _ in range(N_STEPS):
        actions, _, step_values = act(obs)
        columns["obs"].append(obs)
        next_obs, rewards, terminations, truncations, infos = twin.step(actions)
        columns["actions"].append(actions)
        columns["rewards"].append(rewards)
        values.append(step_values.astype(np.float64))
        worth = rewards.copy()
        for i in np.flatnonzero(truncations & ~terminations):
            last = infos["final_obs"][i]
            worth[i] += GAMMA * value(last[None])[0].astype(np.float64)
        bootstrapped.append(worth)
        dones.append((terminations | truncations).astype(np.float64))
        obs = next_obs
    advantages, returns = compute_gae_batched(
        np.array(bootstrapped),
        np.array(values),
        np.array(dones),
        value(obs).astype(np.float64),
        GAMMA,
        LAMBDA,
        layout="step_major",
    )

    with collector(env=env) as background:
        background.start()
        rollout = background.take()
    for name, column in columns.items():
        np.testing.assert_array_equal(rollout[name], np.array(column))
    assert (rollout["truncated"] & ~rollout["terminated"]).any(), "the test wants a time limit"
    assert rollout["terminated"].any(), "and a fallen pole"
    np.testing.assert_allclose(rollout["advantages"], advantages, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(rollout["returns"], returns, rtol=1e-6, atol=1e-10)


def test_arrays_have_the_promised_shapes_and_types() -> None:
    with collector() as background:
        background.start()
        rollout = background.take()
    found = {name: (array.shape, str(array.dtype)) for name, array in rollout.items()}
    steps = (N_STEPS, N_ENVS)
    assert found == {
        "obs": ((*steps, 4), "float32"),
        "actions": (steps, "int64"),
        "log_probs": (steps, "float32"),
        "values": (steps, "float64"),
        "rewards": (steps, "float64"),
        "terminated": (steps, "bool"),
        "truncated": (steps, "bool"),
        "advantages": (steps, "float64"),
        "returns": (steps, "float64"),
    }


def test_continuous_actions_are_handed_over_as_the_policy_gave_them() -> None:
    def torque(obs: Array) -> tuple[Array, Array, Array]:
        return 3 * obs[:, :1], np.zeros(len(obs), np.float32), obs[:, 2].copy()

    pendulums = _core.VecEnv("Pendulum-v1", N_ENVS, 0)
    with collector(torque, lambda obs: obs[:, 2].copy(), env=pendulums) as background:
        background.start()
        rollout = background.take()
    assert rollout["actions"].shape == (N_STEPS, N_ENVS, 1)
    np.testing.assert_array_equal(rollout["actions"], 3 * rollout["obs"][..., :1])


def test_a_call_of_the_policy_counts_the_bytes_of_its_data() -> None:
    def push(obs: Array) -> tuple[Array, Array, Array]:
        n = len(obs)
        return np.zeros((n, 1), np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32)

    env = _core.VecEnv("Pendulum-v1", N_ENVS, 0)
    _core.take_crossings()
    _core.count_crossings(True)
    try:
        with collector(push, lambda obs: obs[:, 0].copy(), env=env, n_steps=3) as background:
            background.start()
            background.take()
    finally:
        _core.count_crossings(False)
    # Three observations; action, log-probability and value.
    assert _core.take_crossings()["AsyncCollector.act"][:2] == (3, 3 * N_ENVS * 4 * (3 + 3))


def test_rollouts_follow_one_another_whatever_the_learner_does_meanwhile() -> None:
    def rollouts(pause: float, n_steps: int, count: int) -> dict[str, Array]:
        with collector(n_steps=n_steps) as background:
            taken = []
            for _ in range(count):
                background.start()
                time.sleep(pause)
                taken.append(background.take())
        return {name: np.concatenate([one[name] for one in taken]) for name in taken[0]}

    hasty, leisurely = rollouts(0, 40, 3), rollouts(0.02, 40, 3)
    for name in hasty:
        np.testing.assert_array_equal(hasty[name], leisurely[name])
    in_one = rollouts(0, 120, 1)
    for name in ("obs", "actions", "rewards", "terminated"):
        np.testing.assert_array_equal(hasty[name], in_one[name])


def test_nothing_is_collected_before_start() -> None:
    calls: list[int] = []

    def counting(obs: Array) -> tuple[Array, Array, Array]:
        calls.append(1)
        return act(obs)

    with collector(counting) as background:
        background.start()
        background.take()
        time.sleep(0.05)
        assert len(calls) == N_STEPS


def test_the_policy_runs_in_one_thread_that_python_knows() -> None:
    threads: set[int] = set()
    local = threading.local()

    def remembering(obs: Array) -> tuple[Array, Array, Array]:
        threads.add(threading.get_ident())
        local.calls = getattr(local, "calls", 0) + 1
        counts.append(local.calls)
        return act(obs)

    counts: list[int] = []
    with collector(remembering) as background:
        for _ in range(2):
            background.start()
            background.take()
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert counts == list(range(1, 2 * N_STEPS + 1)), "thread-locals last as long as the thread"


class Hopeless(Exception):
    pass


def test_an_exception_of_the_policy_comes_out_of_take_and_work_goes_on() -> None:
    attempts = iter([Hopeless("at a loss")])

    def moody(obs: Array) -> tuple[Array, Array, Array]:
        for attempt in attempts:
            raise attempt
        return act(obs)

    with collector(moody) as background:
        background.start()
        with pytest.raises(Hopeless, match="at a loss"):
            background.take()
        background.start()
        assert background.take()["rewards"].shape == (N_STEPS, N_ENVS)


def test_an_exception_of_the_value_function_comes_out_of_take() -> None:
    def hopeless(obs: Array) -> Array:
        raise Hopeless

    with collector(value=hopeless) as background:
        background.start()
        with pytest.raises(Hopeless):
            background.take()


def decision(actions: Any = None, log_probs: Any = None, values: Any = None) -> Any:
    def act(obs: Array) -> Any:
        n = len(obs)
        return (
            np.zeros(n, np.int64) if actions is None else actions,
            np.zeros(n, np.float32) if log_probs is None else log_probs,
            np.zeros(n, np.float32) if values is None else values,
        )

    return act


@pytest.mark.parametrize(
    ("bad_act", "error", "message"),
    [
        (lambda obs: None, TypeError, "tuple"),
        (lambda obs: act(obs)[:2], (TypeError, ValueError), "tuple"),
        (decision(actions=np.full(N_ENVS, 5)), ValueError, r"actions\[0\] is 5"),
        (decision(actions=[0] * N_ENVS), TypeError, "actions: is a list"),
        (decision(log_probs=np.zeros(N_ENVS)), TypeError, "log_probs: has dtype float64"),
        (decision(values=np.zeros(1, np.float32)), ValueError, "values: has shape"),
        (decision(values=np.full(N_ENVS, np.nan, np.float32)), ValueError, "values: is NaN"),
    ],
)
def test_a_policy_that_answers_nonsense_is_told_so(
    bad_act: Any, error: type[Exception], message: str
) -> None:
    with collector(bad_act) as background:
        background.start()
        with pytest.raises(error, match=message):
            background.take()


def test_calls_out_of_turn_are_errors() -> None:
    background = collector()
    with pytest.raises(RuntimeError, match="start"):
        background.take()
    background.start()
    with pytest.raises(RuntimeError, match="take"):
        background.start()
    background.close()
    background.close()
    for call in (background.start, background.take):
        with pytest.raises(RuntimeError, match="closed"):
            call()


@pytest.mark.parametrize("settings", [{"n_steps": 0}, {"gamma": 1.5}, {"gae_lambda": float("nan")}])
def test_bad_settings_are_named_and_leave_the_environments_alone(
    settings: dict[str, float],
) -> None:
    env = cartpoles()
    with pytest.raises(ValueError, match=next(iter(settings))):
        collector(env=env, **settings)
    env.reset()


def test_a_rollout_that_no_memory_holds_is_refused() -> None:
    env = _core.VecEnv("CartPole-v1", 2**17, 0)
    with pytest.raises(ValueError, match=r"n_steps: is 4294967295, .* do not fit into memory"):
        collector(env=env, n_steps=2**32 - 1)
    env.reset()


def test_the_environments_are_the_collectors_until_it_is_closed() -> None:
    env = cartpoles()
    with collector(env=env) as background:
        for call in (env.reset, lambda: env.step(np.zeros(N_ENVS, np.int64)), lambda: env.state(0)):
            with pytest.raises(RuntimeError, match="AsyncCollector"):
                call()
        with pytest.raises(RuntimeError, match="AsyncCollector"):
            collector(env=env)
        background.start()
        rollout = background.take()
    # Where the rollout left them: of the steps since an episode's end, and one step on.
    for i in range(N_ENVS):
        ended = np.flatnonzero((rollout["terminated"] | rollout["truncated"])[:, i])
        state, elapsed = env.state(i)
        assert elapsed == N_STEPS - 1 - (ended[-1] if len(ended) else -1)
        before = rollout["obs"][-1, i]
        if elapsed:  # else it has begun anew; else, x moves on by its velocity in 0.02 s
            assert state[0] == pytest.approx(before[0] + 0.02 * before[1], abs=1e-6)
    elapsed = env.state(0)[1]
    env.step(np.zeros(N_ENVS, np.int64))
    assert env.state(0)[1] in (elapsed + 1, 0)


def test_closing_in_the_middle_of_a_rollout_waits_for_one_step_only() -> None:
    calls: list[int] = []

    def slow(obs: Array) -> tuple[Array, Array, Array]:
        calls.append(1)
        time.sleep(0.01)
        return act(obs)

    background = collector(slow, n_steps=1_000_000)
    background.start()
    time.sleep(0.05)
    background.close()
    at_close = len(calls)
    time.sleep(0.05)
    assert len(calls) == at_close < 1000


def wait_for_threads(before: int) -> None:
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_collector_that_is_dropped_gives_the_environments_back() -> None:
    env, before = cartpoles(), threading.active_count()
    for is_at_work in (False, True):
        background = collector(env=env)
        if is_at_work:
            background.start()
        del background
        assert env.reset().shape == (N_ENVS, 4)
        env.step(np.ones(N_ENVS, np.int64))
    one = collector(env=env)
    del one
    with collector(env=env) as background:  # at once lent again
        background.start()
        background.take()
    assert env.reset().shape == (N_ENVS, 4)
    wait_for_threads(before)


def test_a_policy_cannot_wait_for_its_collector() -> None:
    told: list[str] = []

    def calls_back(obs: Array) -> tuple[Array, Array, Array]:
        for call in (background.take, background.close, background.start):
            try:
                call()
            except RuntimeError as error:
                told.append(str(error))
        return act(obs)

    with collector(calls_back, n_steps=1) as background:
        background.start()
        background.take()
    waits = "the collector's policy cannot wait for the collector; call this from another thread"
    assert told[:2] == [waits, waits] and "take() it first" in told[2]
