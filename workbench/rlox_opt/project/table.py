"""Adds a setting to `[tool.rlox-opt]`. Every other byte of the file stays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rlox_opt.system import schema
from rlox_opt.system.usage import UsageError

_HEAD = re.compile(r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*rlox-opt[ \t]*\][^\n]*(\n|\Z)", re.MULTILINE)


def with_setting(text: str, name: str, value: str, path: Path) -> str:
    """The text of the pyproject.toml at `path`, with a setting added to our table. If there is no
    such table, it is added at the end.

    Raises:
        NotReadError: the text is no TOML.
        UsageError: the setting has another value, or the table is written in a way that nothing can
            be added to.
    """
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    before = schema.parse(text, dict[str, Any], path)
    tool = before.get("tool", {})
    ours = tool.get("rlox-opt", {}) if isinstance(tool, dict) else {}
    if isinstance(ours, dict) and name in ours:
        if ours[name] == value:
            return text
        raise UsageError(
            f"{path}: has {name} = {json.dumps(ours[name])} under [tool.rlox-opt]; write {line} "
            "there instead"
        )
    end = "\r\n" if "\r\n" in text else "\n"
    if head := _HEAD.search(text):
        gap = "" if head[1] else end
        after = f"{text[: head.end()]}{gap}{line}{end}{text[head.end() :]}"
    else:
        gap = "" if not text else end if text.endswith("\n") else end * 2
        after = f"{text}{gap}[tool.rlox-opt]{end}{line}{end}"
    try:
        if schema.parse(after, dict[str, Any], path)["tool"].pop("rlox-opt") == {
            **ours,
            name: value,
        }:
            return after
    except (ValueError, LookupError, TypeError):
        pass
    raise UsageError(f"{path}: cannot be added to; write {line} under [tool.rlox-opt] by hand")
