"""`rlox-opt peers threads`: what a second thread brings, alone and beside busy programs."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.peers_kind import Report, add_kind, conclude
from rlox_opt.plan.unfinished import Unfinished
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system import plugins
from rlox_opt.system.commands import run as run_command
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_WORKER = Path(__file__).with_name("sharing_worker.py")
# Numbers of busy processes beside the measured one, and their priority.
_BESIDE = ((0, "equal"), (1, "lowest"), (2, "lowest"), (1, "equal"), (2, "equal"))
_SECONDS = 1.5
_LIMIT_S = 120.0
_ABOUT = """\
examples:
  rlox-opt peers threads
  rlox-opt peers threads --runs 3 --no-record

PPO's and SAC's native updates and a native rollout, with one thread and with two in turn, in a new
process each time. Beside them run 0, 1 and 2 processes that compute without end, at the same
priority and at the lowest. Ctrl-C keeps what is timed: the same command goes on.
"""


def add_to(kinds: Any) -> None:
    """Add the kind to `peers`."""
    add_kind(
        kinds,
        "threads",
        run,
        help="what a second thread brings, alone and beside busy neighbours",
        description="Time native updates and rollouts with two threads against one, while other "
        "processes compute",
        about=_ABOUT,
    )


def run(arguments: argparse.Namespace) -> int:
    """Time what was asked for; returns the exit code."""
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("two threads need two cores, and this process may use one")
    view = plugins.load(Path(__file__).with_name("sharing_page.py"))
    return conclude(Sharing(arguments.project), arguments, Report.of(view))


class Sharing:
    """Each case beside each number of busy processes, run after run."""

    name = "threads"
    untimed = "nothing was timed"

    def __init__(self, project: Project) -> None:
        from rlox_opt.plan.comparing import provenance

        self.project, self.home = project, racing.home(project)
        self.where: Mapping[str, Any] = provenance(project, project.installed.build_info())
        self._cases = list(plugins.load(_WORKER).CASES)
        what = [self.where["commit"], self.where["machine"], _WORKER.read_text(encoding="utf-8")]
        self._unfinished = Unfinished(self.home, self.name, what)
        self._failed: list[str] = []

    def install(self, progress: Lines) -> None:
        """Nothing to do: this interpreter has this checkout's build."""

    def time(self, runs: int, progress: Lines) -> None:
        """Measure every case in each of `runs`, in random order."""
        done = {(row["run"], row["case"], *row["beside"]) for row in self._unfinished.rows}
        every = [(case, *beside) for case in self._cases for beside in _BESIDE]
        progress.begin("timing")
        for number in range(runs):
            left = [one for one in every if (number, *one) not in done]
            for at, (case, n, priority) in enumerate(random.sample(left, len(left))):
                share = (number + at / len(left)) / runs
                progress.note(f"run {number + 1}, {case}, {n} beside", share)
                command = [sys.executable, _WORKER, case, str(n), priority, str(_SECONDS)]
                ended = run_command(command, self.project.root, limit_s=_LIMIT_S)
                if ended.status:
                    self._failed.append(f"{case}, {n} beside, fails: {ended.tail}")
                    continue
                found = json.loads(ended.output.splitlines()[-1])
                self._unfinished.add(
                    {"run": number, "case": case, "beside": [n, priority], **found}
                )
        progress.end(f"{runs} runs of {len(every)} cases")

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
        rows = self._unfinished.rows
        table = []
        for case in self._cases:
            for beside in _BESIDE:
                own = [r for r in rows if r["case"] == case and tuple(r["beside"]) == beside]
                if own:
                    table.append({"case": case, "beside": list(beside), **_summary(own)})
        return {
            "schema": 1,
            "what": self.name,
            **self.where,
            "table": table,
            "left_out": self._failed,
            "readings": rows,
        }

    def forget(self) -> None:
        """Remove the readings' file."""
        self._unfinished.forget()


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Two threads' speed over one's, geometric mean over runs with its 95 % interval."""
    logs = [row["log_ratio"] for row in rows]
    return {
        "ratio": math.exp(statistics.fmean(logs)),
        "ci95": list(ratio_interval(logs, 0.05)) if len(logs) > 1 else None,
        "one_s": statistics.median(row["one_s"] for row in rows),
        "others": statistics.median(row["others"] for row in rows),
    }
