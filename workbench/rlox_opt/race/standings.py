"""The results of a race: a row for each run, and the peers' standings over the rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlox_opt.race.environments import Training
from rlox_opt.stats.student import mean_interval

WINDOW = 50  # episodes in a mean return
_OUTSIDE = 0.05  # of an interval


def row_of(peer: str, number: int, training: Training, reach: float) -> dict[str, Any]:
    """A run as it is kept. `reach_s` is the time at which the mean return of the latest 50 episodes
    first reached `reach`, with compiling; None if it never did."""
    returns = [value for _, _, value in training.episodes]
    reach_s, total = None, 0.0
    for index, (at, _, value) in enumerate(training.episodes):
        total += value - (returns[index - WINDOW] if index >= WINDOW else 0.0)
        if index + 1 >= WINDOW and total / WINDOW >= reach:
            reach_s = at
            break
    latest = returns[-WINDOW:]
    return {
        "round": number,
        "peer": peer,
        "sps": training.steps / (training.train_s - training.compile_s),
        "train_s": training.train_s,
        "compile_s": training.compile_s,
        "steps": training.steps,
        "reach_s": reach_s,
        "final_return": sum(latest) / len(latest) if latest else None,
    }


def standings(
    rows: Sequence[Mapping[str, Any]], order: Sequence[str], limit: str | None = None
) -> list[dict[str, Any]]:
    """A row for each peer that ran, in `order`: medians, and ratios to the first peer, which are
    geometric means over the rounds in which both ran. `limit_ratio` is the speed by that of the
    peer `limit`; None without such a peer."""
    by_peer: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        by_peer.setdefault(row["peer"], {})[row["round"]] = row
    names = [name for name in order if name in by_peer]
    first = by_peer[names[0]]
    return [
        {
            "peer": name,
            "runs": len(own := by_peer[name]),
            "sps": _median(row["sps"] for row in own.values()),
            "sps_ratio": _ratio(own, first, "sps"),
            "limit_ratio": _ratio(own, by_peer[limit], "sps") if limit in by_peer else None,
            "compile_s": _median(row["compile_s"] for row in own.values()),
            "reach_s": _median(r["reach_s"] for r in own.values() if r["reach_s"] is not None),
            "reached": sum(row["reach_s"] is not None for row in own.values()),
            # Inverse to the ratio of speeds: over 1 means sooner.
            "reach_ratio": _ratio(first, own, "reach_s"),
            "final_return": _mean(
                [r["final_return"] for r in own.values() if r["final_return"] is not None]
            ),
        }
        for name in names
    ]


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None


def _ratio(
    above: Mapping[int, Mapping[str, Any]], below: Mapping[int, Mapping[str, Any]], key: str
) -> dict[str, Any] | None:
    logs = [
        math.log(above[n][key] / below[n][key])
        for n in sorted(above.keys() & below.keys())
        if above[n][key] is not None and below[n][key] is not None
    ]
    mean = _mean(logs)
    if mean is None:
        return None
    ends = mean["ci95"] and [math.exp(end) for end in mean["ci95"]]
    return {"ratio": math.exp(mean["mean"]), "ci95": ends}


def _mean(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    ends = list(mean_interval(values, _OUTSIDE)) if len(values) > 1 else None
    return {"mean": sum(values) / len(values), "ci95": ends}
