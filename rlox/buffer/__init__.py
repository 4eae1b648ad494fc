"""Replay buffers: rings of transitions, which are sampled uniformly or by priority.

A transition is ``obs, next_obs, action, reward, terminated, truncated``. Observations are stored as
float32 or uint8, flattened; a sample is a dict of arrays with the batch as leading axis.
"""

from rlox._core import PrioritizedReplayBuffer, ReplayBuffer

__all__ = ["PrioritizedReplayBuffer", "ReplayBuffer"]
