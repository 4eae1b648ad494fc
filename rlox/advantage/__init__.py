"""Computes what trainers learn from: advantages, value targets, divergences.

Each function has its equations, written in NumPy, in `rlox.advantage.reference`, and agrees with
them within rtol 1e-6 and atol 1e-10 in float64. With ``out=`` results are written into the caller's
arrays, as NumPy's functions do, so that a loop allocates nothing. Without it they are in new
arrays, or in earlier ones to which nothing refers any more: each function that returns advantages
keeps its four latest arrays, of at most 4 MiB each, until the program ends.
"""

from rlox._core import (
    compute_gae,
    compute_gae_batched,
    compute_group_advantages,
    compute_token_kl,
    compute_vtrace,
)

__all__ = [
    "compute_gae",
    "compute_gae_batched",
    "compute_group_advantages",
    "compute_token_kl",
    "compute_vtrace",
]
