"""Results that nobody holds are given out again; what somebody holds, in whatever way, stays."""

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import rlox
from rlox import VecEnv

RECYCLES = "opt-p25" in rlox.build_info()["features"]


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
    """Steps of environments that all fall over at once, every tenth step or so."""
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


KINDS = pytest.mark.parametrize(
    "make",
    [steps, lambda: samples(False), lambda: samples(True)],
    ids=["steps", "samples", "samples by priority"],
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
@pytest.mark.skipif(not RECYCLES, reason="this build makes new arrays")
@pytest.mark.parametrize("n_held", [0, 1])
def test_a_loop_gets_the_same_arrays_again(make: Make, n_held: int) -> None:
    call, held = make(), deque[Any](maxlen=n_held)

    def places() -> set[int]:
        results = call()
        held.append(results)
        return {array.ctypes.data for array in arrays_of(results)}

    first, then = (set().union(*(places() for _ in range(60))) for _ in range(2))
    assert not then - first


@pytest.mark.parametrize("prioritized", [False, True])
def test_a_finaliser_of_a_sample_may_draw_another(prioritized: bool) -> None:
    call, seen = samples(prioritized), list[Any]()
    for _ in range(20):
        for array in arrays_of(call()):
            weakref.finalize(array, lambda: seen.append(call()))
        del array
    assert seen
