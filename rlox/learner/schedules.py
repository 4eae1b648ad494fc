"""Hyperparameters that may change during training."""

from collections.abc import Callable
from typing import Any

from rlox.learner.arguments import LARGEST, require_numbers

Schedule = Callable[[float], float]  # of the remaining part of training, from 1 to 0


class Scheduled:
    """A number, or a function of the part of training that remains (1 at the start, 0 at the end).

    Raises TypeError for anything else, and ValueError for a number, or a function's value at the
    start, that is below 0 or above `maximum`.
    """

    def __init__(self, name: str, given: Any, maximum: float = LARGEST) -> None:
        self.name, self.maximum = name, maximum
        self.function: Schedule | None = None
        if callable(given):
            self.function = given
            given = self.at(1.0)
        require_numbers(0, maximum, **{name: given})
        self.value = float(given)

    @property
    def moves(self) -> bool:
        """Whether its value may change."""
        return self.function is not None

    def at(self, remaining: float) -> float:
        """Its value when the part `remaining` of training is left."""
        if self.function is not None:
            found = self.function(remaining)
            require_numbers(0, self.maximum, **{self.name: found})
            self.value = float(found)
        return self.value
