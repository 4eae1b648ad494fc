"""The public names of the extension, from rlox/_core.pyi, and of the pairs; and the names of
calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rlox._laboratory import pairs

STUB = Path(__file__).resolve().parents[2] / "rlox" / "_core.pyi"


def surface() -> set[str]:
    """`function`, `Class`, `Class.member`, `Class.member=` and `pairs.function`."""
    found = set[str]()
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.decorator_list:  # `final`: no type alone
            found |= set(_members(node))
    return found | {f"pairs.{name}" for name in _of_pairs()}


def _members(node: ast.ClassDef) -> list[str]:
    names = [node.name]
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name != "__new__":
            sets = any(isinstance(of, ast.Attribute) for of in member.decorator_list)
            names.append(f"{node.name}.{member.name}{'=' if sets else ''}")
    return names


def _of_pairs() -> list[str]:
    functions = [name for name in vars(pairs) if not name.startswith("_")]
    arm = [name for name in vars(pairs.Arm) if not name.startswith("_")]
    return [*functions, *(f"Arm.{name}" for name in arm)]


_PAIRS = {of: f"pairs.{name}" for name, of in vars(pairs).items() if callable(of)}


def name_of(call: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """The name of a call in the surface; attributes are got, set and measured by `getattr`,
    `setattr` and `len`."""
    if call in (getattr, setattr, len):
        member = "__len__" if call is len else arguments[1]
        return f"{type(arguments[0]).__name__}.{member}{'=' if call is setattr else ''}"
    owner = getattr(call, "__self__", None)
    if isinstance(call, type) or owner is None or isinstance(owner, ModuleType):
        return _PAIRS.get(call, call.__name__)
    inside = "pairs." if isinstance(owner, pairs.Arm) else ""
    return f"{inside}{type(owner).__name__}.{call.__name__}"
