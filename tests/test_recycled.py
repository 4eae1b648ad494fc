"""Results that nobody holds are given out again; what somebody holds, in whatever way, stays."""

import itertools
import tracemalloc
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib import tracemalloc_domain

import rlox
from rlox import VecEnv

RECYCLES = "opt-p25" in rlox.build_info()["features"]
needs_p25 = pytest.mark.skipif(not RECYCLES, reason="this build makes new arrays")
needs_p29 = pytest.mark.skipif(
    "opt-p29" not in rlox.build_info()["features"], reason="functions of this build make new arrays"
)


def arrays_of(results: Any) -> Iterator[np.ndarray]:
    """Every array of a step or a sample, last observations one by one."""
    for value in results.values() if isinstance(results, dict) else results:
        if isinstance(value, dict):
            yield from arrays_of(value)
        elif value.dtype == object:
            yield from (row for row in value if row is not None)
        else:
            yield value


def steps() -> Callable[[], Any]:
    """Steps of environments that fall over every tenth step or so."""
    env = VecEnv("CartPole-v1", 3, seed=0)
    env.reset()
    return lambda: env.step(np.ones(3, np.int64))


def samples(prioritized: bool) -> Callable[[], Any]:
    kind = rlox.PrioritizedReplayBuffer if prioritized else rlox.ReplayBuffer
    buffer = kind(capacity=50, obs_dim=3, act_dim=2, seed=0)
    for i in range(50):
        obs, action = np.full(3, i, np.float32), np.full(2, -i, np.float32)
        buffer.push(obs, obs + 1, action, float(i), False, i % 7 == 0)
    return lambda: buffer.sample(5)


def advantages() -> Callable[[], Any]:
    """Advantages and returns that differ from call to call."""
    rewards = itertools.cycle(range(9))
    zeros = np.zeros(5)
    return lambda: rlox.compute_gae(np.full(5, next(rewards), float), zeros, zeros, 0.0, 0.9, 0.9)


KINDS = pytest.mark.parametrize(
    "make",
    [
        steps,
        lambda: samples(False),
        lambda: samples(True),
        pytest.param(advantages, marks=needs_p29),
    ],
    ids=["steps", "samples", "samples by priority", "advantages"],
)
Make = Callable[[], Callable[[], Any]]


@KINDS
@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[1:],
        lambda array: array.reshape(-1).view(np.uint8),
        memoryview,
        torch.from_numpy,
        lambda array: torch.from_numpy(array)[1:],
        np.from_dlpack,
    ],
    ids=["array", "part", "view", "memoryview", "tensor", "part of a tensor", "dlpack"],
)
def test_what_is_held_stays_as_it_was(make: Make, hold: Callable[[np.ndarray], Any]) -> None:
    call = make()
    held = [(hold(a), a.copy()) for _ in range(30) for a in arrays_of(call())]
    for _ in range(30):
        call()
    for view, whole in held:
        np.testing.assert_array_equal(np.asarray(view), np.asarray(hold(whole)))


@KINDS
def test_what_was_made_another_array_is_not_given_out_again(make: Make) -> None:
    def bytes_of(array: np.ndarray) -> None:
        array.dtype = np.uint8

    def read_only(array: np.ndarray) -> None:
        array.flags.writeable = False

    def shorter(array: np.ndarray) -> None:
        array.resize(1, refcheck=False)

    expected, call = make(), make()
    for change in (bytes_of, read_only, shorter) * 4:
        results = call()
        for found, array in zip(arrays_of(results), arrays_of(expected()), strict=True):
            np.testing.assert_array_equal(found, array)
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            assert found.flags.writeable
        for array in list(arrays_of(results)):
            change(array)
        del results, array, found


@KINDS
@needs_p25
@pytest.mark.parametrize("n_held", [0, 1])
def test_a_loop_gets_the_same_arrays_again(make: Make, n_held: int) -> None:
    call, held = make(), deque[Any](maxlen=n_held)
    elsewhere = []

    def places() -> set[int]:
        results = call()
        held.append(results)
        found = {array.ctypes.data for array in arrays_of(results)}
        shapes = [(array.shape, array.dtype) for array in arrays_of(results)]
        del results
        # NumPy gives memory out again by itself: somebody else has that before the next call.
        elsewhere.extend(np.zeros(shape, dtype) for shape, dtype in shapes)
        return found

    first, then = (set().union(*(places() for _ in range(60))) for _ in range(2))
    assert not then - first


@KINDS
@needs_p25
def test_results_that_are_held_for_good_do_not_end_it(make: Make) -> None:
    call = make()
    held = [call() for _ in range(8)]
    places = [next(arrays_of(call())).ctypes.data for _ in range(12)]
    assert len(set(places)) <= 4
    assert not set(places) & {next(arrays_of(results)).ctypes.data for results in held}


def kept() -> int:
    """The bytes of NumPy's arrays that were made since tracemalloc was started, and are alive."""
    taken = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.DomainFilter(True, tracemalloc_domain)]
    )
    return sum(trace.size for trace in taken.traces)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_no_more_than_four_arrays_of_a_kind_are_kept(traced: None) -> None:
    buffer = rlox.ReplayBuffer(capacity=10, obs_dim=1000, act_dim=1, seed=0)
    row = np.ones(1000, np.float32)
    buffer.push(row, row, row[:1], 0.0, False, False)
    held = [buffer.sample(100) for _ in range(20)]
    held.clear()
    wide = 100 * row.nbytes
    assert kept() < 4 * wide + 20_000
    for _ in range(4):  # arrays of other shapes go, once nobody holds them
        buffer.sample(1)
    assert kept() < wide


@needs_p29
@pytest.mark.parametrize(("n", "arrays"), [(1_000, 4), (1 << 19, 4), ((1 << 19) + 1, 0)])
def test_functions_keep_four_arrays_of_at_most_four_mebibytes(
    traced: None, n: int, arrays: int
) -> None:
    zeros = np.zeros(n)
    for _ in range(4):  # what was kept before goes
        rlox.compute_gae(zeros[:1], zeros[:1], zeros[:1], 0.0, 0.9, 0.9)
    before = kept()
    held = [rlox.compute_gae(zeros, zeros, zeros, 0.0, 0.9, 0.9) for _ in range(5)]
    held.clear()
    assert round((kept() - before) / zeros.nbytes) == arrays


@KINDS
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_finaliser_of_a_result_may_ask_for_another(make: Make) -> None:
    call, expected, seen = make(), make(), list[Any]()
    for _ in range(40):
        for array in arrays_of(call()):
            weakref.finalize(array, lambda: seen.append(call())).atexit = False
        del array
    assert seen
    firsts = {next(arrays_of(expected())).tobytes() for _ in range(len(seen) + 40)}
    assert {next(arrays_of(results)).tobytes() for results in seen} <= firsts


@needs_p25
def test_a_result_is_not_resized_in_place() -> None:
    call = steps()
    result = call()[0]
    with pytest.raises(ValueError, match="cannot resize"):
        result.resize(4)
