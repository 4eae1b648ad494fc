"""`python -m asv_bench.levels`: scores detectors of level changes on synthetic histories."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rlox_opt.project import calibration
from rlox_opt.system.exits import GOOD, INTERRUPTED
from rlox_opt.system.progress import reporter

from asv_bench.injected.journal import Journal
from asv_bench.levels import families, scores
from asv_bench.levels.detectors import every
from asv_bench.levels.synthetic import NOISES
from asv_bench.project import PROJECT

JOURNAL = PROJECT.root / "target" / "levels.jsonl"
_EXAMPLES = """\
examples:
  python -m asv_bench.levels                          the whole table; an hour
  python -m asv_bench.levels --only levels            ours alone; minutes
  python -m asv_bench.levels --only levels asv --noise gauss --flat 1000
  python -m asv_bench.levels --only levels --noise recorded --first 100000

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
    known = [*NOISES, *families.KINDS]
    add("--noise", metavar="NAME", nargs="+", choices=known, help=", ".join(known))
    for what, default, text in (
        ("flat", 400, "histories without a change, or families of such"),
        ("change", 200, "with one"),
        ("live", 50, "looked at after every commit"),
        ("first", 0, "number of the first history, its seed: another one for fresh histories"),
    ):
        add(f"--{what}", metavar="N", type=int, default=default, help=f"{text} (%(default)s)")
    arguments = parser.parse_args(argv)
    detectors = [
        d for d in every() if not arguments.only or d.name.startswith(tuple(arguments.only))
    ]
    if not detectors:
        there = ", ".join(detector.name for detector in every())
        parser.error(f"--only: {' '.join(arguments.only)!r} begins the name of none: {there}")
    counts = {name: getattr(arguments, name) for name in ("flat", "change", "live")}
    noises = arguments.noise or known
    first = arguments.first
    steps = [
        *scores.steps(detectors, [name for name in noises if name in NOISES], counts, first),
        *families.steps(detectors, [n for n in noises if n in families.KINDS], counts, first),
    ]
    journal = Journal(JOURNAL, ())
    interrupted = False
    with reporter() as progress:
        try:
            journal.run(steps, progress)
        except KeyboardInterrupt:
            interrupted = True
    of = {(d.name, d.version, first, noise) for d in detectors for noise in noises}
    named = ("detector", "version", "first", "noise")
    rows = [row for row in journal.rows if tuple(row.get(name) for name in named) in of]
    cells = scores.cells(rows)
    print("\n".join(scores.table(cells)))
    if interrupted:
        return INTERRUPTED
    path, _ = calibration.keep(PROJECT, "levels", near=scores.NEAR, first=first, cells=cells)
    print(f"\n{path}")
    return GOOD


if __name__ == "__main__":
    sys.exit(main())
