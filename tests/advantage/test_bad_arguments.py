"""A wrong argument is named, with what was found and what would do; nothing panics."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlox

N = np.zeros(6)
M = np.zeros((3, 2))

CASES: list[tuple[Callable[[Any], object], list[tuple[Any, type[Exception], str]]]] = [
    (
        lambda x: rlox.compute_gae(x, N, N, 0.0, 0.99, 0.95),
        [
            ([0.0] * 6, TypeError, r"rewards: is a list, .*np\.asarray\(rewards"),
            (None, TypeError, r"rewards: is a NoneType"),
            (N.astype(int), TypeError, r"rewards: has dtype int64, .*\.astype\(np\.float64\)"),
            (N.astype(">f8"), TypeError, r"rewards: has dtype >f8"),
            (N.reshape(2, 3), ValueError, r"rewards: has shape \(2, 3\), expected 1 dimension"),
            (np.zeros(12)[::2], ValueError, r"rewards: is not C-contiguous; pass rewards.copy\(\)"),
            (np.full(6, np.nan), ValueError, r"rewards: is NaN at index 0"),
            (np.array([0, 0, 0, np.inf, 0, 0]), ValueError, r"rewards: is inf at index 3"),
        ],
    ),
    (
        lambda x: rlox.compute_gae(N, x, N, 0.0, 0.99, 0.95),
        [
            (np.zeros(5), ValueError, r"values: has shape \(5,\), expected \(6,\)"),
            (N.astype(np.float32), TypeError, r"values: has dtype float32, expected float64"),
        ],
    ),
    (
        lambda x: rlox.compute_gae(N, N, x, 0.0, 0.99, 0.95),
        [(N.astype(bool), TypeError, r"dones: has dtype bool, .*\.astype\(np\.float64\)")],
    ),
    (
        lambda x: rlox.compute_gae(N, N, N, x, 0.99, 0.95),
        [(np.nan, ValueError, "last_value: is NaN"), ("0", TypeError, "must be real number")],
    ),
    (
        lambda x: rlox.compute_gae(N, N, N, 0.0, x, 0.95),
        [(1.01, ValueError, r"gamma: is 1.01, expected a number in \[0, 1\]")],
    ),
    (
        lambda x: rlox.compute_gae(N, N, N, 0.0, 0.99, x),
        [(-0.5, ValueError, "gae_lambda: is -0.5"), (np.nan, ValueError, "gae_lambda: is NaN")],
    ),
    (
        lambda x: rlox.compute_gae_batched(M, M, M, x, 0.99, 0.95),
        [(np.zeros(3), ValueError, r"last_values: has shape \(3,\), expected \(2,\)")],
    ),
    (
        lambda x: rlox.compute_gae_batched(M, M, M, np.zeros(3), 0.99, 0.95, layout=x),
        [("rows", ValueError, r'layout: is "rows", expected "step_major" or "env_major"')],
    ),
    (
        lambda x: rlox.compute_gae_batched(x, M, M, np.zeros(2), 0.99, 0.95),
        [
            (N, ValueError, r"rewards: has shape \(6,\), expected 2 dimension"),
            (np.zeros((2, 3)).T, ValueError, "rewards: is not C-contiguous"),
            (np.zeros((2, 3)), ValueError, r"values: has shape \(3, 2\), expected \(2, 3\)"),
        ],
    ),
    (
        lambda x: rlox.compute_vtrace(x, N, N, N, 0.0, 0.99, 1.0, 1.0),
        [(np.full(6, np.nan), ValueError, "log_rhos: is NaN at index 0")],
    ),
    (
        lambda x: rlox.compute_vtrace(N, N, N, N, 0.0, 0.99, x, 1.0),
        [(-1.0, ValueError, "rho_bar: is -1, expected a number of at least 0")],
    ),
    (
        lambda x: rlox.compute_token_kl(M, x),
        [
            (np.zeros((2, 3)), ValueError, "log_probs_ref: has shape"),
            (np.full((3, 2), np.nan), ValueError, "NaN"),
        ],
    ),
    (
        lambda x: rlox.compute_token_kl(M, M, x),
        [
            (M, TypeError, "mask: has dtype float64, expected bool"),
            (np.ones((2, 3), bool), ValueError, "mask: has shape"),
        ],
    ),
    (
        lambda x: rlox.compute_group_advantages(N, x),
        [
            (4, ValueError, "group_size: is 4, expected a positive divisor of the 6 rewards"),
            (0, ValueError, "group_size: is 0"),
            (-3, ValueError, "group_size: is -3"),
        ],
    ),
    (
        lambda x: rlox.compute_group_advantages(N, 3, epsilon=x),
        [(0.0, ValueError, "epsilon: is 0"), (np.inf, ValueError, "epsilon: is inf")],
    ),
    (
        lambda x: rlox.compute_group_advantages(x, 3),
        [(np.array([0.0, 1, np.inf]), ValueError, "rewards: is inf at index 2")],
    ),
]


@pytest.mark.parametrize(
    ("call", "argument", "exception", "message"),
    [(call, *case) for call, cases in CASES for case in cases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_argument_is_named(
    call: Callable[[Any], object], argument: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        call(argument)


def test_an_unaligned_array_is_refused() -> None:
    unaligned = np.frombuffer(bytes(49), dtype=np.float64, offset=1)
    with pytest.raises(ValueError, match=r"rewards: .*rewards\.copy\(\)"):
        rlox.compute_gae(unaligned, N, N, 0.0, 0.99, 0.95)
    rlox.compute_gae(unaligned.copy(), N, N, 0.0, 0.99, 0.95)
