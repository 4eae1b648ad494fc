"""The page of the keys of `[tool.rlox-opt]`, made of the schema that reads them."""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import tables
from rlox_opt.project.project import Settings

_TABLE = "tool.rlox-opt"


def page() -> str:
    """Every key: its type, its default, what it is."""
    lines = [
        "# Settings", "",
        f"`[{_TABLE}]` of a project's `pyproject.toml` says what `rlox-opt` cannot find, and all "
        "of it may be left out. This page is made of the schema that reads the table; a key that "
        "is not here is refused, with the line that it stands in. "
        "[What is found](project.md) without them is told apart.", "",
    ]  # fmt: skip
    lines += _table(Settings, f"[{_TABLE}]", "")
    return "\n".join(lines).rstrip() + "\n"


def keys() -> list[str]:
    """The dotted names of all keys, from the table on."""
    return [*_keys(Settings, "")]


def _keys(kind: type, before: str) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        yield f"{before}{field.encode_name}"
        for inner in _structs(field.type):
            yield from _keys(inner, f"{before}{field.encode_name}.")


def _table(kind: type, heading: str, before: str) -> Iterator[str]:
    fields, said = msgspec.structs.fields(kind), _said(kind)
    tag = kind.__struct_config__.tag  # type: ignore[attr-defined]
    if before:
        of = f' with `by = "{tag}"`' if tag else ""
        anchor = f"table-{before[:-1]}{f'-{tag}' if tag else ''}".replace(".", "-")
        yield from (
            f"## `{heading}`{of} {{#{anchor}}}",
            "",
            _about(kind),
            "",
        )
    rows = []
    for field in fields:
        name = f"{before}{field.encode_name}"
        meaning = _sentence(said.get(field.name, ""))
        if below := _structs(field.type):
            # What a table is for is said of it; of one that may be several, of the key.
            meaning = meaning or f"{_about(below[0]).split('. ')[0]}."
            meaning = meaning.replace("..", ".")
            meaning += f" Its keys are [below](#{_slug(field, before, below[0])})."
        key = f'<span id="{name.replace(".", "-")}"></span>`{field.encode_name}`'
        rows.append((key, _type(field.type), _default(field), meaning.strip().replace("|", "\\|")))
    yield from tables.lines(("key", "type", "default", "meaning"), rows, optional=2)
    yield ""
    for field in fields:
        for inner in _structs(field.type):
            yield from _table(inner, _heading(field, before), f"{before}{field.encode_name}.")


def _heading(field: msgspec.structs.FieldInfo, before: str) -> str:
    """As TOML names the table."""
    full = f"{_TABLE}.{before}{field.encode_name}"
    return f"[[{full}]]" if "tuple" in str(field.type) else f"[{full}]"


def _slug(field: msgspec.structs.FieldInfo, before: str, kind: type) -> str:
    """The anchor of the heading of the table, which is its first where there are several."""
    tag = kind.__struct_config__.tag  # type: ignore[attr-defined]
    name = f"{before}{field.encode_name}".replace(".", "-")
    return f"table-{name}-{tag}" if tag else f"table-{name}"


def _about(kind: type) -> str:
    """What a table is for, without its name."""
    text = re.sub(r"^`\[[^`]*\]`[.,] ", "", inspect.getdoc(kind) or "")
    return _sentence(text[:1].upper() + text[1:])


def _said(kind: type) -> dict[str, str]:
    """What stands below each field in the source."""
    (of,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(of, ast.ClassDef)
    found = {}
    for field, told in zip(of.body, of.body[1:], strict=False):
        text = told.value.value if isinstance(told, ast.Expr) and isinstance(
            told.value, ast.Constant) else None  # fmt: skip
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found[field.target.id] = str(text or "")
    return found


def _structs(kind: Any) -> list[type]:
    """The tables that may stand under a key."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [inner for of in typing.get_args(kind) for inner in _structs(of)]


def _type(kind: Any) -> str:
    """In words."""
    args = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if isinstance(kind, types.UnionType) or origin is typing.Union:
        # Of two kinds of table it is said once: each has its keys below.
        return " or ".join(dict.fromkeys(_type(of) for of in args if of is not type(None)))
    if origin in (tuple, list):
        return f"list of {_plural(_type(args[0]))}"
    if origin is dict:
        return "table" if args[1] is Any else f"table of {_plural(_type(args[1]))}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "table"
    return {str: "string", bool: "true or false", float: "number", int: "integer"}.get(kind, "any")


def _plural(word: str) -> str:
    return word if word.startswith("list") else f"{word}s"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else None
    if value is None or isinstance(value, msgspec.Struct) or value in ("", (), {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(text: str) -> str:
    """On one line."""
    words = " ".join(text.split())
    return re.sub(r"(?<!`)([*_<>])(?!`)", r"\\\1", words) if "`" not in words else words
