"""The standings as a picture: on one logarithmic axis, how many times as fast as the first peer
each peer is, and how many times as soon it reaches the return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from rlox_opt.views.axes import Axis, Tick, apart, decades
from rlox_opt.views.pages import render

_WIDTH, _LEFT, _RIGHT = 900, 190, 150
_LABEL = 40  # of an axis, at least
_DIGITS, _MORE_DIGITS = (1, 2, 5), (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8)  # of labels


def picture(found: Mapping[str, Any], in_page: bool = False) -> Markup:
    """An SVG file, the fastest peer on top; `in_page` it has no style of its own. What trains
    nothing has no bar, since it may be hundreds of times as fast."""
    rows = sorted(found["table"], key=lambda row: -row["sps"])
    racing = trainers(found)
    ratios = [row[key] for row in racing for key in ("sps_ratio", "reach_ratio") if row[key]]
    points = [1.0] + [x for r in ratios for x in (r["ratio"], *(r["ci95"] or ()))]
    x = Axis.around(points, _LEFT, _WIDTH - _RIGHT, more=0.15)
    digits = _DIGITS if x.high > 4 * x.low else _MORE_DIGITS
    ticks = sorted(decades(x.low, x.high, digits), key=lambda tick: abs(math.log(tick)))
    return render(
        "pictures/race.svg",
        title=f"{task(found)}: how many times as fast as {_held_to(found)}",
        reach=f"{found['job']['reach']:g}" if any(row["reach_ratio"] for row in racing) else "",
        width=_WIDTH,
        rows=[
            (row, "" if row not in racing else "ours" if _is_ours(row) else "other") for row in rows
        ],
        limit=found["job"].get("limit"),
        x=x,
        ticks=[Tick(x(tick), f"{tick:g}×", tick == 1) for tick in apart(ticks, x, _LABEL)],
        in_page=in_page,
    ) + Markup("\n")


def trainers(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of the table that train; in older records all but that of the race's limit."""
    limit = found["job"].get("limit")
    return [row for row in found["table"] if row.get("trains", row["peer"] != limit)]


def task(found: Mapping[str, Any]) -> str:
    """ "PPO on CartPole-v1"; in older records the race is the algorithm."""
    return f"{found['job'].get('algo', found['race']).upper()} on {found['job']['env_id']}"


def _held_to(found: Mapping[str, Any]) -> str:
    """What runs as the peer that all are held to: "Stable-Baselines3", not "sb3"."""
    whats = (row["what"] for row in found["table"] if row["peer"] == found["held_to"])
    return str(next(whats, "") or found["held_to"])


def _is_ours(row: Mapping[str, Any]) -> bool:
    """Whether a peer is the measured checkout; in older records its description says so."""
    return bool(row["ours"] if "ours" in row else row["what"].startswith("this tree"))
