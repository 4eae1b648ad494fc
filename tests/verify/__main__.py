"""`make verify`: checks that guard the main claims and are too long for CI, and their record."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from long_runs import keep  # noqa: E402
from steps import ROOT, STEPS, Step  # noqa: E402

RECORDS = HERE / "record"
LOGS = ROOT / "target" / "verify"  # the whole output of each step, and what is known so far
_TAIL_LINES = 20
_TOLD_EVERY_S = 60.0
GOOD, FAILED, CANNOT_TELL, OWN_ERROR, INTERRUPTED = (
    0,
    1,
    2,
    3,
    130,
)  # as workbench/rlox_opt/system/exits.py has them
PASSED = "passed"
_EXAMPLES = """\
examples:
  make verify                                 all steps: some hours on two cores
  make verify STEPS="compiled torchrun"       some
  make verify ARGS=--resume                   those that have not passed yet at this commit
  make verify ARGS=--list                     the steps, and what each guards

The record, with the result and the seconds of each step, goes to tests/verify/record/MACHINE/, the
output of each step to target/verify/. --resume takes what passed at this commit in a clean tree.

exit codes (make turns each but 0 into 2; `python tests/verify` does not):
  0  all steps passed
  1  some failed
  2  asked wrongly, or some could not be run: something is missing, or all tests were skipped
  3  an error of its own
  130  interrupted: what is known is recorded
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make verify", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("steps", metavar="STEP", nargs="*", help="of the list (default: all)")
    add("--resume", action="store_true", help="leave out what passed at this commit")
    add("--list", action="store_true", help="print the steps, and stop")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    arguments = parser.parse_args(argv)
    known = {step.name: step for step in STEPS}
    for name in arguments.steps:
        if name not in known:
            parser.error(f"STEP: is {name!r}, expected some of {', '.join(known)}")
    steps = [known[name] for name in dict.fromkeys(arguments.steps)] or [*STEPS]
    if arguments.list:
        told = [f"{step.name:13} {step.guards}" for step in steps]
        print(json.dumps([*known]) if arguments.json else "\n".join(told))
        return GOOD
    try:
        return verify(steps, resume=arguments.resume, as_json=arguments.json)
    except OSError as error:  # nothing can be written
        _tell(f"make verify: {error}")
        return OWN_ERROR


def verify(steps: Sequence[Step], *, resume: bool = False, as_json: bool = False) -> int:
    """Run `steps`, record and print their results; returns the exit code."""
    from rlox_opt.system import files

    start, where = time.monotonic(), _where()
    files.check_folder(RECORDS)
    LOGS.mkdir(parents=True, exist_ok=True)
    known = LOGS / f"{where['commit'] or 'unknown'}.jsonl"
    before = _passed(known) if resume and not where["dirty"] else {}
    rows: list[dict[str, Any]] = []
    complete = True
    try:
        for number, step in enumerate(steps, 1):
            if row := before.get(step.name):
                _tell(f"{number}/{len(steps)} {step.name}: passed {row['date']}")
                rows.append(row)
                continue
            _tell(f"{number}/{len(steps)} {step.name}: {step.guards} …")
            row = {"step": step.name, "date": _now(), **_run(step)}
            rows.append(row)
            _tell(f"{number}/{len(steps)} {step.name}: {row['result']} ({row['seconds']:.0f} s)")
            if row["result"] == PASSED and not where["dirty"]:
                files.add_row(row, known)
    except KeyboardInterrupt:
        complete = False
    not_run = [step.name for step in steps[len(rows) :]]
    record = {
        "schema": 1,
        **where,
        "seconds": round(time.monotonic() - start),
        "complete": complete and len(steps) == len(STEPS),
        "failed": [row["step"] for row in rows if row["result"] != PASSED],
        "not_run": not_run + [s.name for s in STEPS if s not in steps],
        "steps": rows,
    }
    if rows:
        path = keep(record, table(record), RECORDS)
        record["record"] = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    print(json.dumps(record) if as_json else table(record), flush=True)
    if not complete:
        return INTERRUPTED
    results = {row["result"] for row in rows}
    if results & {"failed", "too late"}:
        return FAILED
    return GOOD if results == {PASSED} else CANNOT_TELL


def _run(step: Step) -> dict[str, Any]:
    """Run a step; returns its result."""
    for program, remedy in step.needs.items():
        if shutil.which(program) is None:
            why = f"{program} is not installed: {remedy}"
            return {"command": "", "result": "could not run", "seconds": 0.0, "why": why}
    report, log = LOGS / f"{step.name}.xml", LOGS / f"{step.name}.log"
    report.unlink(missing_ok=True)
    command = step.runs(report)
    start = time.monotonic()
    status = _ended(command, log, step.limit_s)
    row: dict[str, Any] = {
        "command": " ".join(_short(word) for word in command),
        "result": {0: PASSED, None: "too late"}.get(status, "failed"),
        "exit": status,
        "seconds": round(time.monotonic() - start, 1),
    }
    if step.tests:
        row |= _counted(report)
        if status == 0 and row["tests"] == len(row["skipped"]):
            row["result"] = "could not run"
    if row["result"] != PASSED:
        lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
        row["why"] = "\n".join(lines[-_TAIL_LINES:])
    return row


def _short(word: str) -> str:
    """The word without this machine's folders."""
    return word.replace(sys.executable, "python").replace(f"{ROOT}/", "")


def _ended(command: Sequence[str], log: Path, limit_s: float) -> int | None:
    """The exit status; None if it took too long and was ended with all that it started."""
    start = time.monotonic()
    end = start + limit_s
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            while True:
                try:
                    return process.wait(min(_TOLD_EVERY_S, max(0.0, end - time.monotonic())))
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= end:
                        return None
                    minutes = (time.monotonic() - start) / 60
                    _tell(f"    {minutes:.0f} min of at most {limit_s / 60:.0f}; {log}")
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    from rlox_opt.system.process import end_group

    if process.poll() is None:
        end_group(process)


def _counted(report: Path) -> dict[str, Any]:
    """The counts of pytest's report: how many tests there were, which failed, and why some were
    skipped."""
    if not report.exists():
        return {"tests": 0, "failures": [], "skipped": []}
    cases = [*ElementTree.parse(report).getroot().iter("testcase")]
    name = {case: f"{case.get('classname')}::{case.get('name')}" for case in cases}
    skipped = [(name[case], of) for case in cases if (of := case.find("skipped")) is not None]
    return {
        "tests": len(cases),
        "failures": [
            name[case]
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ],
        "skipped": [f"{what}: {of.get('message')}" for what, of in skipped],
    }


def _passed(known: Path) -> dict[str, dict[str, Any]]:
    """The steps that passed before at this commit."""
    if not known.exists():
        return {}
    rows = [json.loads(line) for line in known.read_text(encoding="utf-8").splitlines()]
    return {row["step"]: row for row in rows if row["result"] == PASSED}


def _where() -> dict[str, Any]:
    """The time, the commit and the machine."""
    from rlox_opt.system.machine import commit, machine

    revision, dirty = commit(ROOT)
    return {"date": _now(), "commit": revision, "dirty": dirty, "machine": machine()}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def table(record: Mapping[str, Any]) -> str:
    """The record in Markdown."""
    guards = {step.name: step.guards for step in STEPS}
    dirty = " and changes" if record["dirty"] else ""
    failed = ", ".join(record["failed"]) or "none"
    lines = [
        "# What guards the headlines",
        "",
        f"{record['date']}, commit {(record['commit'] or 'unknown')[:10]}{dirty}, "
        f"{record['machine']['cpu']}, {record['machine']['cores']} cores, {record['seconds']} s. "
        f"Not passed: {failed}. Not run: {', '.join(record['not_run']) or 'none'}.",
        "",
        "| step | guards | result | seconds | tests |",
        "|---|---|---|---:|---|",
    ]
    for row in record["steps"]:
        tests = f"{row['tests']}, {len(row['skipped'])} skipped" if "tests" in row else ""
        lines.append(
            f"| {row['step']} | {guards.get(row['step'], '')} | {row['result']} "
            f"| {row['seconds']:.0f} | {tests} |"
        )
    for row in record["steps"]:
        if row.get("skipped"):
            lines += ["", f"Skipped in {row['step']}:", *(f"- {what}" for what in row["skipped"])]
        if "why" in row:
            lines += ["", f"{row['step']} {row['result']}:", "```", row["why"], "```"]
    return "\n".join(lines) + "\n"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
