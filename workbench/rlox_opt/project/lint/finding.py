"""One thing that is wrong with a suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What is wrong at `line` of `file` (0 where no line is known), with `name`, a benchmark or
    what else stands there; why it matters, and what to do."""

    file: str
    line: int
    check: str
    """Of which kind it is: "uncollected", "unused parameter", "unseeded", "shared state", "fails",
    "drift", "below the clock"."""

    name: str
    what: str
    why: str
    remedy: str

    def told(self) -> str:
        """In a line."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.name}: {self.what}; {self.why}; {self.remedy}"
