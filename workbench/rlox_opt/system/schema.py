"""Files that are read by a schema: a dataclass, a `msgspec.Struct`, or another type that msgspec
knows. A dataclass ignores unknown keys, since later versions may write more. A Struct with
`forbid_unknown_fields` refuses them; it is for files that people write."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from rlox_opt.system.files import NotReadError, read_text

# Numbers for arithmetic: no NaN, no infinity, no integer that is too large for a float.
MOST = sys.float_info.max
Real = Annotated[float, Meta(ge=-MOST, le=MOST)]
NotNegative = Annotated[float, Meta(ge=0, le=MOST)]
Positive = Annotated[float, Meta(gt=0, le=MOST)]
Id = Annotated[str, Meta(pattern=r"^[PR][1-9]\d{0,5}\Z")]  # of an optimisation
Count = Annotated[int, Meta(ge=0, le=2**53)]

_T = TypeVar("_T")
_STEP = re.compile(r"\[(\d+)\]|\[(\.\.\.)\]|\.?([^.\[\]$`]+)")
_KEY = re.compile(r"Object (?:contains|missing) (unknown|required) field `(.*)`")
_SHOWN = 80  # characters of a value


def read(path: Path, kind: type[_T]) -> _T:
    """The contents of a JSON file, or of a TOML file by its name, as a `kind`.

    Raises:
        NotReadError: it cannot be read, is neither JSON nor TOML, or does not fit `kind`; the
            message names the place, the value there and what is accepted.
    """
    return parse(read_text(path), kind, path)


def parse(text: str, kind: type[_T], path: Path) -> _T:
    """The same for the text of a file. Raises NotReadError."""
    toml = path.suffix == ".toml"
    try:
        if text.startswith("\ufeff"):
            raise ValueError("it begins with a byte order mark; save it as UTF-8 without one")
        if toml:
            table = msgspec.toml.decode(text)
        else:
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.json.decode(text, type=kind)
            table = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotReadError(path, f"is not {'TOML' if toml else 'JSON'}: {error}") from error
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise NotReadError(path, _told(error, table, kind)) from error


def within(table: Any, *keys: str) -> Any:
    """The value under these keys in nested tables of any form; None without one."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def table_in(table: Any, *keys: str) -> dict[str, Any]:
    """The table under these keys; an empty one without one."""
    found = within(table, *keys)
    return found if isinstance(found, dict) else {}


def texts_in(listed: object) -> tuple[str, ...]:
    """The texts of a list; none if it is no list."""
    return tuple(of for of in listed if isinstance(of, str)) if isinstance(listed, list) else ()


def written(table: Any, kind: Any, what: str) -> str:
    """A table as JSON that `read` accepts as a `kind`; for files that are never changed.

    Raises:
        NotReadError: `read` would not accept it, or JSON cannot express it.
    """
    try:
        text = json.dumps(table, indent=1, allow_nan=False, default=datetime.isoformat) + "\n"
    except (TypeError, ValueError) as error:
        raise NotReadError(Path(what), f"cannot be written: {error}") from error
    parse(text, kind, Path(what))
    return text


def _told(error: msgspec.ValidationError, table: Any, kind: Any) -> str:
    """What is wrong with a table, where, and what is accepted."""
    what, _, place = str(error).partition(" - at `")
    if place.startswith("key` in `"):
        what = f"has a key of another kind: {what}"
    where, value, types = "", table, _each(msgspec.inspect.type_info(kind))
    for index, some, name in _STEP.findall(place.rpartition("$")[2]):
        key: Any = int(index) if index else name
        if some:
            key = _wrong_key(str(error), table, value, kind)
        value = value[key]
        where += f"[{key}]" if index else f".{key}"
        types = [inner for of in types for inner in _inner(of, key)]
    where = where.lstrip(".")
    if named := _KEY.fullmatch(what):
        full = f"{where}.{named[2]}".lstrip(".")
        if named[1] == "required":
            return f"the key `{full}` is missing"
        names = [f.encode_name for of in types for f in getattr(of, "fields", ())]
        return f"unknown key `{full}`; it may be one of {', '.join(names)}"
    if what.startswith("Invalid enum value"):
        takes = [str(of) for kind in types for of in getattr(kind, "values", ())]
        what = f"it takes {' or '.join(takes)}"
    elif not what.startswith(("Expected", "Invalid", "Number", "Integer")):
        inner = f".{what[1:]}" if what.startswith("`") else f"`: {what}"
        return f"`{where}{inner}" if where else what  # a message of the schema itself
    if "datetime" in what:
        what = "it takes a time with its zone: 2026-01-31T12:00:00Z"
    what = re.sub("^Expected", "it takes", what.partition(", got")[0])
    try:
        shown = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number with too many digits
        shown = type(value).__name__
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return f"`{where}` is {shown}; {what}" if where else f"is {shown}; {what}"


def _wrong_key(told: str, whole: Any, table: dict[str, Any], kind: Any) -> str:
    """The key of a table within the whole whose value causes the error; msgspec does not name it.
    The table is left with this key alone."""
    every = dict(table)
    for key, value in every.items():
        table.clear()
        table[key] = value
        try:
            msgspec.convert(whole, kind)
        except msgspec.ValidationError as error:
            if str(error) == told:
                return key
    raise AssertionError(told)


def _inner(of: Any, key: str | int) -> list[Any]:
    """The types that a type allows under a key."""
    if items := getattr(of, "item_types", ()):
        return _each(items[int(key)])
    types = [field.type for field in getattr(of, "fields", ()) if field.encode_name == key]
    types += [getattr(of, name) for name in ("item_type", "value_type") if hasattr(of, name)]
    return [each for inner in types for each in _each(inner)]


def _each(of: Any) -> list[Any]:
    """The types of a union, or the one type."""
    return [*of.types] if isinstance(of, msgspec.inspect.UnionType) else [of]
