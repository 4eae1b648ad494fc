"""The operating curve of `rlox-opt diff`: the probability of each verdict, by the true slowdown and
by the scatter of the machine. Runs are simulated, and judged by the verdicts' own code.

    .venv/bin/python asv_bench/operating_curve.py [--runs 400]

In each simulated run one of forty benchmarks takes longer, and restarts scatter normally. The
others do not change; they are there since a verdict among many needs more evidence. The record goes
to asv_bench/record/<machine>/, and from there to the Trust page. It takes a minute.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rlox_opt.project import calibration
from rlox_opt.stats.family import Judgement, judge
from rlox_opt.stats.paired import LOOKS
from rlox_opt.system.exits import GOOD, INTERRUPTED

from asv_bench.project import PROJECT

# Thresholds in per cent with slowdowns in per cent; then standard deviations of a restart.
SLOWDOWNS = {
    1.0: tuple(0.25 * n for n in range(17)),
    3.0: tuple(0.5 * n for n in range(17)),
}
SCATTERS = (0.2, 1.0, 2.0, 5.0)
OTHERS = 39
_UNCHANGED = {
    str(n): Judgement(1.0, (1.0, 1.0), "same", LOOKS[0], 1.0, "same") for n in range(OTHERS)
}


def verdict(rng: random.Random, slowdown: float, scatter: float, threshold: float) -> str:
    """The verdict of one run on a benchmark that is slower by `slowdown` per cent."""
    ratios: list[float] = []
    said = "undecided"
    while said == "undecided" and len(ratios) < LOOKS[-1]:
        look = next(look for look in LOOKS if look > len(ratios))
        middle, sd = math.log1p(slowdown / 100), scatter / 100
        ratios += [rng.gauss(middle, sd) for _ in range(look - len(ratios))]
        of = {"slowed": ratios, **dict.fromkeys(_UNCHANGED, ratios)}
        said = judge(of, math.log1p(threshold / 100), _UNCHANGED)["slowed"].verdict
    return said


def points(runs: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """The share of each verdict, at every threshold, scatter and slowdown."""
    for threshold, slowdowns in SLOWDOWNS.items():
        for scatter in SCATTERS:
            for slowdown in slowdowns:
                rng = random.Random(f"{seed} {threshold} {scatter} {slowdown}")
                counts = Counter(verdict(rng, slowdown, scatter, threshold) for _ in range(runs))
                shares = {said: n / runs for said, n in sorted(counts.items())}
                yield {
                    "threshold": threshold, "scatter": scatter, "slowdown": slowdown,
                    "shares": shares,
                }  # fmt: skip


def main() -> int:
    """Simulate, print and record; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", metavar="N", type=int, default=400, help="a point (%(default)s)")
    runs = parser.parse_args().runs
    if runs < 1:
        parser.error(f"--runs: is {runs}, expected 1 at least")
    simulated = []
    try:
        for point in points(runs):
            simulated.append(point)
            shares = ", ".join(f"{said} {share:.3f}" for said, share in point["shares"].items())
            print(
                f"threshold {point['threshold']:g} %, a restart scatters by {point['scatter']:g} %,"
                f" {point['slowdown']:g} % slower: {shares}"
            )
    except KeyboardInterrupt:
        print("interrupted, nothing is written", file=sys.stderr)
        return INTERRUPTED
    path, _ = calibration.keep(
        PROJECT, "operating-curve", runs=runs, benchmarks=OTHERS + 1, points=simulated
    )
    print(path)
    return GOOD


if __name__ == "__main__":
    sys.exit(main())
