"""`rlox-opt peers threads`: what a second thread brings, alone and beside busy programs."""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.cli.peers_kind import Report, add_kind, conclude
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system import plugins
from rlox_opt.system.usage import UsageError

_HERE = Path(__file__).parent
# Numbers of busy processes beside the measured one, and their priority.
_BESIDE = ((0, "equal"), (1, "lowest"), (2, "lowest"), (1, "equal"), (2, "equal"))
_SECONDS = 1.5
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
    view, readings = (plugins.load(_HERE / name) for name in ("sharing_page.py", "readings.py"))
    worker = _HERE / "sharing_worker.py"
    cases = [
        {"case": case, "beside": [number, priority]}
        for case in plugins.load(worker).CASES
        for number, priority in _BESIDE
    ]
    of = readings.Readings(arguments.project, "threads", worker, cases, _asked, _summary)
    return conclude(of, arguments, Report.of(view))


def _asked(case: Mapping[str, Any]) -> list[str]:
    """What the worker is asked for."""
    number, priority = case["beside"]
    return [case["case"], str(number), priority, str(_SECONDS)]


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Two threads' speed over one's, geometric mean over runs with its 95 % interval."""
    logs = [row["log_ratio"] for row in rows]
    return {
        "ratio": math.exp(statistics.fmean(logs)),
        "ci95": list(ratio_interval(logs, 0.05)) if len(logs) > 1 else None,
        "one_s": statistics.median(row["one_s"] for row in rows),
        "others": statistics.median(row["others"] for row in rows),
    }
