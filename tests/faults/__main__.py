"""`python tests/faults`: faults and hostile input by the thousand, and their effects."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [
    str(of) for of in (ROOT, HERE.parent, ROOT / "workbench" / "tests")
]  # as pytest has it

import campaign  # noqa: E402
from campaign import Kind, Trial  # noqa: E402
from long_runs import keep  # noqa: E402
from rlox_opt.system.exits import DIFFERENCE, GOOD, INTERRUPTED, OWN_ERROR  # noqa: E402

RECORDS = HERE / "record"
KINDS = {name.replace("_", "-"): name for name in (
    "kills", "full_disk", "hostile_files", "hostile_readers", "command_lines", "boundary_calls",
    "levels", "odd_names",
)}  # fmt: skip
_EXAMPLES = """\
examples:
  python tests/faults                                   all of it: some twenty minutes on two cores
  python tests/faults --only kills --seed 17 --count 1  one trial again
  python tests/faults --only command-lines --count 20000 --seed 100000

A seed decides a trial. What was found is told in a line each, with the command that repeats it.
With all kinds, and as many trials as come unasked, the counts go to tests/faults/record/.

exit codes:
  0  no fault was found
  1  some were
  2  asked wrongly
  3  an error of the campaign itself
  130  interrupted: the counts until then are printed
"""
_TOLD_EVERY_S = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the campaign; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python tests/faults", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--only", metavar="KIND", choices=sorted(KINDS), nargs="+",
        help=f"of {', '.join(sorted(KINDS))}")  # fmt: skip
    add("--seed", metavar="N", type=int, default=1000, help="of the first trial (%(default)s)")
    add("--count", metavar="N", type=int, help="trials of each kind (its own number)")
    add("--workers", metavar="N", type=int, default=len(os.sched_getaffinity(0)),
        help="trials at once (as many as cores: %(default)s)")  # fmt: skip
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    arguments = parser.parse_args(argv)
    for name in ("seed", "count", "workers"):
        value = getattr(arguments, name)
        if value is not None and value < (0 if name == "seed" else 1):
            parser.error(f"--{name}: is {value}, expected {'0' if name == 'seed' else '1'} or more")
    start = time.monotonic()
    rows: dict[str, dict[str, Any]] = {}
    found: list[str] = []
    code = GOOD
    try:
        for name in arguments.only or KINDS:
            kind: Kind = importlib.import_module(KINDS[name])  # type: ignore[assignment]
            seeds = range(arguments.seed, arguments.seed + (arguments.count or kind.LONG))
            heard = _Heard(kind, len(seeds), rows, found)
            campaign.held(kind, seeds, arguments.workers, heard)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        print(f"python tests/faults: {name}: {type(error).__name__}: {error}", file=sys.stderr)
        code = OWN_ERROR
    code = code or (DIFFERENCE if found else GOOD)
    record = {
        "schema": 1,
        **_where(),
        "seconds": round(time.monotonic() - start),
        "seed": arguments.seed,
        "complete": code in (GOOD, DIFFERENCE),
        "kinds": rows,
        "faults": found,
    }
    if arguments.only is None and arguments.count is None and record["complete"]:
        record["record"] = str(keep(record, table(record), RECORDS).relative_to(HERE.parents[1]))
    print(json.dumps(record) if arguments.json else table(record), flush=True)
    return code


class _Heard:
    """Counts the trials of a kind. It reports faults at once, and progress now and then."""

    def __init__(
        self, kind: Kind, trials: int, rows: dict[str, dict[str, Any]], found: list[str]
    ) -> None:
        self._kind, self._trials, self._found = kind, trials, found
        self._row = rows[kind.NAME] = {"trials": 0, "faults": 0, "seconds": 0, "counts": {}}
        self._start = self._told = time.monotonic()

    def __call__(self, trial: Trial) -> None:
        row, now = self._row, time.monotonic()
        row["trials"] += 1
        row["faults"] += len(trial.faults)
        row["seconds"] = round(now - self._start)
        row["counts"] = dict((Counter(row["counts"]) + trial.counts).most_common())
        for line in campaign.lines(self._kind.NAME, trial):
            self._found.append(line)
            print(line, file=sys.stderr, flush=True)
        if now - self._told > _TOLD_EVERY_S or row["trials"] == self._trials:
            self._told = now
            print(f"{self._kind.NAME}: {_progress(row, self._trials)}", file=sys.stderr, flush=True)


def _progress(row: Mapping[str, Any], trials: int) -> str:
    done = row["trials"]
    left = row["seconds"] / done * (trials - done)
    return f"{done} of {trials}, {row['faults']} faults, about {left:.0f} s to come"


def _where() -> dict[str, Any]:
    """The time, the commit and the machine."""
    from rlox_opt.system.machine import commit, machine

    revision, dirty = commit(Path(__file__).resolve().parents[2])
    date = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"date": date, "commit": revision, "dirty": dirty, "machine": machine()}


def table(record: Mapping[str, Any]) -> str:
    """The record in Markdown."""
    dirty = " and changes" if record["dirty"] else ""
    lines = [
        "# Faults and hostile input",
        "",
        f"{record['date']}, commit {(record['commit'] or 'unknown')[:10]}{dirty}, "
        f"{record['machine']['cpu']}, {record['machine']['cores']} cores, {record['seconds']} s, "
        f"seeds from {record['seed']}.",
        "",
        "| kind | trials | faults | seconds | what was done |",
        "|---|---|---|---|---|",
    ]
    for name, row in record["kinds"].items():
        counts = ", ".join(f"{n:,} {what}" for what, n in row["counts"].items())
        lines.append(
            f"| {name} | {row['trials']:,} | {row['faults']} | {row['seconds']} | {counts} |"
        )
    if record["faults"]:
        lines += ["", *(f"- {line.replace('|', chr(0xA6))}" for line in record["faults"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
