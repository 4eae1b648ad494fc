"""What both buffers hold, against a list of Python; errors; threads."""

import subprocess
import sys
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlox

KINDS = pytest.mark.parametrize("kind", [rlox.ReplayBuffer, rlox.PrioritizedReplayBuffer])
OBS_DTYPES = pytest.mark.parametrize("obs_dtype", ["float32", "uint8"])
KEYS = ["obs", "next_obs", "action", "reward", "terminated", "truncated"]


def transitions(start: int, n: int, obs_dtype: str = "float32") -> dict[str, Any]:
    """Rows from which the number of the transition can be read in every column."""
    i = np.arange(start, start + n)
    return {
        "obs": np.stack([i, i + 1, i + 2], axis=1).astype(obs_dtype),
        "next_obs": np.stack([i + 1, i + 2, i + 3], axis=1).astype(obs_dtype),
        "action": np.stack([-i, 0.5 * i], axis=1).astype(np.float32),
        "reward": i.astype(np.float32),
        "terminated": i % 3 == 0,
        "truncated": i % 5 == 0,
    }


def rows(columns: Any) -> list[tuple[Any, ...]]:
    lists = [columns[key].tolist() for key in KEYS]
    return [(tuple(a), tuple(b), tuple(c), *rest) for a, b, c, *rest in zip(*lists, strict=True)]


def full(kind: Any, capacity: int = 50, **options: Any) -> Any:
    buffer = kind(capacity, 3, 2, **options)
    buffer.push_batch(**transitions(0, capacity, options.get("obs_dtype", "float32")))
    return buffer


@KINDS
@OBS_DTYPES
@given(capacity=st.integers(1, 9), pushes=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_a_buffer_holds_the_last_transitions_whole(
    kind: Any, obs_dtype: str, capacity: int, pushes: list[int]
) -> None:
    """Push by push (written 0) or many at once; capacity 1 and wrap-around included."""
    buffer, model = kind(capacity, 3, 2, obs_dtype=obs_dtype), deque[Any](maxlen=capacity)
    for n in pushes:
        pushed = transitions(sum(pushes) % 7 + 10 * len(model), max(n, 1), obs_dtype)
        if n:
            buffer.push_batch(**pushed)
        else:
            buffer.push(*(column[0] for column in pushed.values()))
        model.extend(rows(pushed))
    assert len(buffer) == buffer.size() == len(model)
    if kind is rlox.ReplayBuffer:
        assert rows(buffer.transitions()) == list(model)
    assert buffer.capacity == capacity
    assert set(rows(buffer.sample(400))) == set(model)


@KINDS
@OBS_DTYPES
def test_a_sample_is_arrays_of_the_promised_shapes_and_dtypes(kind: Any, obs_dtype: str) -> None:
    sample = full(kind, obs_dtype=obs_dtype).sample(7)
    assert {key: (array.shape, array.dtype) for key, array in sample.items() if key in KEYS} == {
        "obs": ((7, 3), np.dtype(obs_dtype)),
        "next_obs": ((7, 3), np.dtype(obs_dtype)),
        "action": ((7, 2), np.float32),
        "reward": ((7,), np.float32),
        "terminated": ((7,), np.bool_),
        "truncated": ((7,), np.bool_),
    }


@KINDS
def test_samples_are_the_callers_own(kind: Any) -> None:
    buffer = full(kind)
    first = buffer.sample(5, seed=3)
    kept = first["obs"].copy()
    buffer.sample(5, seed=4)
    np.testing.assert_array_equal(first["obs"], kept)
    first["obs"][:] = 99
    np.testing.assert_array_equal(buffer.sample(5, seed=3)["obs"], kept)


@KINDS
@OBS_DTYPES
@settings(max_examples=50)
@given(draws=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2**64 - 1)), max_size=6))
def test_copy_does_not_change_what_is_drawn(
    kind: Any, obs_dtype: str, draws: list[tuple[int, int]]
) -> None:
    buffer = full(kind, obs_dtype=obs_dtype)
    for batch_size, seed in draws:
        fresh, reused = (buffer.sample(batch_size, seed, copy=copy) for copy in (True, False))
        assert fresh.keys() == reused.keys()
        for key in fresh:
            np.testing.assert_array_equal(fresh[key], reused[key])
            assert fresh[key].dtype == reused[key].dtype


@KINDS
@pytest.mark.parametrize(("obs_dtype", "obs_dim"), [("float32", 8_221), ("uint8", 28_225)])
@pytest.mark.parametrize("copy", [True, False])
def test_samples_that_no_cache_holds_are_the_rows_stored(
    kind: Any, obs_dtype: str, obs_dim: int, copy: bool
) -> None:
    """Rows of odd lengths, some megabytes in all, from a ring that went round, with episodes that
    end: what follows is then another observation than the next one stored."""
    n, capacity = 90, 60
    columns = np.arange(obs_dim)
    obs, last = ((columns + 7 * np.arange(n)[:, None] + k) % 251 for k in (0, 100))
    obs, last = obs.astype(obs_dtype), last.astype(obs_dtype)
    ends = np.arange(n) % 9 == 8
    next_obs = np.where(ends[:, None], last, np.roll(obs, -1, axis=0))
    buffer = kind(capacity, obs_dim, 1, obs_dtype=obs_dtype)
    for i in range(n):
        buffer.push(obs[i], next_obs[i], np.zeros(1, np.float32), float(i), bool(ends[i]), False)
    for batch_size in (5, 300):  # of the latter, either column is 8 MiB or more
        batch = buffer.sample(batch_size, seed=1, copy=copy)
        drawn = batch["reward"].astype(int)
        np.testing.assert_array_equal(batch["obs"], obs[drawn])
        np.testing.assert_array_equal(batch["next_obs"], next_obs[drawn])


@KINDS
def test_reused_arrays_are_overwritten_by_the_next_sample_of_their_size(kind: Any) -> None:
    buffer = full(kind)
    first = buffer.sample(5, seed=3, copy=False)
    drawn = {key: array.copy() for key, array in first.items()}
    second = buffer.sample(5, seed=4, copy=False)
    assert all(second[key] is first[key] for key in drawn)
    assert not np.array_equal(first["obs"], drawn["obs"])
    first.clear()  # the dictionary is the caller's own
    third = buffer.sample(5, seed=3, copy=False)
    for key, array in drawn.items():
        np.testing.assert_array_equal(third[key], array)
    assert buffer.sample(6, copy=False)["obs"] is not third["obs"]
    fresh = buffer.sample(5, seed=3)
    assert not any(np.shares_memory(fresh[key], third[key]) for key in drawn)


@KINDS
def test_an_array_that_is_marked_read_only_is_never_overwritten(kind: Any) -> None:
    buffer = full(kind)
    for key in buffer.sample(5, seed=3, copy=False):
        kept = buffer.sample(5, seed=3, copy=False)[key]
        before = kept.copy()
        kept.flags.writeable = False
        drawn = buffer.sample(5, seed=4, copy=False)
        assert drawn[key] is not kept
        np.testing.assert_array_equal(kept, before)
        for name, array in buffer.sample(5, seed=4).items():
            np.testing.assert_array_equal(drawn[name], array)


@KINDS
def test_an_array_that_was_made_another_one_is_never_written(kind: Any) -> None:
    """Of other elements: new ones take the next sample."""
    buffer = full(kind)

    def of_bytes(array: Any) -> None:
        array.dtype = np.uint8

    for name in ("obs", "action", "reward"):
        changed = buffer.sample(5, seed=3, copy=False)[name]
        of_bytes(changed)
        before = changed.copy()
        drawn = buffer.sample(5, seed=4, copy=False)
        np.testing.assert_array_equal(changed, before)
        for key, array in buffer.sample(5, seed=4).items():
            assert drawn[key].dtype == array.dtype
            np.testing.assert_array_equal(drawn[key], array)


@KINDS
def test_reused_arrays_are_not_resized(kind: Any) -> None:
    """Since it may be while a sample is written to them."""
    buffer = full(kind)
    for array in buffer.sample(5, copy=False).values():
        with pytest.raises(ValueError, match="cannot resize"):
            array.resize(1, refcheck=False)


@KINDS
def test_reused_arrays_may_be_given_another_shape(kind: Any) -> None:
    buffer = full(kind)
    obs = buffer.sample(4, seed=3, copy=False)["obs"]
    obs.resize((2, 2, 3), refcheck=False)  # in place, as an assignment to `shape` is
    assert buffer.sample(4, seed=4, copy=False)["obs"] is obs
    np.testing.assert_array_equal(obs.reshape(4, 3), buffer.sample(4, seed=4)["obs"])


FINALISERS = """
import gc, sys, numpy as np, rlox
buffer = getattr(rlox, sys.argv[1])(8, 2, 1)
obs, action = np.zeros((2, 2), np.float32), np.zeros(1, np.float32)
buffer.push(*obs, action, 0.0, False, False)
found = []
class Cycle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        found.append(buffer.sample(1, copy=False))
gc.set_threshold(1)
for _ in range(20):
    Cycle()
    buffer.sample(1, copy=False)
assert len(found) > 5
"""


@KINDS
def test_what_is_collected_within_a_sample_may_sample(kind: Any) -> None:
    subprocess.run([sys.executable, "-c", FINALISERS, kind.__name__], check=True, timeout=60)


@KINDS
@given(
    n_envs=st.integers(1, 5),
    capacity=st.integers(1, 20),
    ends=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_episodes_come_back_whole_whatever_their_ends(
    kind: Any, n_envs: int, capacity: int, ends: list[bool]
) -> None:
    """Environments in turn, each going on from its own next observation, or from a new start."""
    buffer, model = kind(capacity, 2, 1), deque[Any](maxlen=capacity)
    obs = np.zeros((n_envs, 2), np.float32)
    for step in range(8):
        done = np.array(ends[step * n_envs : (step + 1) * n_envs])
        next_obs = obs + 1
        columns = {
            "obs": obs,
            "next_obs": next_obs,
            "action": np.full((n_envs, 1), step, np.float32),
            "reward": np.arange(n_envs, dtype=np.float32),
            "terminated": done,
            "truncated": ~done,
        }
        buffer.push_batch(**columns)
        model.extend(rows(columns))
        obs = np.where(done[:, None], np.float32(-step), next_obs)
    assert set(rows(buffer.sample(400))) == set(model)


@KINDS
def test_a_seed_repeats_and_the_own_stream_goes_on(kind: Any) -> None:
    buffer, twin, other = full(kind, seed=5), full(kind, seed=5), full(kind, seed=6)
    first, second = rows(buffer.sample(20)), rows(buffer.sample(20))
    assert [first, second] == [rows(twin.sample(20)), rows(twin.sample(20))]
    assert first != second
    assert first != rows(other.sample(20))
    assert rows(buffer.sample(20, seed=5)) == rows(other.sample(20, seed=5)) == first


@KINDS
def test_bytes_come_back_as_bytes(kind: Any) -> None:
    buffer = kind(1, 256, 1, obs_dtype="uint8")
    obs = np.arange(256, dtype=np.uint8)
    buffer.push(obs, obs[::-1].copy(), np.zeros(1, np.float32), 0.0, False, False)
    sample = buffer.sample(2)
    np.testing.assert_array_equal(sample["obs"], [obs, obs])
    np.testing.assert_array_equal(sample["next_obs"], [obs[::-1]] * 2)


@KINDS
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity: is 0"),
        ({"capacity": -1}, "capacity: is -1"),
        ({"capacity": 2**60}, "capacity: .* do not fit into memory"),
        ({"obs_dim": 0}, "obs_dim: is 0"),
        ({"act_dim": 0}, "act_dim: is 0"),
        ({"obs_dtype": "float64"}, 'obs_dtype: is "float64", expected "float32" or "uint8"'),
        ({"seed": -1}, "seed: is -1"),
        ({"seed": 2**64}, "seed: is 18446744073709551616"),
    ],
)
def test_a_buffer_that_cannot_be_is_refused(
    kind: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**({"capacity": 4, "obs_dim": 3, "act_dim": 2} | arguments))


@KINDS
@pytest.mark.parametrize(
    ("column", "value", "exception", "message"),
    [
        ("obs", np.zeros((2, 4), np.float32), ValueError, r"has shape \(2, 4\), expected \(n, 3\)"),
        ("obs", np.zeros((2, 3)), TypeError, r"has dtype float64, .*\.astype\(np\.float32\)"),
        ("obs", np.zeros((2, 3), np.uint8), TypeError, "has dtype uint8, expected float32"),
        (
            "obs",
            np.zeros((3, 2), np.float32).T,
            ValueError,
            r"not C-contiguous; pass obs\.copy\(\)",
        ),
        ("next_obs", np.zeros((3, 3), np.float32), ValueError, r"expected \(2, 3\)"),
        ("action", np.zeros(2, np.float32), ValueError, r"has shape \(2,\), expected \(2, 2\)"),
        ("reward", [0.0, 0.0], TypeError, r"is a list, .*np\.asarray\(reward"),
        ("reward", np.array([0, np.nan], np.float32), ValueError, "is NaN at index 1"),
        ("terminated", np.zeros(2), TypeError, "has dtype float64, expected bool"),
        ("truncated", np.zeros(3, bool), ValueError, r"has shape \(3,\), expected \(2,\)"),
    ],
)
def test_a_bad_column_is_named_and_nothing_is_stored(
    kind: Any, column: str, value: Any, exception: type[Exception], message: str
) -> None:
    buffer = kind(4, 3, 2)
    with pytest.raises(exception, match=f"^{column}: .*{message}"):
        buffer.push_batch(**(transitions(0, 2) | {column: value}))
    assert len(buffer) == 0


@KINDS
def test_a_bad_transition_is_named_and_not_stored(kind: Any) -> None:
    buffer, obs, action = kind(4, 3, 2), np.zeros(3, np.float32), np.zeros(2, np.float32)
    for arguments, message in [
        ((obs[:2], obs, action, 0.0), "obs: has length 2, expected 3"),
        ((obs, obs[:2], action, 0.0), "next_obs: has length 2, expected 3"),
        ((obs, obs, obs, 0.0), "action: has length 3, expected 2"),
        ((obs, obs, action, np.nan), "reward: is NaN"),
        ((obs, obs, action, 1e300), "reward: is inf"),
    ]:
        with pytest.raises(ValueError, match=message):
            buffer.push(*arguments, False, False)
    assert len(buffer) == 0


@KINDS
def test_a_sample_that_cannot_be_is_refused(kind: Any) -> None:
    with pytest.raises(RuntimeError, match="the buffer is empty; push a transition"):
        kind(4, 3, 2).sample(1)
    for size in [0, -1, 2**60]:
        with pytest.raises(ValueError, match=f"batch_size: is {size}"):
            full(kind).sample(size)


@KINDS
def test_threads_may_push_and_sample_at_once(kind: Any) -> None:
    buffer, errors = full(kind, 200), []

    def work(job: Any) -> None:
        try:
            for _ in range(300):
                job()
        except Exception as error:
            errors.append(error)

    def check() -> None:
        sample = buffer.sample(16)
        np.testing.assert_array_equal(sample["obs"][:, 0], sample["reward"])

    jobs = [check, check, lambda: buffer.push_batch(**transitions(7, 8)), lambda: len(buffer)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


def test_crossings_are_counted_with_their_bytes() -> None:
    from rlox import _core

    buffer = rlox.ReplayBuffer(8, 3, 2)
    _core.take_crossings()
    _core.count_crossings(True)
    try:
        buffer.push_batch(**transitions(0, 4))
        buffer.sample(2)
    finally:
        _core.count_crossings(False)
    crossings = _core.take_crossings()
    row = 2 * 12 + 8 + 6
    assert {name: tally[:2] for name, tally in crossings.items()} == {
        "ReplayBuffer.push_batch": (1, 4 * row),
        "ReplayBuffer.sample": (1, 2 * row),
    }
