"""Keeps what a command has measured so far in a file that outlives an interruption, and writes its
record at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlox_opt.system.files import add_row, read_text, understood, write, write_new


class Unfinished:
    """The `rows` of a command called `name`, in a file of `folder`. A later command about the same
    `what` continues them."""

    def __init__(self, folder: Path, name: str, what: Any) -> None:
        text = json.dumps(what, sort_keys=True)
        self.path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        self.rows = kept(self.path)

    def add(self, row: dict[str, Any]) -> None:
        """Append a row to the file."""
        add_row(row, self.path)
        self.rows.append(row)

    def forget(self) -> None:
        """Remove the file, so that the next command begins anew."""
        self.path.unlink(missing_ok=True)


def kept(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, the oldest first; none without a file. Raises NotReadError."""
    text = read_text(path) if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]  # a killed process may have written half a line
    if whole != text:
        write(path, whole)
    with understood(path, "list of runs"):
        return [json.loads(line) for line in whole.splitlines()]


def write_record(
    record: Mapping[str, Any], folder: Path, name: str, beside: Mapping[str, str]
) -> Path:
    """Write a record as `<date>_<name>.json`, and texts `beside` it, by the endings of their names.
    Existing files are not overwritten. Returns the record's path."""
    stem = f"{record['date'].replace(':', '')}_{name}"
    path = write_new(json.dumps(record, indent=1) + "\n", folder, stem)
    for suffix, text in beside.items():
        write_new(text, folder, path.stem, suffix)
    return path
