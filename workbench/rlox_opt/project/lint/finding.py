"""A finding: one fault of a suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What is wrong at `line` of `file` (0 if no line is known) with `name`, which is a benchmark
    or another name in that line; why it matters, and the remedy."""

    file: str
    line: int
    check: str
    """The check that found it: "uncollected", "unused parameter", "unseeded", "shared state",
    "fails", "drift", "below the clock"."""

    name: str
    what: str
    why: str
    remedy: str

    def told(self) -> str:
        """The finding as one line."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.name}: {self.what}; {self.why}; {self.remedy}"
