"""Where training spends its time, commit after commit: layers stacked, phases as trees."""

from __future__ import annotations

from collections.abc import Mapping

from rlox_opt.sampling.layers import LAYERS
from rlox_opt.views import units
from rlox_opt.views.site.benchmark import script
from rlox_opt.views.site.causes import points
from rlox_opt.views.site.layout import (
    Html,
    Page,
    colour,
    commit_link,
    html,
    join,
    paragraph,
    plot,
    radios,
    section,
    select,
    tag,
    tools,
    values,
)
from rlox_opt.views.site.model import Commit, History, Recording, cost
from rlox_opt.views.titles import layer_title

Line = list[tuple[Commit, Recording]]


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


def page_of(history: History) -> Page:
    """`profiles.html`."""
    every = lines(history)
    if not every:
        body: Html = paragraph("No commit was recorded with a profile of training yet.")
        return Page("profiles.html", "Profiles", body)
    titles = list(dict.fromkeys(title for _, title in every))
    newest = max(every, key=lambda key: every[key][-1][0].index)[1]
    compared = any(cost(r.entry, name) for (name, _), line in every.items() for _, r in line)
    heights = {"share": "share of training", "cost": "time a step, relative to the control"}
    parts = [
        paragraph(
            "Short profiles of training: shares of the training thread's time by layer, as "
            "sampled. Relative to the control, their height is what a step takes, in the control's "
            "time a step of the same run.",
            "soft",
        ),
        tools(
            [
                radios("height", "Height", heights) if compared else "",
                select("Measured with", {title: title for title in titles}, newest, id="titles"),
            ]
        ),
        *(_section(number, key, line) for number, (key, line) in enumerate(every.items())),
    ]
    scripts = ["uPlot.iife.min.js", "chart.js", "stacked.js"]
    return Page(
        "profiles.html", "Profiles", join(parts, "\n"),
        heading="Where does training spend its time?",
        styles=["uPlot.min.css"],
        scripts=["data/commits.js", "data/profiles.js", *(f"static/{name}" for name in scripts)],
    )  # fmt: skip


def _section(number: int, key: tuple[str, str], line: Line) -> Html:
    name, title = key
    algo = name.upper()
    commit, recording = line[-1]
    first, newest = (r.entry.profiles[name] for r in (line[0][1], recording))
    legend = [
        tag("li", Html(f'<i style="{colour(layer)}"></i>{html(layer_title(layer))}'))
        for layer in _layers(name, line)
    ]
    ranked = sorted(newest.layers.items(), key=lambda item: -item[1])[:3]
    told = ", ".join(
        f"{layer_title(layer)} {units.percent(share)} "
        f"(first {units.percent(first.layers.get(layer, 0.0))})"
        for layer, share in ranked
    )
    heading = f"{algo}, {title}"
    inner = section(
        f"{name}-{number}",
        heading,
        plot(number, heading, f"Layers over {len(line)} commits, newest: {told}.", legend),
        values(number, heading),
        tag("h3", join(["Phases at ", commit_link(commit, 0)])),
        _phases(newest.phases, line[-2][1].entry.profiles[name].phases if len(line) > 1 else None),
    )
    return tag("div", inner, data_title=title)


def _phases(now: Mapping[str, float], before: Mapping[str, float] | None) -> Html:
    """The phases as nested, collapsible rows: shares, and their change since the commit before."""
    totals, old = (_with_inner(shares) for shares in (now, before or {}))
    children: dict[str, list[str]] = {}
    for path in totals:
        children.setdefault(path.rpartition("/")[0], []).append(path)

    def row(path: str) -> str:
        share = totals[path]
        change = points(share - old.get(path, 0.0)) if before is not None else units.MISSING
        return (
            f'<span class="name">{html(path.rpartition("/")[2])}</span>'
            f'<span class="track"><i style="width:{min(100.0, 100 * share):.2f}%"></i></span>'
            f'<span class="num">{units.percent(share)}</span><span class="num">{change}</span>'
        )

    def block(path: str) -> str:
        if inner := within(path):
            return f"<details open><summary>{row(path)}</summary>{inner}</details>"
        return f'<div class="leaf">{row(path)}</div>'

    def within(path: str) -> str:
        ranked = sorted(children.get(path, ()), key=lambda inner: -totals[inner])
        return "".join(map(block, ranked))

    head = (
        '<div class="head"><span class="name">Phase</span><span class="track-head"></span>'
        '<span class="num">Share</span><span class="num">Change</span></div>'
    )
    return Html(f'<div class="phases short">{head}{within("")}</div>')


def _with_inner(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares of phases, each with those of the phases within it."""
    totals: dict[str, float] = {}
    for path, share in shares.items():
        parts = path.split("/")
        for n in range(1, len(parts) + 1):
            outer = "/".join(parts[:n])
            totals[outer] = totals.get(outer, 0.0) + share
    return totals
