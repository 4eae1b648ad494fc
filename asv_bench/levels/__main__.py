"""`python -m asv_bench.levels`: scores detectors of level changes on synthetic histories."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from asv_bench.injected.journal import Journal
from asv_bench.levels import scores
from asv_bench.levels.detectors import every
from asv_bench.levels.synthetic import NOISES
from rlox.opt import trust
from rlox.opt.exits import INTERRUPTED
from rlox.opt.progress import reporter
from rlox.profiling.machine import ROOT, commit

JOURNAL = ROOT / "target" / "levels.jsonl"
_EXAMPLES = """\
examples:
  python -m asv_bench.levels                          the whole table; an hour
  python -m asv_bench.levels --only levels            ours alone; minutes
  python -m asv_bench.levels --only levels asv --noise gauss --flat 1000

What is done is noted at once in target/levels.jsonl: after a Ctrl-C the same command goes
on where it was. A finished run leaves a record in asv_bench/record/, of all that was noted of these
detectors. ruptures is scored where it is installed: `uv pip install ruptures`; it is slow. A
detector whose code has changed is scored anew.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.levels", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--only", metavar="NAME", nargs="+", help="detectors whose name begins so")
    add("--noise", metavar="NAME", nargs="+", choices=NOISES, help=", ".join(NOISES))
    for what, default, text in (
        ("flat", 400, "histories without a change"),
        ("change", 200, "with one"),
        ("live", 50, "looked at after every commit"),
    ):
        add(f"--{what}", metavar="N", type=int, default=default, help=f"{text} (%(default)s)")
    arguments = parser.parse_args(argv)
    detectors = [
        d for d in every() if not arguments.only or d.name.startswith(tuple(arguments.only))
    ]
    if not detectors:
        known = ", ".join(detector.name for detector in every())
        parser.error(f"--only: {' '.join(arguments.only)!r} begins the name of none: {known}")
    counts = {name: getattr(arguments, name) for name in ("flat", "change", "live")}
    noises = arguments.noise or [*NOISES]
    steps = [*scores.steps(detectors, noises, counts)]
    journal = Journal(JOURNAL, ())
    interrupted = False
    with reporter() as progress:
        try:
            journal.run(steps, progress)
        except KeyboardInterrupt:
            interrupted = True
    of = {(d.name, d.version, noise) for d in detectors for noise in noises}
    rows = [row for row in journal.rows if (row["detector"], row["version"], row["noise"]) in of]
    cells = scores.cells(rows)
    print("\n".join(scores.table(cells)))
    if interrupted:
        return INTERRUPTED
    head, dirty = commit()
    path, _ = trust.keep("levels", commit=head, dirty=dirty, near=scores.NEAR, cells=cells)
    print(f"\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
