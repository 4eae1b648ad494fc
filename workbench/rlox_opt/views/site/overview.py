"""The overview: a row for each benchmark and feature set, to filter and to sort; and the list of
all commits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlox_opt.history.series import Point, Series
from rlox_opt.views import units
from rlox_opt.views.site.axis import estimate
from rlox_opt.views.site.layout import (
    Column,
    Html,
    Page,
    benchmark_link,
    commit_link,
    commit_path,
    html,
    join,
    link,
    pairs,
    paragraph,
    section,
    select,
    table,
    tag,
    tools,
)
from rlox_opt.views.site.model import KINDS, History, Moved, features_title
from rlox_opt.views.site.sparkline import sparkline

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
_RECENT = 6  # commits whose level changes are told
_OF_ONE = 4  # level changes of one commit


def overview(history: History) -> Page:
    """`index.html`."""
    rows = [_of(history, found) for found in _rows(history)]
    commits = history.commits
    figures = [
        ("commits", units.count(len(commits))),
        ("series", units.count(len(history.series))),
        ("level changes", units.count(len(history.moved))),
        ("unexplained regressions", units.count(sum(m.unexplained for m in history.moved))),
    ]
    columns = [
        Column("Benchmark", True), Column("Features", True), Column("History"),
        Column("Against the control"), Column("Newest value"), Column("Latest change", True),
    ]  # fmt: skip
    parts = [pairs(figures, "figures")]
    if commits:
        first, last = commits[0], commits[-1]
        parts.append(
            paragraph(
                f"Every commit's figures, from {first.short} ({first.day}) to {last.short} "
                f"({last.day}). Ratios are to a control timed in the same run; over 1 takes "
                "longer. Level changes are found on these ratios, and on counts and memory as they "
                "are.",
                "soft",
            )
        )
        parts.append(_recent(history))
        parts.append(
            section(
                "all",
                "Benchmarks",
                _controls(history, len(rows)),
                table(
                    columns,
                    [cells for cells, _ in rows],
                    "Benchmarks by feature set, with their newest figures",
                    [attributes for _, attributes in rows],
                    "benchmarks",
                    shown=False,
                ),
            )
        )
    else:
        command = tag("code", "rlox-opt record")
        parts.append(paragraph(Html(f"Nothing is recorded yet: {command} measures commits.")))
    return Page(
        "index.html",
        "Overview",
        join(parts, "\n"),
        heading="How fast was each part, commit after commit?",
        scripts=["static/filter.js"] if commits else [],
    )


def _rows(history: History) -> list[list[Series]]:
    """The series of each benchmark and feature set, the one that stands for it first."""
    found: dict[tuple[str, tuple[str, ...]], list[Series]] = {}
    for name, of in history.by_benchmark.items():
        for one in of:
            found.setdefault((name, one.features), []).append(one)
    return list(found.values())


def _of(history: History, of: Sequence[Series]) -> tuple[list[object], dict[str, object]]:
    """The cells of a row, and what it is filtered and sorted by."""
    main = of[0]
    newest = main.points[-1]
    moved = history.moved_in.get((main.benchmark, main.features), [])
    latest = moved[0] if moved else None
    kinds = " ".join(KINDS[one.kind][1] for one in of)
    cells: list[object] = [
        benchmark_link(main.benchmark, 0),
        features_title(main.features),
        sparkline(main),
        against(newest),
        amount(main.kind, newest.value),
        _change(latest) if latest else Html('<span class="soft">none</span>'),
    ]
    attributes: dict[str, object] = {
        "data_text": f"{main.benchmark} {features_title(main.features)} {kinds}".lower(),
        "data_features": "+".join(main.features) or "baseline",
        "data_machine": " ".join(sorted({p.machine for one in of for p in one.points})),
        "data_changed": " ".join(sorted({word for m in moved for word in _changed(m)})),
        "data_moved": latest.commit.index if latest else None,
        "data_size": round(abs(math.log(latest.change.ratio)), 5) if latest else None,
        "data_ratio": round(_slowness(main, newest.ratio), 5) if newest.ratio else None,
    }
    return cells, attributes


def _changed(moved: Moved) -> list[str]:
    """The choices of `_CHANGED` that it falls under."""
    return ["slower" if moved.worse else "faster", *["unexplained"] * moved.unexplained]


def _slowness(series: Series, ratio: float) -> float:
    return 1 / ratio if series.kind == "steps" else ratio


def against(point: Point) -> str:
    """A point's ratio to its control with its 99 % interval."""
    return units.MISSING if point.ratio is None else estimate(point.ratio, point.ci99)


def amount(kind: str, value: float) -> str:
    """A value with its unit."""
    if kind in ("time", "criterion"):
        return units.seconds(value)
    if kind == "peak_memory":
        return units.size(value)
    return f"{units.count(value)}{' steps/s' if kind == 'steps' else ''}"


def percent(ratio: float) -> str:
    """A ratio as a change: "+12.3 %"."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def badge(moved: Moved) -> Html:
    """How large a level change is, whether it is good or an alarm."""
    kind = "worse" if moved.worse else "better"
    sign = "▲" if moved.change.ratio > 1 else "▼"
    alarm = " (alarm)" if moved.change.state == "alarm" else ""
    text = f"{sign} {percent(moved.change.ratio)} {moved.word}{alarm}"
    return tag("span", text, class_=f"badge {kind}")


def why_meant(moved: Moved) -> Html:
    """The reason of one that is acknowledged, and how much of it where that is less; else
    nothing."""
    if moved.answer is None:
        return Html("")
    more = "" if moved.excused else f", but for {percent(moved.answer.ratio)} at most"
    return tag("small", f"meant{more}: {moved.answer.reason}", class_="soft")


def _change(moved: Moved) -> Html:
    """A level change with its commit."""
    commit = moved.commit
    said = link(commit_path(commit.hash), commit.subject, 0, class_="subject")
    day = tag("time", commit.day, class_="soft")
    return Html(f"{badge(moved)} {said} {day} {why_meant(moved)}")


def _recent(history: History) -> Html:
    """The newest commits at which levels changed, each with what moved."""
    if not history.moved:
        return section("recent", "Level changes", paragraph("No series has changed its level."))
    found = list(history.moved_at.values())
    items = []
    for moved in found[:_RECENT]:
        lines = [
            Html(
                f"{badge(m)} {benchmark_link(m.series.benchmark, 0)} "
                f'<span class="soft">{html(m.figure)}</span>'
            )
            for m in moved[:_OF_ONE]
        ]
        if len(moved) > _OF_ONE:
            lines.append(tag("span", f"and {len(moved) - _OF_ONE} more", class_="soft"))
        commit = moved[0].commit
        day = tag("time", commit.day, class_="soft")
        items.append(tag("li", join([Html(f"{commit_link(commit, 0)} {day}"), *lines], "<br>")))
    more = len(found) - len(items)
    rest = Html("")
    if more > 0:
        rest = paragraph(
            Html(f"{more} older commits are in {link('commits.html', 'the list', 0)}."), "note"
        )
    return section(
        "recent", "Newest level changes", tag("ul", join(items, "\n"), class_="moves"), rest
    )


def _controls(history: History, rows: int) -> Html:
    """Words to look for, choices and the order."""
    features = {
        "+".join(s.features) or "baseline": features_title(s.features) for s in history.series
    }
    choices = {
        "features": ("Features", dict(sorted(features.items()))),
        "machine": ("Machine", {name: name for name in history.machines}),
        "changed": ("Changed", _CHANGED),
    }
    return tools(
        [
            tag("label", Html('Find <input type="search" id="filter" autocomplete="off">')),
            *(
                select(title, {"": "all"} | options, data_choice=name)
                for name, (title, options) in choices.items()
                if len(options) > 1
            ),
            select("Order", _ORDERS, id="order"),
            tag("span", f"{rows} shown", id="count", role="status"),
        ]
    )


def commits(history: History) -> Page:
    """`commits.html`; a row's id is the hash in eight digits, by which asv's pages lead there."""
    rows = []
    for commit in reversed(history.commits):
        moved = history.moved_at.get(commit.hash, ())
        worse = sum(m.worse for m in moved)
        counts = {"worse": worse, "better": len(moved) - worse}
        told = [f"{n} {word}" for word, n in counts.items() if n]
        entries = [r.entry for r in commit.recordings]
        rows.append(
            (
                commit_link(commit, 0),
                commit.day,
                units.count(sum(len(entry.cells) for entry in entries)),
                ", ".join(sorted({name for entry in entries for name in entry.profiles}))
                or units.MISSING,
                ", ".join(told) or units.MISSING,
            )
        )
    columns = [
        Column("Commit", True), Column("Date"), Column("Figures"), Column("Profiles"),
        Column("Levels"),
    ]  # fmt: skip
    ids = [{"id": commit.hash[:8]} for commit in reversed(history.commits)]
    body = table(columns, rows, "Recorded commits, the newest first", ids, shown=False)
    return Page("commits.html", "Commits", body)
