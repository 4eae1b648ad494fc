"""The page of a benchmark: a chart for each kind of figure, its level changes and their causes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlox_opt.history.series import Series
from rlox_opt.views import units
from rlox_opt.views.site.causes import Split, layers_in_words, split
from rlox_opt.views.site.figures import against, amount
from rlox_opt.views.site.layout import Key, Page, benchmark_path, commit_path
from rlox_opt.views.site.model import KINDS, History, Moved, features_title, rank_of

_SHOWS = {"ratio": "against the control", "value": "as measured"}
_RANGES = (30, 100, 300, 1000)  # numbers of newest commits that a chart can be limited to
_DASHES = 6  # patterns of lines, in lines.js and history.css


class _Move(NamedTuple):
    """A level change: the layers and functions behind it, if known, and what changed in
    training."""

    moved: Moved
    split: Split | None
    training: str


class _Chart(NamedTuple):
    """A chart of one kind of figure; `told` describes it in words."""

    kind: str
    title: str
    told: str
    keys: list[Key]
    moves: list[_Move]


def script(name: str, value: Any) -> str:
    """Data as a script: a page from a file may load a script, but may not fetch JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"(window.rlox ??= {{}}).{name} = {text};\n"


def commits_data(history: History) -> str:
    """`data/commits.js`: [hash, day, subject, page] of each commit. Charts name a commit by its
    index."""
    rows = [
        [commit.short[:7], commit.day, commit.subject, commit_path(commit.hash)]
        for commit in history.commits
    ]
    return script("commits", rows)


def data(history: History, name: str) -> str:
    """The lines of a benchmark's charts, one for each feature set and machine."""
    every = history.by_benchmark[name]
    features = _features(every)
    charts = []
    for kind in _kinds(every):
        own = [one for one in every if one.kind == kind]
        lines = [
            _line(history, one, machine, features.index(one.features))
            for one in own
            for machine in sorted({point.machine for point in one.points})
        ]
        charts.append(
            {
                "kind": kind,
                "unit": own[0].unit,
                "ratio": "control's time" if kind in ("time", "criterion") else "control's",
                "lines": lines,
                "marks": _marks(_moved(history, own)),
            }
        )
    return script("benchmark", charts)


def _marks(moved: Sequence[Moved]) -> list[dict[str, Any]]:
    """A mark at each commit, with the numbers of its changes in the list below the chart."""
    found: dict[int, dict[str, Any]] = {}
    for number, one in enumerate(moved, 1):
        kind = "worse" if one.worse else "better"
        alarm = one.change.state == "alarm"
        mark = found.setdefault(one.commit.index, {"first": number, "kind": kind, "alarm": True})
        mark |= {"x": one.commit.index, "last": number, "alarm": mark["alarm"] and alarm}
        mark["kind"] = kind if mark["kind"] == kind else "soft"
    return list(found.values())


def _line(history: History, series: Series, machine: str, colour: int) -> dict[str, Any]:
    points = [point for point in series.points if point.machine == machine]
    ends = [point.ci99 or (None, None) for point in points]
    return {
        "label": f"{features_title(series.features)}, {machine}",
        "colour": colour,
        "dash": history.machines.index(machine),
        "x": [history.by_hash[point.commit].index for point in points],
        "value": [_short(point.value) for point in points],
        "ratio": [_short(point.ratio) for point in points],
        "low": [_short(low) for low, _ in ends],
        "high": [_short(high) for _, high in ends],
    }


def _short(value: float | None) -> float | None:
    """Five digits, which is more than is measured."""
    return None if value is None else float(f"{value:.5g}")


def _features(series: Sequence[Series]) -> list[tuple[str, ...]]:
    return sorted({one.features for one in series}, key=rank_of)


def _kinds(series: Sequence[Series]) -> list[str]:
    return list(dict.fromkeys(one.kind for one in series))


def _moved(history: History, series: Sequence[Series]) -> list[Moved]:
    """The level changes of some series, the oldest first."""
    found = [moved for moved in history.moved if moved.series in series]
    return sorted(found, key=lambda moved: moved.commit.index)


def benchmark(history: History, name: str) -> Page:
    """The page."""
    every = history.by_benchmark[name]
    main = every[0]
    newest = main.points[-1]
    compared = any(point.ratio is not None for one in every for point in one.points)
    ranges = {str(n): f"the last {n}" for n in _RANGES if n < len(history.commits)}
    values = {
        "name": name,
        "figures": [
            (f"newest, {features_title(main.features)}", amount(main.kind, newest.value)),
            ("against the control", against(newest)),
            ("level changes", units.count(len(_moved(history, every)))),
        ],
        "shows": _SHOWS if compared else None,
        "ranges": {"": "all"} | ranges,
        "charts": [_chart(history, kind, every) for kind in _kinds(every)],
    }
    return Page(benchmark_path(name), "benchmark", values)


def _chart(history: History, kind: str, every: Sequence[Series]) -> _Chart:
    own = [one for one in every if one.kind == kind]
    features = _features(every)
    keys = [
        Key(
            f"{features_title(one.features)}, {machine}",
            f"line{features.index(one.features) % 4}",
            history.machines.index(machine) % _DASHES,
        )
        for one in own
        for machine in sorted({point.machine for point in one.points})
    ]
    moves = [
        _Move(moved, split(moved), layers_in_words(history, moved))
        for moved in _moved(history, own)
    ]
    return _Chart(kind, KINDS[kind][0], " ".join(map(_in_words, own)), keys, moves)


def _in_words(series: Series) -> str:
    """What the chart shows, for readers who do not see it."""
    newest, n = series.points[-1], len(series.changes)
    text = f"{features_title(series.features).capitalize()}: {amount(series.kind, newest.value)}"
    if newest.ratio is not None:
        text += f", {against(newest)} of the control's"
    return f"{text}; {n or 'no'} level {'change' if n == 1 else 'changes'}."
