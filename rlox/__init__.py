"""rlox: reinforcement learning with its data plane in Rust.

The data plane (environments, buffers, training math) works without torch; the trainers `PPO` and
`SAC` are loaded on first use, and need it.
"""

from typing import TYPE_CHECKING

from rlox._core import build_info
from rlox.advantage import (
    compute_gae,
    compute_gae_batched,
    compute_group_advantages,
    compute_token_kl,
    compute_vtrace,
)
from rlox.buffer import PrioritizedReplayBuffer, ReplayBuffer
from rlox.env import VecEnv

if TYPE_CHECKING:
    from rlox.learner import PPO, SAC

__all__ = [
    "PPO",
    "SAC",
    "PrioritizedReplayBuffer",
    "ReplayBuffer",
    "VecEnv",
    "build_info",
    "compute_gae",
    "compute_gae_batched",
    "compute_group_advantages",
    "compute_token_kl",
    "compute_vtrace",
]

_TRAINERS = ("PPO", "SAC")


def __getattr__(name: str) -> object:
    if name not in _TRAINERS:
        raise AttributeError(f"module 'rlox' has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(f"rlox.{name} needs torch: pip install 'rlox-rl[train]'") from error
    from rlox import learner

    return getattr(learner, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_TRAINERS])
