"""A sampler in a process of its own, and the log of what it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FRAME = r"(?P<name>(?:(?! \(/).)*) \((?P<module>.*?)"
"""A function and, in parentheses, where it is; both samplers write this. The first " (/" begins the
path, which may hold parentheses too; names hold other ones."""


def start(command: Sequence[str], log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start the sampler; `options` are those of `Popen`."""
    with log.open("wb") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options
        )


def said(log: Path) -> str:
    """All that the sampler printed; "" if it did not start."""
    return log.read_text(errors="replace").strip() if log.exists() else ""


def nothing(tool: str, log: Path) -> str:
    """A sentence that says why a tool left no samples."""
    return f"{tool} left no samples: {said(log)[-500:] or 'it said nothing'}"
