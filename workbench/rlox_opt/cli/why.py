"""The part of `rlox-opt diff` that says why: what of a benchmark's calls has grown."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlox_opt.harness.restarts import ContestError
from rlox_opt.project.explained import BENCHMARK_S, MOST, Why
from rlox_opt.stats.paired import FLAGGED

if TYPE_CHECKING:
    from rlox_opt.project.project import Project
    from rlox_opt.project.side_by_side import ComparedBuilds
    from rlox_opt.system.progress import Lines

_OF_BUDGET = 0.15  # at the most, where nobody asks for it
_MOST_S = MOST * BENCHMARK_S
_LEAST_S = 8.0  # below, a look at one benchmark finds nothing


def add_to(parser: argparse.ArgumentParser) -> None:
    """Whether it is asked for."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--why",
        action="store_true",
        default=None,
        help="sample the calls of what changed most on both sides, and say which layer, function "
        f"and lines have grown: {BENCHMARK_S:.0f} s for each of at most {MOST} benchmarks, "
        "beyond the budget. Unasked it is done for what is slower, within the budget",
    )
    which.add_argument(
        "--no-why", action="store_false", dest="why", help="do not look for the reason"
    )


def reserved(asked: bool | None, budget_s: float) -> float:
    """Seconds of the budget that are kept for it; none where it is not wanted, or asked for, which
    gives it time of its own, or where that is too little."""
    seconds = min(_MOST_S, _OF_BUDGET * budget_s)
    return 0.0 if asked is not None or seconds < _LEAST_S else seconds


def left(asked: bool | None, budget_s: float, spent_s: float) -> float:
    """Seconds that it may take, once so many of the budget are spent: what the measuring has left,
    and at the most what was announced."""
    if asked:
        return _MOST_S
    seconds = min(_MOST_S, budget_s - spent_s)
    return 0.0 if asked is not None or seconds < _LEAST_S else seconds


def announced(asked: bool | None, budget_s: float) -> str:
    """What is said of it before anything is measured; "" for nothing."""
    if asked:
        return (
            f"--why: beyond the budget, up to {_MOST_S:.0f} s say why what is "
            "slower or faster is so"
        )
    if asked is not None:
        return ""
    seconds = reserved(asked, budget_s)
    kept = f"{seconds:.0f} s of the budget, and what else is left of it" if seconds else ""
    return (
        f"{kept or 'what is left of the budget'}, up to {_MOST_S:.0f} s, "
        f"{'say' if kept else 'says'} why what is slower is so (--no-why: none)"
    )


def add(project: Project, compared: ComparedBuilds, asked: bool | None, left_s: float,
        progress: Lines) -> None:  # fmt: skip
    """Look into what became slower, where asked for also into what became faster, the most first,
    for `left_s` at the most. After a Ctrl-C what is found is kept, and the comparison is
    incomplete."""
    from rlox_opt.history import why

    names = _chosen(compared, asked)
    until = time.monotonic() + left_s
    for number, name in enumerate(names):
        # What is left is shared by those that are left.
        seconds = min(BENCHMARK_S, (until - time.monotonic()) / (len(names) - number))
        if seconds < _LEAST_S:
            compared.unexplained += (name,)
            continue
        progress.begin(f"why {name}")
        ratio = compared.times.judgements[name].ratio
        try:
            found = why.of_benchmark(project, compared.base, compared.head, name, ratio, seconds)
        except ContestError as error:
            found = Why(name, ratio, missing=[f"its calls: {error}"])
        except KeyboardInterrupt:
            compared.complete = False
            progress.end("interrupted")
            return
        compared.why += (found,)
        progress.end(_said(found))


def _chosen(compared: ComparedBuilds, asked: bool | None) -> Sequence[str]:
    """What became slower, the most first, then what became faster."""
    ratios = {
        name: of.ratio
        for name, of in compared.times.judgements.items()
        if of.verdict in (FLAGGED if asked else ("slower",))
    }
    slower = sorted((n for n in ratios if ratios[n] > 1), key=lambda n: -ratios[n])
    faster = sorted((n for n in ratios if ratios[n] < 1), key=lambda n: ratios[n])
    return [*slower, *faster][:MOST]


def _said(found: Why) -> str:
    leading = next((of for of in (*found.touched, *found.functions, *found.layers)), None)
    return leading.where if leading and leading.surely else "not told"
