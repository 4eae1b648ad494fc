"""`out=` takes the results, as in NumPy: the same numbers, in the caller's own arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlox

Call = Callable[..., Any]
RNG = np.random.default_rng(5)
N, M = RNG.normal(size=(4, 12)), RNG.normal(size=(3, 4, 3))
DONES = (RNG.random(12) < 0.3).astype(float)

PAIRS: dict[str, tuple[Call, tuple[int, ...]]] = {
    "gae": (lambda **out: rlox.compute_gae(N[0], N[1], DONES, 0.5, 0.9, 0.8, **out), (12,)),
    "step-major": (
        lambda **out: rlox.compute_gae_batched(*M, np.ones(3), 0.9, 0.8, **out),
        (4, 3),
    ),
    "env-major": (
        lambda **out: rlox.compute_gae_batched(*M, np.ones(4), 0.9, 0.8, "env_major", **out),
        (4, 3),
    ),
    "vtrace": (lambda **out: rlox.compute_vtrace(*N[:3], DONES, 0.5, 0.9, **out), (12,)),
}
SINGLE: dict[str, tuple[Call, tuple[int, ...]]] = {
    "token_kl": (lambda **out: rlox.compute_token_kl(M[0], M[1], **out), (4,)),
    "group_advantages": (lambda **out: rlox.compute_group_advantages(N[0], 4, **out), (12,)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_results_are_written_and_returned(name: str) -> None:
    call, shape = PAIRS[name]
    out = np.full(shape, 7.0), np.full(shape, 7.0)
    found = call(out=out)
    assert all(one is given for one, given in zip(found, out, strict=True))
    np.testing.assert_array_equal(out, call())


@pytest.mark.parametrize("name", SINGLE)
def test_one_result_is_written_and_returned(name: str) -> None:
    call, shape = SINGLE[name]
    out = np.full(shape, 7.0)
    assert call(out=out) is out
    np.testing.assert_array_equal(out, call())


def test_float32_results_go_into_float32_arrays() -> None:
    out = np.empty(12, np.float32), np.empty(12, np.float32)
    single = [x.astype(np.float32) for x in (N[0], N[1], DONES)]
    assert rlox.compute_gae(*single, 0.5, 0.9, 0.8, out=out)[0] is out[0]


@pytest.mark.parametrize("name", PAIRS)
def test_arrays_that_do_not_fit_are_named(name: str) -> None:
    call, shape = PAIRS[name]
    right, wide = np.empty(shape), np.empty((*shape[:-1], 24))
    read_only = np.empty(shape)
    read_only.flags.writeable = False
    for out, exception, message in [
        ((np.empty(5), right), ValueError, r"out\[0\]: has shape"),
        ((right, right.astype(np.float32)), TypeError, r"out\[1\]: has dtype float32"),
        ((right, wide[..., ::2][..., : shape[-1]]), ValueError, r"out\[1\]: is not C-contiguous"),
        ((right, read_only), ValueError, r"out\[1\]: is read-only"),
        ((right, right), ValueError, r"out\[1\]: shares memory with out\[0\]"),
        (right, TypeError, "out"),
    ]:
        with pytest.raises(exception, match=message):
            call(out=out)


@pytest.mark.parametrize("name", SINGLE)
def test_an_array_that_does_not_fit_is_named(name: str) -> None:
    call, shape = SINGLE[name]
    with pytest.raises(ValueError, match="out: has shape"):
        call(out=np.empty(5))
    with pytest.raises(TypeError, match="out: has dtype float32"):
        call(out=np.empty(shape, np.float32))


def test_two_results_need_two_memories() -> None:
    """Of views that came to one memory by different ways, too: NumPy itself does not know these."""
    rewards, memory = np.zeros(12), bytearray(8 * 20)
    for start in (0, 4 * 8):
        out = np.frombuffer(memory, count=12), np.frombuffer(memory, offset=start, count=12)
        with pytest.raises(ValueError, match="out"):
            rlox.compute_gae(rewards, rewards, DONES, 0.5, 0.9, 0.8, out=out)


def test_results_may_not_be_written_over_inputs() -> None:
    memory = np.zeros(40)
    rewards, values = memory[:12], memory[20:32]
    for over in (rewards, values, memory[11:23]):
        with pytest.raises(ValueError, match=r"out\[1\]: shares memory with an input"):
            rlox.compute_gae(rewards, values, DONES, 0.5, 0.9, 0.8, out=(np.empty(12), over))
    with pytest.raises(ValueError, match="out: shares memory with an input"):
        rlox.compute_group_advantages(rewards, 4, out=rewards)
    rlox.compute_group_advantages(rewards, 4, out=memory[12:24])
