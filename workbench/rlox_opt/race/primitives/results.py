"""The results of restarts: times with intervals, and the ratios of ours to theirs with verdicts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rlox_opt.race.primitives.cases import Case
from rlox_opt.stats.student import ratio_interval

Verdict = Literal["ahead", "behind", "not told apart", "undecided"]

# With n restarts of equal engines, all lie on one side in 1 of 2^(n - 1) runs.
VERDICT_RESTARTS = 5
_OUTSIDE = 0.05  # of an interval


def rows_of(
    case: Case, restarts: Iterable[Mapping[str, Any]], engines: Sequence[str], ours: Sequence[str]
) -> list[dict[str, Any]]:
    """A row for each of `engines` that was timed, in their order: the geometric mean over restarts
    of the seconds of a call with its 95 % interval by Student's t, the same of p99, and for each of
    `ours` the ratio of its time to this engine's.

    `restarts` are what `contest.hold` returned for `case`.
    """
    own = [row for row in restarts if row["case"] == case.key]
    rows = []
    for name in engines:
        times = [row["times"][name] for row in own if name in row["times"]]
        if not times:
            continue
        singles = [took["p99_s"] for took in times if "p99_s" in took]
        rows.append(
            {
                "engine": name,
                "restarts": len(times),
                **_mean("s", "ci95", [took["s"] for took in times]),
                **(_mean("p99_s", "p99_ci95", singles) if singles else {}),
                "against": {
                    one: ratio([row["ratios"][one][name] for row in own if _both(row, one, name)])
                    for one in ours
                    if any(_both(row, one, name) for row in own)
                },
            }
        )
    return rows


def _both(row: Mapping[str, Any], one: str, name: str) -> bool:
    return name in row["ratios"].get(one, ())


def _mean(value: str, interval: str, times: Sequence[float]) -> dict[str, Any]:
    logs = [math.log(seconds) for seconds in times]
    return {value: math.exp(statistics.fmean(logs)), interval: _ends(logs)}


def _ends(logs: Sequence[float]) -> list[float] | None:
    return list(ratio_interval(logs, _OUTSIDE)) if len(logs) > 1 else None


def ratio(logs: Sequence[float]) -> dict[str, Any]:
    """Our time over theirs: the geometric mean over restarts, its 95 % interval by Student's t, and
    the verdict: ahead or behind if the interval excludes 1, undecided with fewer than
    `VERDICT_RESTARTS`."""
    ends = _ends(logs)
    verdict: Verdict = "not told apart"
    if ends is None or len(logs) < VERDICT_RESTARTS:
        verdict = "undecided"
    elif ends[1] < 1:
        verdict = "ahead"
    elif ends[0] > 1:
        verdict = "behind"
    return {"ratio": math.exp(statistics.fmean(logs)), "ci95": ends, "verdict": verdict}


def left_out(
    restarts: Iterable[Mapping[str, Any]], altogether: Mapping[str, str]
) -> dict[str, dict[str, list[str]]]:
    """Engines without times, and why: {engine: {reason: [cases]}}; no case is named if all are. A
    reason that did not occur in every restart says in how many it did."""
    rows = list(restarts)
    every, numbers = {row["case"] for row in rows}, {row["restart"] for row in rows}
    said: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        for name, why in row["left_out"].items():
            said.setdefault((name, why), []).append(row)
    whys: dict[str, dict[str, list[str]]] = {name: {why: []} for name, why in altogether.items()}
    for (name, why), own in said.items():
        cases = list(dict.fromkeys(row["case"] for row in own))
        times = len({row["restart"] for row in own})
        if times < len(numbers):
            why = f"{why}, in {times} of {len(numbers)} restarts"
        whys.setdefault(name, {})[why] = [] if set(cases) == every else cases
    return whys
