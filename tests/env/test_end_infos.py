"""Infos of ended episodes that are made when somebody reads them: a dictionary like any other."""

import copy
import gc
import operator
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlox

WHEN_READ = pytest.mark.skipif(
    "opt-p28" not in rlox.build_info()["features"], reason="this build makes infos in the step"
)
Use = Callable[[Any], Any]


def infos_of_ends(n: int = 1, seed: int = 0) -> list[dict[str, Any]]:
    """The infos of `n` steps in which episodes ended, as they come."""
    env = rlox.VecEnv("CartPole-v1", 8, seed=seed)
    env.reset(seed=seed)
    rng, found = np.random.default_rng(seed), []
    while len(found) < n:
        *_, terminations, truncations, infos = env.step(rng.integers(0, 2, 8))
        if (terminations | truncations).any():
            found.append(infos)
    return found


def plain(infos: dict[str, Any]) -> dict[str, Any]:
    """A plain dictionary with the same entries, which can be compared with `shown`."""
    return {name: infos[name] for name in ("final_obs", "_final_obs", "final_info", "_final_info")}


def shown(use: Use, infos: dict[str, Any]) -> str:
    """What comes of a use, and what it leaves behind."""
    try:
        result = use(infos)
    except Exception as error:
        result = error
    if not isinstance(result, dict | str | int):
        result = list(result) if hasattr(result, "__iter__") else result
    return f"{result!r}\n{dict(infos)!r}"


USES: dict[str, Use] = {
    "a key": lambda infos: infos["final_obs"],
    "no key": lambda infos: infos["nothing"],
    "a tuple": lambda infos: infos[1, 2],
    "a key that cannot be one": lambda infos: infos[[]],
    "in": lambda infos: "_final_obs" in infos,
    "len": len,
    "bool": bool,
    "iter": list,
    "reversed": lambda infos: list(reversed(infos)),
    "repr": repr,
    "str": str,
    "format": lambda infos: f"{infos}",
    "get": lambda infos: infos.get("other", 3),
    "keys": lambda infos: infos.keys(),
    "values": lambda infos: infos.values(),
    "items": lambda infos: infos.items(),
    "pop": lambda infos: infos.pop("final_info"),
    "popitem": lambda infos: infos.popitem(),
    "setdefault": lambda infos: infos.setdefault("final_info", 0),
    "update": lambda infos: infos.update({"final_info": 0}, other=1),
    "clear": lambda infos: infos.clear(),
    "set": lambda infos: operator.setitem(infos, "final_info", 0),
    "delete": lambda infos: operator.delitem(infos, "final_info"),
    "delete nothing": lambda infos: operator.delitem(infos, "nothing"),
    "copy": lambda infos: infos.copy(),
    "dict": dict,
    "**": lambda infos: dict(**infos),
    "{**}": lambda infos: {"other": 1, **infos},
    "|": lambda infos: infos | {"other": 1},
    "| of another": lambda infos: {"other": 1} | infos,
    "| of no dictionary": lambda infos: infos | 1,
    "|=": lambda infos: operator.ior(infos, {"other": 1}) is infos,
    "== of nothing": lambda infos: infos == {},
    "nothing ==": lambda infos: {} == infos,  # noqa: SIM300
    "!=": lambda infos: infos != {},
    "<": lambda infos: infos < {},
    "hash": hash,
    "sorted": sorted,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_first_use_finds_what_every_other_dictionary_would_have(use: Use) -> None:
    [infos], [expected] = infos_of_ends(), map(plain, infos_of_ends())
    found = shown(use, infos)
    assert found.replace("rlox._core.EndInfos", "dict") == shown(use, expected)


def test_two_that_nobody_has_read_are_compared_entry_by_entry() -> None:
    one, other = infos_of_ends(2)
    with pytest.raises(
        ValueError, match="ambiguous"
    ):  # what NumPy says of arrays that are compared
        one == other  # noqa: B015


@WHEN_READ
def test_infos_that_are_read_later_are_still_those_of_their_step() -> None:
    late = infos_of_ends(40)
    at_once = [repr(infos) for infos in infos_of_ends(40)]
    assert [repr(infos) for infos in late] == at_once
    assert {type(infos).__name__ for infos in late} == {"EndInfos"}


@pytest.mark.parametrize(
    "copied", [dict, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_are_plain_dictionaries(copied: Use) -> None:
    [infos], [expected] = infos_of_ends(), infos_of_ends()
    found = copied(infos)
    assert type(found) is dict
    assert repr(found) == repr(expected)


def test_infos_that_hold_themselves_are_collected() -> None:
    [infos] = infos_of_ends()
    held = weakref.ref(infos["final_obs"])
    infos["itself"] = infos
    del infos
    gc.collect()
    assert held() is None
