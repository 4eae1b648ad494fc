"""What a command has measured so far, in a file that outlives an interruption, and its record in
the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlox_opt.system.files import add_row, read_text, understood, write, write_new


class Unfinished:
    """The `rows` of a command called `name`, in a file of `folder`. The same command, which is one
    about the same `what`, goes on from them."""

    def __init__(self, folder: Path, name: str, what: Any) -> None:
        text = json.dumps(what, sort_keys=True)
        self.path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        self.rows = kept(self.path)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        add_row(row, self.path)
        self.rows.append(row)

    def forget(self) -> None:
        """Remove the file, so that the next command makes its own."""
        self.path.unlink(missing_ok=True)


def kept(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, oldest first; none where there is no file. Raises NotReadError."""
    text = read_text(path) if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]  # a killed process may have left half a line
    if whole != text:
        write(path, whole)
    with understood(path, "list of runs"):
        return [json.loads(line) for line in whole.splitlines()]


def write_record(
    record: Mapping[str, Any], folder: Path, name: str, beside: Mapping[str, str]
) -> Path:
    """Write a record as `<date>_<name>.json`, and `beside` it texts by the ends of their names,
    never over others; returns the record's path."""
    stem = f"{record['date'].replace(':', '')}_{name}"
    path = write_new(json.dumps(record, indent=1) + "\n", folder, stem)
    for suffix, text in beside.items():
        write_new(text, folder, path.stem, suffix)
    return path
