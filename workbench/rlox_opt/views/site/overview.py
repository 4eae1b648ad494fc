"""The overview: a row for each benchmark and feature set, to filter and to sort; and the list of
all commits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlox_opt.history.series import Series, unsearched
from rlox_opt.views import units
from rlox_opt.views.site.figures import against, amount
from rlox_opt.views.site.layout import Page
from rlox_opt.views.site.model import KINDS, Commit, History, Moved, features_title
from rlox_opt.views.site.sparkline import Spark, sparkline

_ORDERS = {
    "moved": "newest change first",
    "size": "largest change first",
    "ratio": "slowest against the control first",
    "text": "name",
}
_CHANGED = {
    "slower": "for the worse",
    "faster": "for the better",
    "unexplained": "unexplained regression",
}
_RECENT = 6  # commits whose level changes are listed
_OF_ONE = 4  # level changes of one commit that are listed


class _Row(NamedTuple):
    """A benchmark with a feature set; `found_by` are the values for filtering and sorting."""

    benchmark: str
    features: str
    spark: Spark
    against: str
    amount: str
    latest: Moved | None
    found_by: Mapping[str, object]


class _Recorded(NamedTuple):
    """A commit in the list of all."""

    commit: Commit
    figures: int
    profiles: str
    levels: str


def overview(history: History) -> Page:
    """`index.html`."""
    commits, at = history.commits, list(history.moved_at.values())
    values = {
        "figures": [
            ("commits", units.count(len(commits))),
            ("series", units.count(len(history.series))),
            ("level changes", units.count(len(history.moved))),
            ("unexplained regressions", units.count(sum(m.unexplained for m in history.moved))),
        ],
        "ends": (commits[0], commits[-1]) if commits else None,
        "recent": [(of[0].commit, of[:_OF_ONE], len(of) - _OF_ONE) for of in at[:_RECENT]],
        "older": len(at) - _RECENT,
        "unsearched": unsearched(history.series),
        "choices": _choices(history),
        "orders": _ORDERS,
        "rows": [_row(history, found) for found in _rows(history)],
    }
    return Page("index.html", "overview", values)


def _rows(history: History) -> list[list[Series]]:
    """The series of each benchmark and feature set, the one that represents it first."""
    found: dict[tuple[str, tuple[str, ...]], list[Series]] = {}
    for name, of in history.by_benchmark.items():
        for one in of:
            found.setdefault((name, one.features), []).append(one)
    return list(found.values())


def _row(history: History, of: Sequence[Series]) -> _Row:
    main = of[0]
    newest = main.points[-1]
    moved = history.moved_in.get((main.benchmark, main.features), [])
    latest = moved[0] if moved else None
    kinds = " ".join(KINDS[one.kind][1] for one in of)
    found_by = {
        "text": f"{main.benchmark} {features_title(main.features)} {kinds}".lower(),
        "features": "+".join(main.features) or "baseline",
        "machine": " ".join(sorted({p.machine for one in of for p in one.points})),
        "changed": " ".join(sorted({word for m in moved for word in _changed(m)})),
        "moved": latest.commit.index if latest else None,
        "size": round(abs(math.log(latest.change.ratio)), 5) if latest else None,
        "ratio": round(_slowness(main, newest.ratio), 5) if newest.ratio else None,
    }
    return _Row(
        main.benchmark,
        features_title(main.features),
        sparkline(main),
        against(newest),
        amount(main.kind, newest.value),
        latest,
        found_by,
    )


def _changed(moved: Moved) -> list[str]:
    """The choices of `_CHANGED` that apply to it."""
    return ["slower" if moved.worse else "faster", *["unexplained"] * moved.unexplained]


def _slowness(series: Series, ratio: float) -> float:
    return 1 / ratio if series.kind == "steps" else ratio


def _choices(history: History) -> dict[str, tuple[str, dict[str, str]]]:
    """What rows can be filtered by, with a title and the options, if there is a choice."""
    features = {
        "+".join(s.features) or "baseline": features_title(s.features) for s in history.series
    }
    choices = {
        "features": ("Features", dict(sorted(features.items()))),
        "machine": ("Machine", {name: name for name in history.machines}),
        "changed": ("Changed", _CHANGED),
    }
    return {
        name: (title, {"": "all"} | options)
        for name, (title, options) in choices.items()
        if len(options) > 1
    }


def commits(history: History) -> Page:
    """`commits.html`."""
    rows = [_recorded(history, commit) for commit in reversed(history.commits)]
    return Page("commits.html", "commits", {"rows": rows})


def _recorded(history: History, commit: Commit) -> _Recorded:
    moved = history.moved_at.get(commit.hash, ())
    worse = sum(m.worse for m in moved)
    counts = {"worse": worse, "better": len(moved) - worse}
    entries = [recording.entry for recording in commit.recordings]
    profiles = sorted({name for entry in entries for name in entry.profiles})
    return _Recorded(
        commit,
        sum(len(entry.cells) for entry in entries),
        ", ".join(profiles) or units.MISSING,
        ", ".join(f"{n} {word}" for word, n in counts.items() if n) or units.MISSING,
    )
