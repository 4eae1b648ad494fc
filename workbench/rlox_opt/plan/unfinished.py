"""Keeps what a command has measured so far in a file that outlives an interruption, and writes its
record at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlox_opt.system.files import add_row, read_rows, write, write_new


class Unfinished:
    """The `rows` of a command called `name`, in a file of `folder`. A later command about the same
    `what` continues them."""

    def __init__(self, folder: Path, name: str, what: Any) -> None:
        text = json.dumps(what, sort_keys=True)
        self.path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        self.rows = read_rows(self.path)

    def add(self, row: dict[str, Any]) -> None:
        """Append a row to the file."""
        add_row(row, self.path)
        self.rows.append(row)

    def forget(self, wanted: Callable[[dict[str, Any]], bool] = lambda row: True) -> None:
        """Remove the `wanted` rows, so that the next command begins anew."""
        others = [row for row in read_rows(self.path) if not wanted(row)]
        if others:
            write(self.path, "".join(json.dumps(row) + "\n" for row in others))
        else:
            self.path.unlink(missing_ok=True)


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
