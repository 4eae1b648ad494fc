"""The pages of the optimisations: the ledger as one chart, and a page a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.history.ledger import Line
from rlox_opt.history.records import Record
from rlox_opt.views import units
from rlox_opt.views.site.axis import Row, chart, estimate
from rlox_opt.views.site.coverage import coverage
from rlox_opt.views.site.layout import (
    Column,
    Html,
    Page,
    benchmark_link,
    card_path,
    html,
    join,
    link,
    pairs,
    paragraph,
    section,
    table,
    tag,
)
from rlox_opt.views.site.model import History, features_title
from rlox_opt.views.site.overview import against, amount
from rlox_opt.views.site.sparkline import sparkline

_PLACES = {"inside": "as predicted", "below": "less than predicted", "above": "more than predicted"}


def ledger_page(ledger: Sequence[Line]) -> Page:
    """`optimisations.html`."""
    if not ledger:
        body: Html = paragraph("There are no cards in optimizations/.")
        return Page("optimisations.html", "Optimisations", body)
    checked = [line for line in ledger if line.outcome]
    inside = sum(line.outcome == "inside" for line in checked)
    status = Counter(line.card.status for line in ledger)
    figures = [
        ("cards", len(ledger)),
        *sorted(status.items()),
        ("measured as predicted", f"{inside} of {len(checked)}"),
    ]
    rows = [
        _row(
            line, Html(f"{link(card_path(line.card.id), line.card.id, 0)} {html(line.card.title)}")
        )
        for line in ledger
        if line.card.prediction
    ]
    told = (
        f"Predicted intervals and realised ratios of {len(rows)} optimisations; {inside} of "
        f"{len(checked)} that were measured lie inside. The table below has the figures."
    )
    cells = [
        (
            link(card_path(line.card.id), f"{line.card.id} {line.card.title}", 0),
            line.card.status,
            units.band(line.card.prediction.ratio if line.card.prediction else None),
            _realised(line),
            _PLACES.get(line.outcome or "", units.MISSING),
            *(_ladder(line, algo) for algo in ("ppo", "sac")),
        )
        for line in ledger
    ]
    columns = [
        Column("Optimisation", True), Column("Status", True), Column("Predicted"),
        Column("Realised (95 % interval)"), Column("Outcome", True),
        Column("PPO end to end", True), Column("SAC end to end", True),
    ]  # fmt: skip
    return Page(
        "optimisations.html",
        "Optimisations",
        join(
            [
                pairs(figures, "figures"),
                section(
                    "ledger",
                    "Predicted against realised",
                    paragraph(
                        "Time before / time after, in the small; over 1 is faster. Bands were "
                        "predicted before the first measurement; points are what was measured, "
                        "with 95 % intervals: red where it is less than predicted, blue where more."
                    ),
                    chart(rows, told),
                ),
                coverage(ledger),
                section(
                    "table", "The ledger", table(columns, cells, "All optimisations", shown=False)
                ),
            ],
            "\n",
        ),
        heading="What did each optimisation promise and bring?",
    )


def _row(line: Line, title: object) -> Row:
    assert line.card.prediction is not None
    result = line.realised[1] if line.realised else None
    return Row(
        title,
        estimate(result.ratio, result.ci95) if result else "not measured",
        line.card.prediction.ratio,
        result.ratio if result else None,
        result.ci95 if result else None,
        line.outcome or "",
    )


def _realised(line: Line) -> str:
    if line.realised is None:
        return units.MISSING
    return estimate(line.realised[1].ratio, line.realised[1].ci95)


def _ladder(line: Line, algo: str) -> str:
    step = line.ladders.get(algo)
    if step is None:
        return units.MISSING
    return _judged(step["with_the_others"])


def _judged(of: Mapping[str, Any]) -> str:
    said = estimate(of["ratio"], of.get("ci95"))
    if of["verdict"] in ("faster", "slower") or not of.get("ci95"):
        return said
    return f"within the noise, {units.factors(of['ci95'])}"


def card_page(history: History, line: Line) -> Page:
    """A card's page."""
    card = line.card
    facts: list[tuple[object, object]] = [
        ("Status", card.status),
        ("Layer", card.layer),
        ("Feature", tag("code", card.feature)),
        ("Seam", Html(f"{html(card.seam.kind)}, {tag('code', card.seam.address)}")),
    ]
    if card.needs:
        facts.append(("Needs", join((link(card_path(id_), id_) for id_ in card.needs), ", ")))
    parts = [
        pairs(facts),
        section(
            "claim",
            "Claim",
            paragraph(card.claim.strip()),
            paragraph(card.note.strip()) if card.note else "",
        ),
        _prediction(line),
        _end_to_end(line),
        _in_history(history, line),
        _records(line.records),
    ]
    return Page(
        card_path(card.id),
        f"{card.id} {card.title}",
        join(parts, "\n"),
        over=link("optimisations.html", "Optimisations"),
    )


def _prediction(line: Line) -> Html:
    prediction = line.card.prediction
    if prediction is None:
        return section("prediction", "Prediction", paragraph("Nothing was predicted yet."))
    size = ", ".join(f"{name} = {n:,}" for name, n in prediction.size.items())
    where = f"{prediction.workload} at {size}"
    outcome = _PLACES.get(line.outcome or "", "not measured yet")
    told = f"Predicted {units.band(prediction.ratio)}, realised {_realised(line)}: {outcome}."
    return section(
        "prediction",
        "Predicted and realised",
        paragraph(told),
        chart([_row(line, where)], told),
        paragraph(Html(f"<strong>Why it was predicted.</strong> {html(prediction.why.strip())}")),
        paragraph(Html(f"<strong>What was found.</strong> {html(line.card.finding.strip())}"))
        if line.card.finding
        else "",
    )


def _end_to_end(line: Line) -> Html:
    if not line.ladders:
        text = "It lies on no path of the trainers that were climbed, or no ladder was recorded."
        return section("end-to-end", "End to end", paragraph(text))
    rows = [
        (
            algo.upper(),
            _judged(step["alone"]),
            _judged(step["with_the_others"]),
            units.factor(step["bound"]["bound"]) if step.get("bound") else units.MISSING,
        )
        for algo, step in line.ladders.items()
    ]
    columns = [
        Column("Training", True),
        Column("Alone"),
        Column("With the others on"),
        Column("At most, by Amdahl"),
    ]
    return section(
        "end-to-end",
        "End to end",
        paragraph("Time of training before / after, with 95 % intervals."),
        table(columns, rows, "What it brings to training", shown=False),
    )


def _in_history(history: History, line: Line) -> Html:
    """The series of its pair, where the history has some."""
    own = [one for name, of in history.by_benchmark.items() if line.names(name) for one in of[:1]]
    if not own:
        text = "The history has no series of its pair."
        return section("history", "Over commits", paragraph(text))
    rows = [
        (
            benchmark_link(one.benchmark),
            features_title(one.features),
            sparkline(one),
            against(one.points[-1]),
            amount(one.kind, one.points[-1].value),
        )
        for one in own
    ]
    columns = [
        Column("Benchmark", True), Column("Features", True), Column("History"),
        Column("After / before"), Column("Newest value"),
    ]  # fmt: skip
    return section(
        "history", "Over commits", table(columns, rows, "Series of its pair", shown=False)
    )


def _records(found: Sequence[Record]) -> Html:
    if not found:
        return section("records", "Records", paragraph("There is no record of it yet."))
    parts = []
    for record in reversed(found):
        rows = [
            (
                f"{result.workload}, "
                + ", ".join(f"{name} = {n:,}" for name, n in result.size.items()),
                estimate(result.ratio, result.ci95),
                result.verdict,
                units.seconds(result.baseline_s),
                units.seconds(result.optimized_s),
            )
            for result in record.results
        ]
        columns = [
            Column("Workload", True), Column("Before / after (95 %)"), Column("Verdict", True),
            Column("Before"), Column("After"),
        ]  # fmt: skip
        caption = (
            f"{record.date:%Y-%m-%d %H:%M}, {record.slug}, at {(record.commit or 'no commit')[:10]}"
        )
        parts.append(table(columns, rows, caption))
    return section("records", "Records, the newest first", *parts)
