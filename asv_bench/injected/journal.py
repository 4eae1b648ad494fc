"""The measurements, one line of JSON each, written at once, so that a run can be continued."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.system.files import add_row, read_rows
from rlox_opt.system.progress import Lines

Row = dict[str, Any]
# Guesses of a step's seconds, builds included, as long as none has been measured.
GUESS_S = {"probe": 80.0, "diff": 60.0, "asv": 60.0, "bisect": 480.0, "attribution": 60.0}


@dataclass(frozen=True)
class Step:
    """One measurement, made by `does`; `title` and `key` identify it in the journal. Expected
    errors are written down, and the next run tries again."""

    tool: str
    title: str
    key: Mapping[str, Any]
    does: Callable[[], Row]


class Journal:
    """The rows of a file."""

    def __init__(self, path: Path, bearable: tuple[type[Exception], ...]) -> None:
        self._path = path
        self._bearable = bearable
        self.rows: list[Row] = read_rows(path)

    def of(self, key: Mapping[str, Any]) -> Row | None:
        """The last row that matches `key` and is no failure."""
        return self._last(key, failed=False)

    def last(self, key: Mapping[str, Any]) -> Row | None:
        """The last row that matches `key`: a success, or otherwise a failure."""
        return self.of(key) or self._last(key, failed=True)

    def run(self, steps: Sequence[Step], progress: Lines) -> None:
        """Do the steps that were not done yet. A KeyboardInterrupt keeps the earlier ones."""
        left = [step for step in steps if self.of(step.key) is None]
        progress.plan([(step.title, self._seconds(step.tool)) for step in left])
        for step in left:
            progress.begin(step.title)
            try:
                said = self.take(step).get("said", "done")
            except self._bearable as error:
                said = f"failed: {error}"
            progress.end(said)

    def take(self, step: Step) -> Row:
        """Do a step and write its row. Errors are raised; expected ones are also written down."""
        start = time.monotonic()
        row: Row = {}
        try:
            row = step.does()
        except self._bearable as error:
            row = {"failed": str(error)}
            raise
        finally:
            if row:
                noted = {of: value for of, value in row.items() if of != "said"}
                seconds = round(time.monotonic() - start, 1)
                # The key comes last: the row is found by it, whatever else it contains.
                self._add({**noted, **step.key, "tool": step.tool, "wall_seconds": seconds})
        return row

    def failures(self, steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
        """The steps that failed, and why."""
        for step in steps:
            if self.of(step.key) is None and (row := self._last(step.key, failed=True)):
                yield step.title, row["failed"]

    def _last(self, key: Mapping[str, Any], failed: bool) -> Row | None:
        for row in reversed(self.rows):
            if ("failed" in row) is failed and all(row.get(k) == of for k, of in key.items()):
                return row
        return None

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        add_row(row, self._path)

    def _seconds(self, tool: str) -> float:
        took = [row["wall_seconds"] for row in self.rows if row["tool"] == tool]
        return statistics.fmean(took) if took else GUESS_S.get(tool, 5.0)
