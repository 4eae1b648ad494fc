"""Both twins of every optimisation, commit after commit, from the pairs in the laboratory.

asv times one twin after the other. That gives the history of each twin, but no verdict between
them, which is what `rlox-opt cmp` is for.
"""

import os
from functools import cache

from benchmarks.skip import skip_unless

try:
    from rlox._laboratory import pairs
except ImportError:  # not built, or an older commit, whose shipped extension may have the pairs
    from rlox import _core

    pairs = getattr(_core, "pairs", None)

CELLS = {}
if pairs:
    # The largest sizes would take a second of preparation a process.
    CELLS = {
        f"{id_} {workload} " + ",".join(f"{name}={n}" for name, n in size.items()): (
            id_,
            workload,
            size,
        )
        for id_, workload, sizes in pairs.catalogue()
        for size in sizes[:2]
    }

TWINS = ("baseline", "optimized")


@cache
def arm(cell, twin):
    """A twin, checked against the other before its first call."""
    shipped = "MATURIN_PEP517_ARGS" not in os.environ
    skip_unless(shipped, "every build holds both twins: those of the one that ships are timed")
    pairs.contest(*CELLS[cell], 0.0, 0)  # checks that they return the same
    return pairs.Arm(*CELLS[cell], twin)


class Pairs:
    """Ten calls a time, so that what Python adds is little."""

    rounds = 2
    repeat = (10, 20, 5.0)
    params = (list(CELLS), TWINS)
    param_names = ("cell", "twin")

    def time_ten_calls(self, cell, twin):
        arm(cell, twin).time(10)
