"""The peak memory of a process, and the size of the shipped extension."""

from pathlib import Path

import numpy as np

import rlox
from benchmarks.inputs import transitions
from rlox import _core


class FullBuffer:
    """50 000 transitions of MuJoCo's Humanoid: 155 MB of floats, the rest is Python and NumPy."""

    params = ("ReplayBuffer", "PrioritizedReplayBuffer")
    param_names = ("kind",)

    def peakmem_full_buffer(self, kind):
        buffer = getattr(rlox, kind)(50_000, 376, 17)
        obs, next_obs, _, *rest = transitions(1_000, 376)
        action = np.zeros((1_000, 17), np.float32)
        for _ in range(50):
            buffer.push_batch(obs, next_obs, action, *rest)
        sample = buffer.sample(256)
        np.testing.assert_array_equal(sample["obs"][:, 0], sample["reward"])
        assert len(buffer) == 50_000


def track_extension_bytes():
    return Path(_core.__file__).stat().st_size


track_extension_bytes.unit = "bytes"
