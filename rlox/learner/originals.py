"""What Stable-Baselines3's `VecNormalize` was given, which a replay buffer keeps.

Statistics change during training, so a transition is normalised when it is drawn, by those of then.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlox.learner.spaces import flatten_obs, unflattened

Array = NDArray[Any]


class Originals:
    """The steps of environments before a `VecNormalize`, the `normalizer`, changed them."""

    def __init__(self, normalizer: Any, space: spaces.Space[Any]) -> None:
        self._normalizer, self._space = normalizer, space

    def begin(self) -> None:
        """Steps are taken from the present observations on."""
        self._obs = self._present()

    def step(self, ended: NDArray[np.intp], last: Array | None) -> tuple[Array, Array, Array]:
        """Of the latest step, as they were: the observations before it, those after it, and the
        rewards. `last` are the normalised last observations of the episodes that `ended`."""
        before, self._obs = self._obs, self._present()
        after = self._obs.copy()
        if last is not None:
            after[ended] = self._rows(
                self._normalizer.unnormalize_obs(unflattened(last, self._space))
            )
        return before, after, np.asarray(self._normalizer.get_original_reward())

    def normalized(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        """A batch from the replay buffer, by the present statistics."""
        found = dict(batch)
        for name in ("obs", "next_obs"):
            found[name] = self._rows(
                self._normalizer.normalize_obs(unflattened(batch[name], self._space))
            )
        reward = self._normalizer.normalize_reward(batch["reward"])
        found["reward"] = np.asarray(reward, np.float32)
        return found

    def _present(self) -> Array:
        return self._rows(self._normalizer.get_original_obs())

    def _rows(self, obs: Any) -> Array:
        return flatten_obs(obs, self._space)


def originals(normalizer: Any, space: spaces.Space[Any]) -> Originals | None:
    """The originals of a `VecNormalize`; None without one, and where a wrapper around it changes
    observations, which are then kept as they come."""
    if normalizer is None or normalizer.observation_space != space:
        return None
    return Originals(normalizer, space)
