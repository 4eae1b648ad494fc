"""What `peers threads` and `peers limits` share: cases that a worker reads in a process of its own,
run after run, in random order."""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.plan.unfinished import Unfinished
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.system.commands import run as run_command

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_LIMIT_S = 120.0
Case = Mapping[str, Any]
Row = Mapping[str, Any]


class Readings:
    """The `cases` of a kind. `python WORKER` with the `arguments` of a case prints its reading, as
    one line of JSON. `summary` makes a line of the table of a case's readings."""

    untimed = "nothing was timed"

    def __init__(
        self,
        project: Project,
        name: str,
        worker: Path,
        cases: Sequence[Case],
        arguments: Callable[[Case], Sequence[str]],
        summary: Callable[[Sequence[Row]], dict[str, Any]],
    ) -> None:
        from rlox_opt.plan.comparing import code, provenance

        self.project, self.name, self.home = project, name, racing.home(project)
        self.where: Mapping[str, Any] = provenance(project, project.installed.build_info())
        self._worker, self._cases = worker, cases
        self._arguments, self._summary = arguments, summary
        self._unfinished = Unfinished(self.home, self.name, code(project, self.where))
        self._failed: list[str] = []

    def install(self, progress: Lines) -> None:
        """Nothing to do: this interpreter has this checkout's build."""

    def time(self, runs: int, progress: Lines) -> None:
        """Read every case in each of `runs`, in random order."""
        progress.begin("timing")
        for number in range(runs):
            left = [case for case in self._cases if not self._rows(case, number)]
            for at, case in enumerate(random.sample(left, len(left))):
                share = (number + at / len(left)) / runs
                arguments = [*self._arguments(case)]
                progress.note(f"run {number + 1}, {', '.join(arguments)}", share)
                command = [sys.executable, self._worker, *arguments]
                ended = run_command(command, self.project.root, limit_s=_LIMIT_S)
                found = _reading(ended.output)
                if ended.status or found is None:
                    why = f"did not end within {_LIMIT_S:.0f} s" if ended.late else "fails"
                    self._failed.append(f"{', '.join(arguments)} {why}: {ended.tail}")
                    continue
                self._unfinished.add({"run": number, **case, **found})
        progress.end(f"{runs} runs of {len(self._cases)} cases")

    def _rows(self, case: Case, number: int | None = None) -> list[Row]:
        """The readings of a case, those of one run if it is given."""
        of = case if number is None else {"run": number, **case}
        return [row for row in self._unfinished.rows if row.items() >= of.items()]

    def kept(self) -> str:
        """What remains after an interruption, as a sentence."""
        return f"{len(self._unfinished.rows)} readings are kept"

    def left_out(self) -> list[str]:
        """A sentence on each case that failed."""
        return self._failed

    def timed(self) -> bool:
        """Whether anything was timed."""
        return bool(self._unfinished.rows)

    def record(self) -> dict[str, Any]:
        """The table, and every reading."""
        return {
            "schema": 1,
            "what": self.name,
            **self.where,
            "table": [
                {**case, **self._summary(own)} for case in self._cases if (own := self._rows(case))
            ],
            "left_out": self._failed,
            "readings": self._unfinished.rows,
        }

    def forget(self) -> None:
        """Remove the readings' file."""
        self._unfinished.forget()


def _reading(output: str) -> dict[str, Any] | None:
    """The last line that is a JSON object, whatever libraries say around it; None without one."""
    for line in reversed(output.splitlines()):
        with contextlib.suppress(json.JSONDecodeError):
            found: object = json.loads(line)
            if isinstance(found, dict):
                return found
    return None
