"""The page of a commit: what moved at it, in which layer, and how it was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rlox_opt.history.difference import Difference, Part
from rlox_opt.history.store import Cell
from rlox_opt.views import units
from rlox_opt.views.site.causes import differences, points
from rlox_opt.views.site.flame import flame
from rlox_opt.views.site.layout import (
    Column,
    Html,
    Page,
    benchmark_link,
    breakable,
    colour,
    commit_link,
    commit_path,
    diff_path,
    html,
    join,
    link,
    pairs,
    paragraph,
    raw_path,
    section,
    table,
    tag,
)
from rlox_opt.views.site.model import KINDS, Commit, History, Moved, Recording, features_title, slug
from rlox_opt.views.site.overview import amount, badge, percent, why_meant
from rlox_opt.views.titles import layer_title

_MOST = 15  # differences to the recording before that are listed
_NO_STACKS = "There is no profile with stacks of both this commit and the recording before it."


def commit(history: History, of: Commit) -> Page:
    """The page."""
    moved = history.moved_at.get(of.hash, [])
    found = {recording.title: differences(history, recording) for recording in of.recordings}
    drawn = flame(found)
    parts = [
        _facts(history, of),
        _moved(moved),
        *(_layers(title, own) for title, own in found.items() if own),
        section("flamegraph", "Differential flamegraph", drawn or paragraph(_NO_STACKS)),
        *(_compared(history, recording) for recording in of.recordings),
        *(_recording(recording) for recording in of.recordings),
    ]
    around = [(-1, "← before"), (1, "after →")]
    near = [
        link(commit_path(history.commits[of.index + step].hash), text)
        for step, text in around
        if 0 <= of.index + step < len(history.commits)
    ]
    over = join([link("commits.html", "Commits"), *near], " · ")
    return Page(
        commit_path(of.hash),
        f"{of.short} {of.subject}",
        join(parts, "\n"),
        over=over,
        heading=of.subject,
        scripts=["static/flamegraph.js"] if drawn else [],
    )


def _facts(history: History, of: Commit) -> Html:
    parent = history.by_hash.get(of.parent or "")
    told = commit_link(parent) if parent else tag("code", (of.parent or "none")[:10])
    return pairs(
        [
            ("Commit", tag("code", of.hash)),
            ("Date", f"{of.committed:%Y-%m-%d %H:%M %Z}".strip()),
            ("Parent", told if parent else join([told, " (not recorded)"]) if of.parent else told),
            ("Code", link(diff_path(of.hash), "what it changed")),
        ]
    )


def _moved(moved: list[Moved]) -> Html:
    if not moved:
        return section("moved", "What moved", paragraph("No series changes its level here."))
    rows = [
        (
            Html(f"{benchmark_link(m.series.benchmark)} {why_meant(m)}"),
            m.recording.title,
            KINDS[m.series.kind][1],
            badge(m),
            f"{percent(m.change.ci99[0])} to {percent(m.change.ci99[1])}",
        )
        for m in sorted(moved, key=lambda m: -abs(math.log(m.change.ratio)))
    ]
    columns = [
        Column("Benchmark", True), Column("Measured with", True), Column("Figure", True),
        Column("Level"), Column("99 % interval"),
    ]  # fmt: skip
    return section(
        "moved", "What moved", table(columns, rows, "Level changes at this commit", shown=False)
    )


def _layers(title: str, found: Mapping[str, Difference]) -> Html:
    """The layers of training before and after, and the functions that changed most."""
    return section(
        "layers-" + slug(title),
        f"Layers: {title}",
        paragraph("Before and after. Changes within the noise of sampling (99 %) are grey."),
        tag(
            "div",
            join(_layers_of(name.upper(), d, title) for name, d in found.items()),
            class_="grid",
        ),
    )


def _layers_of(algo: str, of: Difference, title: str) -> Html:
    parts = [part for part in of.layers() if max(part.before, part.after) > 0]
    most = max((max(part.before, part.after) for part in parts), default=1.0)
    rows = []
    for part in parts:
        style = colour(part.name)
        widths = [
            f'<i style="width:{100 * share / most:.1f}%"></i>'
            for share in (part.before, part.after)
        ]
        rows.append(
            (
                Html(f'<i class="layer-dot" style="{style}"></i>{html(layer_title(part.name))}'),
                Html(
                    f'<span class="two" style="{style}">{"".join(widths)}</span>'
                    f"{units.percent(part.before)} → {units.percent(part.after)}"
                ),
                _change(part),
            )
        )
    columns = [Column("Layer", True), Column("Before → after"), Column("Change")]
    functions = [
        (
            join(
                [breakable(function), tag("span", layer_title(layer), class_="soft")],
                " ",
            ),
            _change(part),
        )
        for part in of.functions()
        for layer, _, function in [part.name.partition(":")]
    ]
    named = [Column("Function", True), Column("Change")]
    told = [table(columns, rows, f"{algo}, parts of {of.of}, {title}")]
    if functions:
        told.append(table(named, functions, f"Functions that changed most: {algo}, {title}"))
    return tag("div", join(told))


def _change(part: Part) -> Html:
    kind = ("worse" if part.change > 0 else "better") if part.beyond_noise else "soft"
    return tag("span", points(part.change), class_=f"change {kind}")


def _compared(history: History, recording: Recording) -> Html:
    """The largest differences to the recording before, whether or not they are level changes."""
    before = history.before(recording)
    if before is None:
        return Html("")
    found = sorted(_pairs(before, recording), key=lambda pair: -abs(math.log(pair[2])))[:_MOST]
    if not found:
        return Html("")
    rows = [
        (
            benchmark_link(cell.benchmark),
            KINDS[cell.kind][1],
            amount(cell.kind, old.value),
            amount(cell.kind, cell.value),
            percent(ratio),
        )
        for old, cell, ratio in found
    ]
    columns = [
        Column("Benchmark", True), Column("Figure", True), Column("Before"), Column("Here"),
        Column("Difference"),
    ]  # fmt: skip
    told = Html(
        f"Against {commit_link(history.by_hash[before.entry.commit])}. Single readings, noise and "
        "all; those of times are of their ratios to the control."
    )
    title = f"Largest differences to the recording before: {recording.title}"
    inner = [
        tag("summary", title),
        paragraph(told, "soft"),
        table(columns, rows, title, shown=False),
    ]
    return tag("details", join(inner), class_="more")


def _pairs(before: Recording, after: Recording) -> Iterator[tuple[Cell, Cell, float]]:
    old = {(cell.benchmark, cell.kind): cell for cell in before.entry.cells}
    for cell in after.entry.cells:
        was = old.get((cell.benchmark, cell.kind))
        if was is None:
            continue
        of, to = (was.ratio, cell.ratio) if was.ratio and cell.ratio else (was.value, cell.value)
        if of and to and to != of:
            yield was, cell, to / of


def _recording(recording: Recording) -> Html:
    """Where the figures come from."""
    entry = recording.entry
    told = [
        ("Machine", f"{entry.machine.get('cpu')}, {entry.machine.get('cores')} cores"),
        ("Features", features_title(entry.features)),
        ("Build", f"{entry.profile}; " + ", ".join(f"{k} {v}" for k, v in entry.toolchain.items())),
        (
            "Control",
            f"{entry.control['commit'][:10]}, {features_title(entry.control['features'])}",
        ),
        ("Measured", f"{entry.date:%Y-%m-%d %H:%M %Z}, in {units.seconds(entry.seconds)}"),
        (
            "Figures",
            f"{len(entry.cells)}" + ("" if entry.complete else "; it was stopped before its end"),
        ),
        ("Raw", link(raw_path(recording), recording.path.name)),
    ]
    failures = [tag("li", f"{f['benchmark']}: {f['reason']}") for f in entry.failures]
    failed: object = ""
    if failures:
        inner = join([tag("h3", "Not measured"), tag("ul", join(failures))])
        failed = tag("div", inner, class_="notice", role="note")
    return section(
        f"recording-{entry.slug}-{'-'.join(entry.features) or 'baseline'}",
        f"Measured: {recording.title}",
        failed,
        pairs(told),
    )
