"""Infos of environments in turn: each one's own, which are joined when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gymnasium.vector import SyncVectorEnv
from numpy import ndarray

Envs = SyncVectorEnv[Any, Any]


class InfosInTurn(dict[str, Any]):
    """The infos of one step, or of a reset. When they are first read as a dictionary they are
    joined as Gymnasium joins them; what it cannot join (arrays of different shapes) raises its
    error then.

    `ended` has, by the number of the environment, the last observation and the last infos of the
    episodes that have ended, under Gymnasium's names.
    """

    def __init__(self, envs: Envs) -> None:
        super().__init__()
        self._envs = envs
        self._given: list[tuple[int, dict[str, Any]]] = []
        self.ended: dict[int, dict[str, Any]] = {}
        self.joined = False

    def add(self, row: int, info: dict[str, Any]) -> None:
        """Take what an environment gave."""
        self._given.append((row, _copied(info)))

    def add_end(self, row: int, obs: Any, info: dict[str, Any]) -> None:
        """Take the last observation and infos of an episode."""
        self.ended[row] = last = {"final_obs": deepcopy(obs), "final_info": _copied(info)}
        self._given.append((row, last))

    def each(self) -> list[dict[str, Any]]:
        """What each environment gave, under Gymnasium's names."""
        found: list[dict[str, Any]] = [{} for _ in range(self._envs.num_envs)]
        for row, info in self._given:
            found[row].update(info)
        return found

    def _join(self) -> None:
        if not self.joined:
            joined: dict[str, Any] = {}
            for row, info in self._given:
                joined = self._envs._add_info(joined, info, row)
            dict.update(self, joined)
            self.joined = True

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and what a pickle holds, is a plain dictionary."""
        return dict, (dict(self),)


def _copied(info: dict[str, Any]) -> dict[str, Any]:
    """A copy with arrays of its own, since an environment may write those of the next step into the
    same ones."""
    return {
        name: _copied(of) if isinstance(of, dict) else of.copy() if isinstance(of, ndarray) else of
        for name, of in info.items()
    }


def _once_joined(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: InfosInTurn, *args: Any, **kwargs: Any) -> Any:
        self._join()
        return method(self, *args, **kwargs)

    return call


for _name in (
    "__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__",
    "__ne__", "__or__", "__repr__", "__reversed__", "__ror__", "__setitem__", "clear", "copy",
    "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values",
):  # fmt: skip
    setattr(InfosInTurn, _name, _once_joined(_name))


def given_apart(infos: Any) -> InfosInTurn | None:
    """`infos` if they are still apart. None if somebody has read them as a dictionary: what it
    holds, which may have been changed since, then counts."""
    return infos if type(infos) is InfosInTurn and not infos.joined else None
