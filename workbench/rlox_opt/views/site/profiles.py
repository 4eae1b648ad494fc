"""Where training spends its time, commit after commit: layers stacked, phases as trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rlox_opt.sampling.layers import LAYERS
from rlox_opt.views import units
from rlox_opt.views.site.benchmark import script
from rlox_opt.views.site.figures import points
from rlox_opt.views.site.layout import Key, Page
from rlox_opt.views.site.model import Commit, EntryFile, History, cost
from rlox_opt.views.titles import layer_title

Line = list[tuple[Commit, EntryFile]]


def lines(history: History) -> dict[tuple[str, str], Line]:
    """The profiled recordings of each (profile, feature set and machine), the oldest first."""
    found: dict[tuple[str, str], Line] = {}
    for commit in history.commits:
        for recording in commit.recordings:
            for name in recording.entry.profiles:
                found.setdefault((name, recording.title), []).append((commit, recording))
    return dict(sorted(found.items()))


def data(history: History) -> str:
    """`data/profiles.js`: of each line its commits, layers with shares, and costs of a step."""
    charts = [
        {
            "x": [commit.index for commit, _ in line],
            "layers": [
                {
                    "name": layer,
                    "title": layer_title(layer),
                    "share": [
                        round(r.entry.profiles[name].layers.get(layer, 0.0), 5) for _, r in line
                    ],
                }
                for layer in _layers(name, line)
            ],
            "cost": [_rounded(cost(r.entry, name)) for _, r in line],
        }
        for (name, _), line in lines(history).items()
    ]
    return script("profiles", charts)


def _layers(name: str, line: Line) -> list[str]:
    """The layers that a line has, in the order of the report's."""
    there = {
        layer for _, r in line for layer, share in r.entry.profiles[name].layers.items() if share
    }
    return [layer for layer in LAYERS if layer in there] + sorted(there - set(LAYERS))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


class _Phase(NamedTuple):
    """A phase with its inner phases: its share of the time, which is `width` per cent wide, and the
    change since the commit before."""

    name: str
    width: str
    share: str
    change: str
    inner: list[_Phase]


class _Chart(NamedTuple):
    """A line of recordings: its layers over commits, and the phases of the newest."""

    id: str
    measured_with: str
    title: str
    told: str
    keys: list[Key]
    newest: Commit
    phases: list[_Phase]


def page_of(history: History, folder: str) -> Page:
    """`profiles.html`, of the runs that a project's `folder` of workloads describes."""
    every = lines(history)
    newest = max(every, key=lambda key: every[key][-1][0].index)[1] if every else ""
    values = {
        "folder": folder,
        "charts": [_chart(number, key, line) for number, (key, line) in enumerate(every.items())],
        "compared": any(cost(r.entry, name) for (name, _), line in every.items() for _, r in line),
        "measured_with": {title: title for _, title in every},
        "newest": newest,
    }
    return Page("profiles.html", "profiles", values)


def _chart(number: int, key: tuple[str, str], line: Line) -> _Chart:
    name, title = key
    commit, recording = line[-1]
    first, newest = (r.entry.profiles[name] for r in (line[0][1], recording))
    ranked = sorted(newest.layers.items(), key=lambda item: -item[1])[:3]
    told = ", ".join(
        f"{layer_title(layer)} {units.percent(share)} "
        f"(first {units.percent(first.layers.get(layer, 0.0))})"
        for layer, share in ranked
    )
    return _Chart(
        f"{name}-{number}",
        title,
        f"{name.upper()}, {title}",
        f"Layers over {len(line)} commits, newest: {told}.",
        [Key(layer_title(layer), layer) for layer in _layers(name, line)],
        commit,
        _phases(newest.phases, line[-2][1].entry.profiles[name].phases if len(line) > 1 else None),
    )


def _phases(now: Mapping[str, float], before: Mapping[str, float] | None) -> list[_Phase]:
    """The outermost phases, the longest first, with their shares and the changes."""
    totals, old = (_with_inner(shares) for shares in (now, before or {}))
    children: dict[str, list[str]] = {}
    for path in totals:
        children.setdefault(path.rpartition("/")[0], []).append(path)

    def phase(path: str) -> _Phase:
        share = totals[path]
        return _Phase(
            path.rpartition("/")[2],
            f"{min(100.0, 100 * share):.2f}",
            units.percent(share),
            points(share - old.get(path, 0.0)) if before is not None else units.MISSING,
            within(path),
        )

    def within(path: str) -> list[_Phase]:
        ranked = sorted(children.get(path, ()), key=lambda inner: -totals[inner])
        return [phase(inner) for inner in ranked]

    return within("")


def _with_inner(shares: Mapping[str, float]) -> dict[str, float]:
    """The shares of phases with those of their inner phases added."""
    totals: dict[str, float] = {}
    for path, share in shares.items():
        parts = path.split("/")
        for n in range(1, len(parts) + 1):
            outer = "/".join(parts[:n])
            totals[outer] = totals.get(outer, 0.0) + share
    return totals
