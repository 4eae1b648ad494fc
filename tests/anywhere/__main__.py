"""`python tests/anywhere`: runs the suite as on other processors, as another user, elsewhere."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from places import KINDS, Impossible  # noqa: E402
from rlox_opt.history.records import write_new  # noqa: E402
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED  # noqa: E402
from rlox_opt.system.machine import commit, machine, slug  # noqa: E402
from suite import run, told  # noqa: E402

NUMERIC = ["tests/learner", "tests/pairs", "tests/advantage", "tests/buffer", "tests/env"]
_EXAMPLES = """\
examples:
  python tests/anywhere                               all of it: some two hours on two cores
  python tests/anywhere --numeric                     what computes, an hour
  python tests/anywhere --only sse intel --numeric    two kinds of it
  python tests/anywhere --only user -- tests/workbench -x   what comes last goes to pytest

Counts go to tests/anywhere/record/, with the tests that fail.

exit codes:
  0  every test passed, in every way that this machine allows; the record names the others
  1  some failed
  2  asked wrongly, or what --only names could not be tried here
  130  interrupted: what is known is recorded
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite in each way; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python tests/anywhere", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--only", metavar="KIND", choices=[*KINDS], nargs="+", default=[],
        help=f"of {', '.join(KINDS)} (all)")  # fmt: skip
    add("--numeric", action="store_true", help=f"only what computes: {', '.join(NUMERIC)}")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    add("pytest", nargs="*", metavar="ARGUMENT", help="of pytest: files, options (after --)")
    arguments = parser.parse_args(argv)
    asked = [*(NUMERIC if arguments.numeric else []), *arguments.pytest]
    revision, dirty = commit(ROOT)
    record: dict[str, Any] = {
        "schema": 1, "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "commit": revision, "dirty": dirty, "machine": machine(), "pytest": asked, "kinds": {},
        "complete": True,
    }  # fmt: skip
    rows: dict[str, Any] = record["kinds"]
    for kind in arguments.only or KINDS:
        print(f"{kind}: {KINDS[kind].what}", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            rows[kind] = run(kind, asked)
        except Impossible as why:
            rows[kind] = {"not_tried": str(why)}
        except KeyboardInterrupt:
            if not rows:
                return INTERRUPTED
            record["complete"] = False
            break
        rows[kind]["seconds"] = round(time.monotonic() - start)
        print(f"{kind}: {told(rows[kind])}", file=sys.stderr, flush=True)
    path = write_new(
        json.dumps(record, indent=1) + "\n",
        HERE / "record" / slug(record["machine"]), record["date"].replace(":", ""),
    )  # fmt: skip
    print(json.dumps(record) if arguments.json else f"written: {path.relative_to(ROOT)}")
    if not record["complete"]:
        return INTERRUPTED
    if any(row.get("failures") for row in rows.values()):
        return DIFFERENCE
    return CANNOT_TELL if any("not_tried" in rows[kind] for kind in arguments.only) else GOOD


if __name__ == "__main__":
    sys.exit(main())
