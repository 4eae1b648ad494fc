"""The operating curve: how probable each verdict is, by true slowdown and scatter, as pictures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.site.layout import Column, Html, join, paragraph, section, table, tag

Table = Mapping[str, Any]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 250, 150, 40, 34, 8
# From the axis upwards.
_VERDICTS = ("slower", "undecided", "same", "faster")


def operating(machine: str, records: Sequence[Table]) -> Html:
    """The section, of the newest record: a row of pictures a threshold, a picture a scatter."""
    record = records[-1]
    thresholds = dict.fromkeys(point["threshold"] for point in record["points"])
    legend = tag(
        "ul",
        join(tag("li", join([tag("i", class_=said), said], " ")) for said in _VERDICTS[:3]),
        class_="legend operating",
        aria_label="Colours",
    )
    rows = [
        (
            f"{point['threshold']:g} %", f"{point['scatter']:g} %", f"{point['slowdown']:g} %",
            *(units.percent(point["shares"].get(said, 0.0)) for said in _VERDICTS),
        )
        for point in record["points"]
    ]  # fmt: skip
    columns = [
        Column("Threshold"), Column("Scatter of a restart"), Column("Truly slower by"),
        *(Column(said) for said in _VERDICTS),
    ]  # fmt: skip
    return section(
        f"operating-{machine}",
        "How probable is each verdict?",
        paragraph(
            f"Simulated by the code of commit {record['commit'][:10]}, {record['date'][:10]}: "
            f"{record['runs']} runs at each point, in which one benchmark of "
            f"{record['benchmarks']} takes longer. The more a machine scatters, the more stays "
            "undecided; what is within the threshold, the dashed line, is not called slower for it."
        ),
        legend,
        *(_pictures(threshold, record["points"]) for threshold in thresholds),
        tag(
            "details",
            join(
                [
                    tag("summary", "The shares as a table"),
                    table(columns, rows, "Share of each verdict, simulated"),
                ]
            ),
            class_="values",
        ),
    )


def _pictures(threshold: float, points: Sequence[Table]) -> Html:
    own = [point for point in points if point["threshold"] == threshold]
    groups = itertools.groupby(own, key=lambda point: point["scatter"])
    return join(
        [
            tag("h3", f"At a threshold of {threshold:g} %"),
            tag(
                "div",
                join(_picture(threshold, scatter, [*group]) for scatter, group in groups),
                class_="operating",
            ),
        ]
    )


def _picture(threshold: float, scatter: float, points: Sequence[Table]) -> Html:
    """Shares stacked over the slowdown."""
    most = points[-1]["slowdown"] or 1.0
    right, floor = _WIDTH - 8, _HEIGHT - _BOTTOM

    def x(slowdown: float) -> float:
        return _LEFT + slowdown / most * (right - _LEFT)

    def y(share: float) -> float:
        return floor - share * (floor - _TOP)

    parts = []
    below = [0.0] * len(points)
    for said in _VERDICTS:
        above = [b + p["shares"].get(said, 0.0) for b, p in zip(below, points, strict=True)]
        there = [(x(p["slowdown"]), y(a)) for p, a in zip(points, above, strict=True)]
        back = [(x(p["slowdown"]), y(b)) for p, b in zip(points, below, strict=True)]
        outline = " ".join(f"{at:.1f},{height:.1f}" for at, height in [*there, *reversed(back)])
        parts.append(tag("polygon", points=outline, class_=said))
        below = above
    line = x(threshold)
    parts.append(tag("line", x1=f"{line:.1f}", x2=f"{line:.1f}", y1=_TOP, y2=floor))
    parts += [
        tag("text", f"{share:.0%}", x=_LEFT - 5, y=f"{y(share) + 4:.1f}", text_anchor="end")
        for share in (0.0, 0.5, 1.0)
    ]
    parts += [
        tag("text", f"{percent:g}", x=f"{x(percent):.1f}", y=floor + 14, text_anchor="middle")
        for percent in (0, most / 4, most / 2, 3 * most / 4, most)
    ]
    parts.append(tag("text", "truly slower by, %", x=right, y=_HEIGHT - 5, text_anchor="end"))
    half = next((p["slowdown"] for p in points if p["shares"].get("slower", 0.0) >= 0.5), None)
    told = f"Restarts that scatter by {scatter:g} %"
    found = f"no slowdown up to {most:g} %" if half is None else f"slowdowns from {half:g} % on"
    drawing = tag(
        "svg", join(parts), viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img",
        aria_label=f"{told}, at a threshold of {threshold:g} %: {found} called slower in half of "
        "the runs or more",
    )  # fmt: skip
    return tag("figure", join([tag("figcaption", told), drawing]))
