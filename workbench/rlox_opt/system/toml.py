"""TOML, which Python reads itself from 3.11 on."""

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError


def loads(text: str) -> dict[str, Any]:
    """The table in a text. Raises TOMLDecodeError, and RecursionError of deep nesting."""
    table: dict[str, Any] = tomllib.loads(text)
    return table
