"""A series as a small picture in a row: no axes, one line a machine, its level changes marked."""

from __future__ import annotations

from collections.abc import Sequence

from rlox_opt.history.series import Point, Series
from rlox_opt.stats.levels import Change
from rlox_opt.views.site.layout import Html, tag

WIDTH, HEIGHT, _PAD = 132, 30, 3
_MOST = 66  # points drawn: more are averaged
_LEAST_SPAN = 0.04  # of the middle: noise below it stays flat


def _shown(series: Series) -> list[tuple[int, Point, float]]:
    """What of a series is drawn: what levels are found on, or else plain values; with the point
    and its index."""
    levels = [(i, p, p.level) for i, p in enumerate(series.points) if p.level is not None]
    return levels or [(i, p, p.value) for i, p in enumerate(series.points)]


def sparkline(series: Series) -> Html:
    """The picture; its words tell the ends and the changes."""
    of = _shown(series)
    values = [value for *_, value in of]
    middle = (min(values) + max(values)) / 2
    span = max(max(values) - min(values), _LEAST_SPAN * middle) or 1.0

    def x(index: float) -> float:
        return _PAD + index * (WIDTH - 2 * _PAD) / max(1, len(series.points) - 1)

    def y(value: float) -> float:
        return HEIGHT / 2 - (value - middle) * (HEIGHT - 2 * _PAD) / span

    lines = "".join(
        '<polyline points="{}"/>'.format(
            " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in _thinned(of, machine))
        )
        for machine in dict.fromkeys(point.machine for _, point, _ in of)
    )
    marks = "".join(_mark(series, change, x(change.index)) for change in series.changes)
    last, _, value = of[-1]
    dot = f'<circle cx="{x(last):.1f}" cy="{y(value):.1f}" r="2.2"/>'
    n = len(series.changes)
    told = f"{len(of)} commits, {n} level {'change' if n == 1 else 'changes'}"
    return tag(
        "svg",
        Html(marks + lines + dot),
        class_="spark",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_label=told,
    )


def _mark(series: Series, change: Change, x: float) -> str:
    kind = "worse" if series.slower(change) else "better"
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}"/>'


def _thinned(of: Sequence[tuple[int, Point, float]], machine: str) -> list[tuple[float, float]]:
    """A machine's points: neighbours averaged where there are more than can be seen."""
    own = [(i, value) for i, point, value in of if point.machine == machine]
    size = -(-len(own) // _MOST)
    groups = [own[at : at + size] for at in range(0, len(own), size)]
    return [(group[-1][0], sum(v for _, v in group) / len(group)) for group in groups]
