"""The page of a benchmark: a chart for each kind of figure, its level changes and their causes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rlox_opt.history.series import Series
from rlox_opt.views import units
from rlox_opt.views.site.causes import layers_in_words, split
from rlox_opt.views.site.layout import (
    Html,
    Page,
    benchmark_path,
    breakable,
    commit_link,
    commit_path,
    diff_path,
    html,
    join,
    link,
    pairs,
    paragraph,
    plot,
    radios,
    raw_path,
    section,
    select,
    tag,
    tools,
    values,
)
from rlox_opt.views.site.model import KINDS, History, Moved, features_title, rank_of, slug
from rlox_opt.views.site.overview import against, amount, badge, percent, why_meant

_SCRIPTS = ("static/uPlot.iife.min.js", "data/commits.js", "static/chart.js", "static/lines.js")


def data_path(name: str) -> str:
    """The file of a benchmark's figures."""
    return f"data/benchmark/{slug(name)}.js"


def script(name: str, value: Any) -> str:
    """Data as a script, which a page from a file may load where it may not fetch JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"(window.rlox ??= {{}}).{name} = {text};\n"


def commits_data(history: History) -> str:
    """`data/commits.js`: [hash, day, subject, page] of each, which charts count along."""
    rows = [
        [commit.short[:7], commit.day, commit.subject, commit_path(commit.hash)]
        for commit in history.commits
    ]
    return script("commits", rows)


def data(history: History, name: str) -> str:
    """The lines of all charts of a benchmark, one for each feature set and machine."""
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
    """Five digits: more than is measured."""
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
    figures = [
        (f"newest, {features_title(main.features)}", amount(main.kind, newest.value)),
        ("against the control", against(newest)),
        ("level changes", units.count(len(_moved(history, every)))),
    ]
    compared = any(point.ratio is not None for one in every for point in one.points)
    parts = [pairs(figures, "figures"), _controls(compared, len(history.commits))]
    parts += [_chart(history, number, kind, every) for number, kind in enumerate(_kinds(every))]
    data_of = (
        f"{link(data_path(name), 'The figures of this page')} are JavaScript whose value is JSON."
    )
    parts.append(paragraph(Html(data_of), "note"))
    return Page(
        benchmark_path(name),
        name,
        join(parts, "\n"),
        over=link("index.html", "Benchmarks"),
        heading=breakable(name),
        styles=["uPlot.min.css"],
        scripts=[*_SCRIPTS[:2], data_path(name), *_SCRIPTS[2:]],
    )


def _controls(compared: bool, commits: int) -> Html:
    shows = {"ratio": "against the control", "value": "as measured"}
    ranges = {str(n): f"the last {n}" for n in (30, 100, 300, 1000) if n < commits}
    return tools(
        [
            radios("show", "Figures", shows) if compared else "",
            select("Commits", {"": "all"} | ranges, id="range"),
        ]
    )


def _chart(history: History, number: int, kind: str, every: Sequence[Series]) -> Html:
    own = [one for one in every if one.kind == kind]
    title, features = KINDS[kind][0], _features(every)
    legend = [
        tag(
            "li",
            Html(
                f'<i class="dash{history.machines.index(machine) % 3}" '
                f'style="--c:var(--line{features.index(one.features) % 4})"></i>'
                f"{html(features_title(one.features))}, {html(machine)}"
            ),
        )
        for one in own
        for machine in sorted({point.machine for point in one.points})
    ]
    moves = [_move(history, n, moved) for n, moved in enumerate(_moved(history, own), 1)]
    return section(
        kind,
        title,
        plot(number, title, " ".join(map(_in_words, own)), legend),
        tag("ol", join(moves, "\n"), class_="moves") if moves else "",
        values(number, title),
    )


def _in_words(series: Series) -> str:
    """What the chart shows, for who does not see it."""
    newest, n = series.points[-1], len(series.changes)
    text = f"{features_title(series.features).capitalize()}: {amount(series.kind, newest.value)}"
    if newest.ratio is not None:
        text += f", {against(newest)} of the control's"
    return f"{text}; {n or 'no'} level {'change' if n == 1 else 'changes'}."


def _move(history: History, number: int, moved: Moved) -> Html:
    """A level change: how much, whose, why, and where to look."""
    commit, series = moved.commit, moved.series
    low, high = moved.change.ci99
    links = [
        link(diff_path(commit.hash), "code"),
        link(f"{commit_path(commit.hash)}#flamegraph", "profile difference"),
        link(raw_path(moved.recording), "raw JSON"),
    ]
    unsure = ""
    if commit.parent != moved.last.hash:
        unsure = f" Commits since {moved.last.short} have no figure here, and may be the cause."
    causes = [part for part in (split(moved), layers_in_words(history, moved)) if part]
    return tag(
        "li",
        Html(
            f"{badge(moved)} {commit_link(commit)} "
            f'<span class="soft">{commit.day}, {html(features_title(series.features))}; '
            f"99 % interval {percent(low)} to {percent(high)}.{unsure}</span>"
            f'<br><span class="soft">{join(causes, " ")}</span> {join(links, " · ")}'
            f" {why_meant(moved)}"
        ),
        id=f"{series.kind}-{number}",
    )
