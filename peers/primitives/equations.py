"""The equations that results are compared with, in plain NumPy."""

from rlox.advantage.reference import compute_gae, compute_group_advantages, compute_token_kl

__all__ = ["compute_gae", "compute_group_advantages", "compute_token_kl"]
