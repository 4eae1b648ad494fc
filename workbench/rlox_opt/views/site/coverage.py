"""How often predicted intervals held, over time: those on the cards, and those of the width that
the ledger proposes."""

from __future__ import annotations

from collections.abc import Sequence

from rlox_opt.history.ledger import Line
from rlox_opt.history.predicted import COVERAGE, Checked, Held, Sofar, checked, over_time
from rlox_opt.views import units
from rlox_opt.views.site.layout import Column, Html, html, join, paragraph, section, table, tag

_LINES = {
    "told": "on the cards",
    "left_out": "as wide as all others so far say",
    "earlier": "as wide as earlier ones say",
}
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LEAST = 2  # points of a line
_APART = 0.12  # of the width, between two dates


def coverage(ledger: Sequence[Line]) -> Html:
    """The section of the ledger's page; nothing where too little was measured."""
    known = checked(ledger)
    if len(known) < _LEAST:
        return Html("")
    steps = over_time(known)
    last = steps[-1]
    told = (
        f"On the cards {_words(last.told)} held. As wide as the errors of all others say, "
        f"{_words(last.left_out)} would have; as wide as those of earlier ones say, "
        f"{_words(last.earlier)}. The target is {COVERAGE * 100:.0f} %."
    )
    legend = [
        tag("li", Html(f'<i class="dash{n}" style="--c:var(--line{n})"></i>{html(title)}'))
        for n, title in enumerate(_LINES.values())
    ]
    columns = [Column("Measured", True), Column("Prediction", True), Column("On the card"),
               Column("Left out"), Column("Earlier ones")]  # fmt: skip
    rows = [
        (
            f"{step.last.date:%Y-%m-%d %H:%M}",
            step.last.id,
            *(_words(getattr(step, name)) for name in _LINES),
        )
        for step in steps
    ]
    figures = table(columns, rows, "Intervals so far that held, by measurement")
    return section(
        "coverage",
        "How often do intervals hold?",
        paragraph(
            Html(
                "The share of predictions so far whose interval held what was measured. "
                f"{tag('code', 'rlox-opt predict')} makes an interval as wide as the errors of "
                "its layer say. Each prediction left out of those errors in turn, the share comes "
                "near the target by construction; the harder test is what earlier ones alone say."
            )
        ),
        paragraph(told),
        tag("ul", join(legend), class_="legend", aria_label="Lines"),
        _picture(steps, told),
        tag(
            "details",
            join([tag("summary", "The figures as a table"), figures]),
            class_="values",
        ),
    )


def _picture(steps: Sequence[Sofar], told: str) -> Html:
    """The lines over the measurements in their order, 0 to 100 %, with the target across."""

    def x(index: int) -> float:
        return 100 * index / (len(steps) - 1)

    def points(name: str) -> str:
        of: list[tuple[int, Held]] = [(n, getattr(step, name)) for n, step in enumerate(steps)]
        return " ".join(f"{x(n):.2f},{100 - 100 * y.share:.2f}" for n, y in of if y.of)

    def level(share: float) -> str:
        return f'x1="0" x2="100" y1="{100 - 100 * share:g}" y2="{100 - 100 * share:g}"'

    drawn = "".join(f"<line {level(tick)}/>" for tick in _TICKS)
    drawn += f'<line class="target" {level(COVERAGE)}/>'
    drawn += "".join(
        f'<polyline class="line{n}" points="{points(name)}"/>' for n, name in enumerate(_LINES)
    )
    picture = f'<svg viewBox="0 0 100 100" preserveAspectRatio="none">{drawn}</svg>'
    ticks = f'<span class="goal" style="top:{100 - 100 * COVERAGE:g}%">target</span>' + "".join(
        f'<span class="y" style="top:{100 - 100 * tick:g}%">{100 * tick:g} %</span>'
        for tick in _TICKS
    )
    days = "".join(
        f'<span class="x" style="left:{x(n):.2f}%">{html(day)}</span>'
        for n, day in _days([step.last for step in steps])
    )
    return tag("div", Html(picture + ticks + days), class_="shares", role="img", aria_label=told)


def _days(measured: Sequence[Checked]) -> list[tuple[int, str]]:
    """Where a day begins, as far as there is room to say so."""
    found: list[tuple[int, str]] = []
    for n, of in enumerate(measured):
        day = f"{of.date:%Y-%m-%d}"
        if not found or (day != found[-1][1] and n - found[-1][0] >= _APART * len(measured)):
            found.append((n, day))
    return found


def _words(held: Held) -> str:
    return f"{held.inside} of {held.of}" if held.of else units.MISSING
