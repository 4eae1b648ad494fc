"""The pages of the optimisations: the ledger as one chart, and a page for each card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlox_opt.history.ledger import Line
from rlox_opt.history.records import Record
from rlox_opt.project.cards import Card
from rlox_opt.views import units
from rlox_opt.views.site.axis import Placed, Row, axis
from rlox_opt.views.site.coverage import coverage
from rlox_opt.views.site.figures import against, amount
from rlox_opt.views.site.layout import Page, Table, card_path
from rlox_opt.views.site.model import History, features_title
from rlox_opt.views.site.sparkline import Spark, sparkline

_PLACES = {"inside": "as predicted", "below": "less than predicted", "above": "more than predicted"}


class _Planned(NamedTuple):
    """A card in the ledger, with what it brought to each kind of training."""

    card: Card
    predicted: str
    realised: str
    outcome: str
    ladders: list[str]


class _Checked(NamedTuple):
    """A prediction and its result, drawn and in words; `where` it was measured."""

    axis: Placed
    told: str
    where: str


class _Series(NamedTuple):
    """A series of a card's pair in the history."""

    benchmark: str
    features: str
    spark: Spark
    against: str
    newest: str


def ledger_page(ledger: Sequence[Line], folder: str) -> Page:
    """`optimisations.html`, of the cards in a project's `folder`."""
    checked = [line for line in ledger if line.outcome]
    predicted = [line for line in ledger if line.card.prediction]
    inside = sum(line.outcome == "inside" for line in checked)
    status = Counter(line.card.status for line in ledger)
    ladders = sorted({name for line in ledger for name in line.ladders})
    columns = {"Optimisation": "word", "Status": "word", "Predicted": None,
               "Realised (95 % interval)": None, "Outcome": "word"}  # fmt: skip
    values = {
        "folder": folder,
        "figures": [
            ("cards", len(ledger)),
            *sorted(status.items()),
            ("measured as predicted", f"{inside} of {len(checked)}"),
        ],
        "predicted": axis([_row(line) for line in predicted]) if predicted else None,
        "told": f"Predicted intervals and realised ratios of {len(predicted)} optimisations; "
        f"{inside} of {len(checked)} that were measured lie inside. The table below has the "
        "figures.",
        "coverage": coverage(ledger),
        "columns": columns | {f"{name.upper()} end to end": "word" for name in ladders},
        "planned": [_planned(line, ladders) for line in ledger],
    }
    return Page("optimisations.html", "optimisations", values)


def _planned(line: Line, ladders: Sequence[str]) -> _Planned:
    prediction = line.card.prediction
    return _Planned(
        line.card,
        units.band(prediction.ratio if prediction else None),
        _realised(line),
        _PLACES.get(line.outcome or "", units.MISSING),
        [_ladder(line, name) for name in ladders],
    )


def _row(line: Line) -> Row:
    assert line.card.prediction is not None
    result = line.realised[1] if line.realised else None
    return Row(
        line.card,
        units.estimate(result.ratio, result.ci95) if result else "not measured",
        line.card.prediction.ratio,
        result.ratio if result else None,
        result.ci95 if result else None,
        line.outcome or "",
    )


def _realised(line: Line) -> str:
    if line.realised is None:
        return units.MISSING
    return units.estimate(line.realised[1].ratio, line.realised[1].ci95)


def _ladder(line: Line, name: str) -> str:
    step = line.ladders.get(name)
    if step is None:
        return units.MISSING
    return _judged(step["with_the_others"])


def _judged(of: Mapping[str, Any]) -> str:
    said = units.estimate(of["ratio"], of.get("ci95"))
    if of["verdict"] in ("faster", "slower") or not of.get("ci95"):
        return said
    return f"within the noise, {units.factors(of['ci95'])}"


def card_page(history: History, line: Line) -> Page:
    """A card's page."""
    values = {
        "card": line.card,
        "checked": _checked(line),
        "ladders": _ladders(line),
        "series": _series(history, line),
        "records": [_record(record) for record in reversed(line.records)],
    }
    return Page(card_path(line.card.id), "optimisation", values)


def _checked(line: Line) -> _Checked | None:
    prediction = line.card.prediction
    if prediction is None:
        return None
    size = ", ".join(f"{name} = {n:,}" for name, n in prediction.size.items())
    outcome = _PLACES.get(line.outcome or "", "not measured yet")
    told = f"Predicted {units.band(prediction.ratio)}, realised {_realised(line)}: {outcome}."
    return _Checked(axis([_row(line)]), told, f"{prediction.workload} at {size}")


def _ladders(line: Line) -> Table:
    rows = [
        (
            name.upper(),
            _judged(step["alone"]),
            _judged(step["with_the_others"]),
            units.factor(step["bound"]["bound"]) if step.get("bound") else units.MISSING,
        )
        for name, step in line.ladders.items()
    ]
    columns = {"Training": "word", "Alone": None, "With the others on": None,
               "At most, by Amdahl": None}  # fmt: skip
    return Table(columns, rows, "What it brings to training")


def _series(history: History, line: Line) -> list[_Series]:
    """The series of its pair that the history has."""
    own = [one for name, of in history.by_benchmark.items() if line.names(name) for one in of[:1]]
    return [
        _Series(
            one.benchmark,
            features_title(one.features),
            sparkline(one),
            against(one.points[-1]),
            amount(one.kind, one.points[-1].value),
        )
        for one in own
    ]


def _record(record: Record) -> Table:
    rows = [
        (
            f"{result.workload}, "
            + ", ".join(f"{name} = {n:,}" for name, n in result.size.items()),
            units.estimate(result.ratio, result.ci95),
            result.verdict,
            units.seconds(result.baseline_s),
            units.seconds(result.optimized_s),
        )
        for result in record.results
    ]
    columns = {"Workload": "word", "Baseline / optimised (95 %)": None, "Verdict": "word",
               "Baseline": None, "Optimised": None}  # fmt: skip
    caption = (
        f"{record.date:%Y-%m-%d %H:%M}, {record.slug}, at {(record.commit or 'no commit')[:10]}"
    )
    return Table(columns, rows, caption)
