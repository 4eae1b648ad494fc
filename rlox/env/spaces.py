"""Turns the spaces of native environments into Gymnasium's."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Description = int | tuple[NDArray[np.float32], NDArray[np.float32]]


def to_gymnasium(description: Description) -> spaces.Space[Any]:
    """The space from the extension's description: `n` for a Discrete, `(low, high)` for a Box."""
    if isinstance(description, int):
        return spaces.Discrete(description)
    low, high = description
    return spaces.Box(low, high, dtype=np.float32)
