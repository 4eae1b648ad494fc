"""`rlox-opt peers limits`: what this machine can do at most, and how near this library comes."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.cli.peers_kind import Report, add_kind, conclude
from rlox_opt.stats.student import ratio_interval
from rlox_opt.system import plugins
from rlox_opt.system.usage import UsageError

_HERE = Path(__file__).parent
_SECONDS = 1.0
_ABOUT = """\
examples:
  rlox-opt peers limits
  rlox-opt peers limits --runs 3 --no-record
  RLOX_INSTRUCTIONS=avx2 rlox-opt peers limits     as a machine without AVX-512 would

The limits are loops in C that do nothing but multiply and add, take exponentials, or copy. They
need a C compiler. Each operation and its limit are timed in turn, in a new process each time.
Ctrl-C keeps what is timed: the same command goes on.
"""


def add_to(kinds: Any) -> None:
    """Add the kind to `peers`."""
    add_kind(
        kinds,
        "limits",
        run,
        help="what this machine can do at most, and how near we come",
        description="Time products, GAE, KL, stepping, sampling and updates in turn with the "
        "machine's own limits",
        about=_ABOUT,
    )


def run(arguments: argparse.Namespace) -> int:
    """Time what was asked for; returns the exit code."""
    if shutil.which("cc") is None:
        raise UsageError("the limits are measured in C: there is no cc on PATH")
    view, readings = (plugins.load(_HERE / name) for name in ("limits_page.py", "readings.py"))
    worker = _HERE / "limits_worker.py"
    of = plugins.load(worker)
    try:
        of._library()
    except subprocess.CalledProcessError as failed:
        raise UsageError(
            "the limits are measured in C, and cc does not compile limits.c (above it says why): "
            f"{shlex.join(map(str, failed.cmd))}"
        ) from None
    cores = len(os.sched_getaffinity(0))
    every = [("limit", name, (1, 2)) for name in of.PEAKS]
    every += [("operation", name, threads) for name, (_, threads) in of.CASES.items()]
    cases = [
        {"what": what, "case": name, "threads": n}
        for what, name, threads in every
        for n in threads
        if n <= cores
    ]
    contest = readings.Readings(arguments.project, "limits", worker, cases, _asked, _summary)
    return conclude(contest, arguments, Report.of(view))


def _asked(case: Mapping[str, Any]) -> list[str]:
    """What the worker is asked for."""
    return [case["case"], str(case["threads"]), str(_SECONDS)]


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A limit's rate and clock, or an operation's share of its limit with the 95 % interval."""
    first = rows[0]
    if "rate" in first:
        of = {key: statistics.median(row[key] for row in rows) for key in ("rate", "hertz")}
        return {"unit": first["unit"], "level": first["level"], **of}
    logs = [row["log_share"] for row in rows]
    return {
        "share": math.exp(statistics.fmean(logs)),
        "ci95": list(ratio_interval(logs, 0.05)) if len(logs) > 1 else None,
        "call_s": statistics.median(row["call_s"] for row in rows),
        **{key: first[key] for key in ("by", "amount", "level")},
    }
