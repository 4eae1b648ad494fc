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

    @property
    def first(self) -> float:
        """Its value at the start."""
        return self.value if self.function is None else float(self.function(1.0))

    def at(self, remaining: float) -> float:
        """Its value when the part `remaining` of training is left."""
        if self.function is not None:
            found = self.function(remaining)
            require_numbers(0, self.maximum, **{self.name: found})
            self.value = float(found)
        return self.value


class Present:
    """An attribute of a trainer that reads as the present value of a `Scheduled`. It can be set to
    a number or a function, or to None if it `may_miss`."""

    def __init__(self, maximum: float = LARGEST, may_miss: bool = False) -> None:
        self._maximum, self._may_miss = maximum, may_miss

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:  # asked of the class
            return self
        held = scheduled(model, self._name)
        return None if held is None else held.value

    def __set__(self, model: Any, given: Any) -> None:
        missing = given is None and self._may_miss
        held = None if missing else Scheduled(self._name, given, self._maximum)
        if held is not None and self._may_miss and held.value == 0:
            raise ValueError(f"{self._name}: is 0, which lets nothing move; None sets no bound")
        vars(model)[self._name] = held


def scheduled(model: Any, name: str) -> Any:
    """The `Scheduled` behind an attribute that is a `Present`; None if it is missing."""
    return vars(model)[name]
