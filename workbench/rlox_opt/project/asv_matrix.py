"""The matrix of an asv.conf.json: which combination of requirements and variables is used."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from rlox_opt.system.usage import UsageError

Key: TypeAlias = "tuple[str, str]"
"""A key of the matrix or of a rule: its kind (req, env, env_nobuild; "" for the other keys of a
rule) and its name."""

Combination: TypeAlias = "dict[Key, str]"
"""A value for each key that has one; "" is any version."""

_KINDS = ("req", "env", "env_nobuild")
_RULES = ("python", "environment_type", "sys_platform")
_MOST_TRIED = 10_000  # combinations, if `exclude` removes the first ones


def first(
    matrix: Mapping[str, Any],
    exclude: Sequence[Mapping[str, Any]],
    include: Sequence[Mapping[str, Any]],
    pythons: Sequence[str],
    environment_type: str,
    path: PurePosixPath,
) -> tuple[Combination, tuple[str, ...], int]:
    """The first combination that no rule of `exclude` matches, otherwise the first of `include`;
    the versions of Python for it; and the number of combinations before `exclude`.

    Raises:
        UsageError: asv would not accept these values, or none is left; `path` is the file's.
    """
    keys = _kinds(matrix, path, "matrix")
    values = {key: _listed(value, path, f"matrix: {key[1]}") for key, value in keys.items()}
    rules = [_rule(rule, path, "exclude") for rule in exclude]
    added = [_rule(rule, path, "include") for rule in include]
    here: Combination = {("", "sys_platform"): sys.platform}
    if environment_type:
        here["", "environment_type"] = environment_type
    count = math.prod(map(len, values.values())) + len(added)
    for python, of in itertools.islice(_each(pythons, values), _MOST_TRIED):
        if not _excluded(rules, python, of, here):
            fit = tuple(each for each in pythons if not _excluded(rules, each, of, here))
            return of, fit, count
    for rule in added:
        if _matches({key: text for key, text in rule.items() if key in here}, here):
            only = {key: text for key, text in rule.items() if text is not None}
            return {k: text for k, text in only.items() if k[0]}, (only["", "python"],), count
    raise UsageError(
        f"{path}: `exclude` leaves no combination of `matrix` and `pythons`, of the first "
        f"{min(count * max(1, len(pythons)), _MOST_TRIED)}; take a rule out"
    )


def _each(
    pythons: Sequence[str], values: Mapping[Key, list[str | None]]
) -> Iterator[tuple[str, Combination]]:
    """Combinations in asv's order."""
    for python in pythons or ("",):
        for chosen in itertools.product(*values.values()):
            pairs = zip(values, chosen, strict=True)
            yield python, {key: text for key, text in pairs if text is not None}


def _excluded(
    rules: list[dict[Key, str | None]], python: str, combination: Combination, here: Combination
) -> bool:
    of = combination | here | ({("", "python"): python} if python else {})
    return any(_matches(rule, of) for rule in rules)


def _matches(rule: Mapping[Key, str | None], of: Combination) -> bool:
    """Whether all keys of a rule match. A regular expression must match the whole text; None
    matches a missing key."""
    return all(
        key not in of if text is None else key in of and re.fullmatch(text, of[key]) is not None
        for key, text in rule.items()
    )


def _kinds(
    table: Mapping[str, Any], path: PurePosixPath, where: str, bare: Sequence[str] = ()
) -> dict[Key, Any]:
    """A matrix or a rule by kind and name, from asv's new form or from its old one, which has only
    requirements."""
    found = {("", name): table[name] for name in bare if name in table}
    rest = {name: value for name, value in table.items() if name not in bare}
    if not any(kind in rest for kind in _KINDS):
        return found | {("req", name): value for name, value in rest.items()}
    for kind, inner in rest.items():
        if kind not in _KINDS:
            raise UsageError(
                f"{path}: `{where}` has `{printable(kind)}` beside {', '.join(_KINDS)}; put it "
                "into one of them"
            )
        if not isinstance(inner, dict):
            raise UsageError(f"{path}: `{where}: {kind}` is no object of names and values")
        found |= {(kind, name): value for name, value in inner.items()}
    return found


def _rule(table: Mapping[str, Any], path: PurePosixPath, where: str) -> dict[Key, str | None]:
    rule = {
        key: _text(value, path, f"{where}: {key[1]}")
        for key, value in _kinds(table, path, where, _RULES).items()
    }
    if where == "include":
        if not rule.get(("", "python")):
            raise UsageError(f"{path}: a rule of `include` names no `python`; write which it is of")
        return rule
    for key, text in rule.items():
        try:
            re.compile(text or "")
        except (re.error, RecursionError, OverflowError) as error:
            shown = printable((text or "")[:60])
            raise UsageError(
                f"{path}: `exclude: {printable(key[1])}` is {shown!r}, no regular expression: "
                f"{error}"
            ) from None
    return rule


def _listed(value: Any, path: PurePosixPath, where: str) -> list[str | None]:
    """The values of a key of the matrix. None means that the key is absent, "" any version."""
    values = value if isinstance(value, list) else [value]
    return [_text(one, path, where) for one in values] or [""]


def _text(value: Any, path: PurePosixPath, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value}"
    shown = printable(repr(value)[:60])
    raise UsageError(f"{path}: `{printable(where)}` has {shown}; it takes texts, or null")


def printable(text: str) -> str:
    """A text without characters that control a terminal."""
    return "".join(of if of.isprintable() else "\N{REPLACEMENT CHARACTER}" for of in text)
