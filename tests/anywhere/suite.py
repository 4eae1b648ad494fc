"""Runs the suite in one of the ways of `places`, and counts the results."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from places import KINDS
from rlox_opt.system.scratch import scratch


def run(kind: str, asked: Sequence[str]) -> dict[str, Any]:
    """The results of the tests in one way of running them. Raises `Impossible`."""
    with scratch() as folder:
        report = folder / "report.xml"
        options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *asked]
        with KINDS[kind].place(folder) as place:
            python = [str(place.root / ".venv/bin/python"), *place.python]
            command = [*place.before, *python, *options]
            done = subprocess.run(
                command, cwd=place.root, env=place.environment, stdout=sys.stderr, check=False
            )
        if not report.exists():
            return {"failures": [f"pytest ended with {done.returncode} and left no report"]}
        return counted(ElementTree.parse(report))


def counted(report: ElementTree.ElementTree[Any]) -> dict[str, Any]:
    """The numbers of tests that passed, failed and were skipped in pytest's report, and the names
    of those that failed."""
    counts: Counter[str] = Counter()
    failures = []
    for case in report.iter("testcase"):
        outcome = next((o for o in ("failure", "error", "skipped") if case.find(o) is not None), "")
        counts[outcome or "passed"] += 1
        if outcome in ("failure", "error"):
            failures.append(f"{case.get('classname')}::{case.get('name')}")
    return {"passed": counts["passed"], "skipped": counts["skipped"], "failures": failures}


def told(row: Mapping[str, Any]) -> str:
    """The line that is printed for a way of running."""
    if "not_tried" in row:
        return f"not tried: {row['not_tried']}"
    failed = "".join(f"\n  {name}" for name in row["failures"])
    counts = f"{row.get('passed', 0)} passed, {row.get('skipped', 0)} skipped"
    return f"{counts}, {len(row['failures'])} failed in {row['seconds']} s{failed}"
