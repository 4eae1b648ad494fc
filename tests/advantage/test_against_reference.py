"""Each function of rlox.advantage is its equation: the core against plain NumPy."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rlox
from rlox.advantage import reference

DTYPES = (np.float64, np.float32)  # of one drawn case, since drawing takes longest
UNIT = st.floats(0, 1)
UNIT_ROUNDOFF = 2.0**-24  # of float32


def agree(found: Any, expected: Any, dtype: type, rtol: float = 0.0, atol: float = 1e-9) -> None:
    """Of this dtype, and equal: to the published tolerance, or in float32 to `rtol` and `atol`."""
    if dtype is np.float64:
        rtol, atol = 1e-6, 1e-10
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def rounding(n: int, *met: Any) -> float:
    """What `n` steps of a recursion in float32 may be off by, where the largest number is one of
    those `met`: each step rounds a few numbers, and carries what it was off by to the next."""
    largest = max(float(np.abs(x).max(initial=1e-30)) for x in met)
    return (8 + 2 * n) * UNIT_ROUNDOFF * largest


def floats(data: st.DataObject, shape: tuple[int, ...], low: float, high: float) -> Any:
    """Values that float32 holds exactly, so that both precisions start from the same numbers."""
    return data.draw(arrays(np.float64, shape, elements=st.floats(low, high, width=32)))


def rollout(data: st.DataObject, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    dones = data.draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.0, 0.0, 1.0])))
    return floats(data, shape, -10, 10), floats(data, shape, -10, 10), dones


@given(data=st.data(), n=st.integers(0, 40), gamma=UNIT, gae_lambda=UNIT)
def test_gae(data: st.DataObject, n: int, gamma: float, gae_lambda: float) -> None:
    steps = rollout(data, (n,))
    last_value = data.draw(st.floats(-10, 10, width=32))
    expected = reference.compute_gae(*steps, last_value, gamma, gae_lambda)
    atol = rounding(n, *steps, last_value, *expected)
    for dtype in DTYPES:
        found = rlox.compute_gae(*(x.astype(dtype) for x in steps), last_value, gamma, gae_lambda)
        agree(found, expected, dtype, atol=atol)


@given(
    data=st.data(),
    n_steps=st.integers(0, 20),
    n_envs=st.integers(0, 9),
    gamma=UNIT,
    gae_lambda=UNIT,
)
def test_gae_batched_in_both_layouts(
    data: st.DataObject, n_steps: int, n_envs: int, gamma: float, gae_lambda: float
) -> None:
    steps = rollout(data, (n_steps, n_envs))
    last_values = floats(data, (n_envs,), -10, 10)
    expected = reference.compute_gae(*steps, last_values, gamma, gae_lambda)
    atol = rounding(n_steps, *steps, last_values, *expected)
    for dtype in DTYPES:
        step_major = [x.astype(dtype) for x in steps]
        env_major = [x.T.copy() for x in step_major]
        last = last_values.astype(dtype)
        found = rlox.compute_gae_batched(*step_major, last, gamma, gae_lambda)
        agree(found, expected, dtype, atol=atol)
        turned = rlox.compute_gae_batched(*env_major, last, gamma, gae_lambda, "env_major")
        agree([one.T for one in turned], expected, dtype, atol=atol)


@given(
    data=st.data(), n=st.integers(0, 30), gamma=UNIT, rho_bar=st.floats(0, 5), c_bar=st.floats(0, 1)
)
def test_vtrace(data: st.DataObject, n: int, gamma: float, rho_bar: float, c_bar: float) -> None:
    steps = (floats(data, (n,), -5, 5), *rollout(data, (n,)))
    last_value = data.draw(st.floats(-10, 10, width=32))
    arguments = (last_value, gamma, rho_bar, c_bar)
    expected = reference.compute_vtrace(*steps, *arguments)
    atol = max(1, rho_bar) * rounding(n, *steps[1:], last_value, *expected)
    for dtype in DTYPES:
        found = rlox.compute_vtrace(*(x.astype(dtype) for x in steps), *arguments)
        agree(found, expected, dtype, atol=atol)


@given(data=st.data(), rows=st.integers(0, 40), n_tokens=st.integers(0, 12), masked=st.booleans())
def test_token_kl(data: st.DataObject, rows: int, n_tokens: int, masked: bool) -> None:
    shape = (rows, n_tokens)
    policy, ref = floats(data, shape, -20, 0), floats(data, shape, -20, 0)
    mask = data.draw(arrays(np.bool_, shape)) if masked else None
    expected = [reference.compute_token_kl(policy, ref, mask)]
    for dtype in DTYPES:
        found = rlox.compute_token_kl(policy.astype(dtype), ref.astype(dtype), mask)
        agree([found], expected, dtype, rtol=64 * UNIT_ROUNDOFF)  # a sum of what is never negative


@given(data=st.data(), groups=st.integers(0, 12), group_size=st.integers(1, 9))
def test_group_advantages(data: st.DataObject, groups: int, group_size: int) -> None:
    rewards = floats(data, (groups * group_size,), -100, 100)
    expected = [reference.compute_group_advantages(rewards, group_size, 1e-4)]
    for dtype in DTYPES:
        found = rlox.compute_group_advantages(rewards.astype(dtype), group_size, epsilon=1e-4)
        agree([found], expected, dtype, rtol=2 * UNIT_ROUNDOFF)  # in float64, rounded at the end


def test_float32_keeps_its_digits_where_policies_are_close() -> None:
    """exp(d) - d - 1 cancels: in float32 it would keep nothing of a d of 2^-12."""
    policy = np.full((1, 512), -1.0, np.float32)
    ref = policy + np.float32(2**-12)
    d = np.float64(2**-12)
    np.testing.assert_allclose(
        rlox.compute_token_kl(policy, ref), [512 * (np.expm1(d) - d)], rtol=1e-6
    )
