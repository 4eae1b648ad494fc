"""Writes records of long runs over the whole project: a file for programs, and a page for
people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def keep(record: Mapping[str, Any], page: str, folder: Path, what: str = "") -> Path:
    """Write a record, which has a `date` and a `machine`, and its page, into the machine's folder,
    under the date and `what`. Returns the record's path. Raises NotWrittenError."""
    from rlox_opt.system.files import write_new
    from rlox_opt.system.machine import slug

    folder /= slug(record["machine"])
    stem = record["date"].replace(":", "") + what
    path = write_new(json.dumps(record, indent=1) + "\n", folder, stem)
    write_new(page, folder, path.stem, ".md")
    return path
