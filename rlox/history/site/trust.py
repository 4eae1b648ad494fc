"""How far verdicts can be trusted: calibrations, and scores of injected regressions, by machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox.history.site.axis import Row, chart
from rlox.history.site.layout import (
    Column,
    Html,
    breakable,
    join,
    page,
    pairs,
    paragraph,
    section,
    table,
    tag,
)
from rlox.profiling.machine import ROOT
from rlox.report import units

FOLDER = ROOT / "asv_bench" / "record"
_WANTED = 1.03  # the change that should be found
_FLAGGED = ("slower", "faster")

Table = Mapping[str, Any]


def read(folder: Path = FOLDER) -> dict[str, dict[str, list[Table]]]:
    """The records of each machine by their kind ("calibration", "injected-score", …), the oldest
    first."""
    found: dict[str, dict[str, list[Table]]] = {}
    for path in sorted(folder.glob("*/*.json"), key=lambda path: path.name):
        kind = path.stem.partition("_")[2].rstrip("-0123456789")
        text = path.read_text(encoding="utf-8")
        found.setdefault(path.parent.name, {}).setdefault(kind, []).append(json.loads(text))
    return found


def trust(found: Mapping[str, Mapping[str, Sequence[Table]]]) -> str:
    """`trust.html`."""
    parts: list[object] = [
        paragraph(
            "Every verdict has an error rate, and every machine a change too small for it to "
            "see. Both are measured: with the same build on both sides, and with slowdowns of "
            "known size.",
            "soft",
        )
    ]
    for machine, kinds in sorted(found.items()):
        if "calibration" in kinds:
            parts.append(_calibration(machine, kinds["calibration"]))
        if "injected-score" in kinds:
            parts.append(_score(machine, kinds["injected-score"][-1]))
        if "injected-aa" in kinds:
            parts.append(_aa(machine, kinds["injected-aa"][-1]))
        if "injected-bisect" in kinds:
            parts.append(_bisect(machine, kinds["injected-bisect"][-1]))
    if len(parts) == 1:
        parts.append(paragraph("No machine is calibrated yet: `rlox-opt calibrate` does it."))
    return page("trust.html", "Trust", join(parts, "\n"), heading="Can these verdicts be trusted?")


def _calibration(machine: str, every: Sequence[Table]) -> Html:
    newest = every[-1]
    benchmarks = sorted(newest["benchmarks"].items(), key=lambda item: -item[1]["detectable"])
    small = sum(of["detectable"] <= _WANTED for _, of in benchmarks)
    figures = [
        ("runs flagged, nothing changed", units.percent(newest["run_alarms"])),
        ("benchmarks flagged", units.percent(newest["cell_alarms"])),
        ("find 3 %", f"{small} of {len(benchmarks)}"),
    ]
    older = "; ".join(f"{of['date'][:10]}: {units.percent(of['run_alarms'])}" for of in every[:-1])
    rows = [
        (
            breakable(name),
            units.percent(of["detectable"] - 1),
            units.percent(of["sd"]),
            units.percent(of["alarms"]),
        )
        for name, of in benchmarks
    ]
    columns = [
        Column("Benchmark", True), Column("Smallest change found"), Column("Spread of a restart"),
        Column("False alarms a run"),
    ]  # fmt: skip
    return section(
        f"calibration-{machine}",
        f"Calibration of {machine}",
        pairs(figures, "figures"),
        paragraph(
            f"HEAD against itself, {newest['restarts']} restarts, {newest['date'][:10]}, commit "
            f"{newest['commit'][:10]}. Rates are of runs drawn from these restarts."
            + (f" Runs flagged in older ones: {older}." if older else "")
        ),
        chart(
            [
                Row(breakable(name), units.percent(of["detectable"] - 1), (1.0, of["detectable"]))
                for name, of in benchmarks
            ],
            "Smallest change that is found, by benchmark. The table below has the figures.",
            _WANTED,
        ),
        paragraph(
            "The smallest ratio of times that a comparison finds 95 times in a hundred. The line "
            "stands at 3 %.",
            "note",
        ),
        tag(
            "details",
            join(
                [
                    tag("summary", f"All figures of the calibration of {machine}"),
                    table(
                        columns, rows, "Smallest change found 95 times in a hundred, by benchmark"
                    ),
                ]
            ),
            class_="values",
        ),
    )


def _score(machine: str, record: Table) -> Html:
    """Of each tool: slowdowns found by size, and false alarms."""
    trials = [row for row in record["rows"] if row["what"] == "trial"]
    percents = sorted({row["percent"] for row in trials} - {0})
    arms = list(dict.fromkeys(arm for row in trials for arm in row["cells"]))
    rows = []
    for arm in arms:
        own = [row for row in trials if arm in row["cells"]]
        found = [
            _share(
                _own(row, arm)["verdict"] == "slower" for row in own if row["percent"] == percent
            )
            for percent in percents
        ]
        still = _share(_own(row, arm)["verdict"] in _FLAGGED for row in own if not row["percent"])
        beside = _share(
            cell["verdict"] in _FLAGGED
            for row in own
            for name, cell in row["cells"][arm].items()
            if name in row["beside"]
        )
        rows.append((arm, *found, still, beside))
    columns = [
        Column("Tool", True), *(Column(f"{percent:g} % found") for percent in percents),
        Column("False alarms"), Column("Beside a change"),
    ]  # fmt: skip
    caption = f"Slowdowns of known size, {record['date'][:10]}, {machine}"
    return section(
        f"score-{machine}",
        "Would a slowdown be found?",
        paragraph(
            "Commits with an injected slowdown: how many each tool calls slower, and what it flags "
            "for nothing."
        ),
        table(columns, rows, caption),
    )


def _own(row: Table, arm: str) -> Table:
    """What the tool said of the benchmark that was made slower."""
    (name,) = row["cells"][arm].keys() - set(row["beside"])
    cell: Table = row["cells"][arm][name]
    return cell


def _aa(machine: str, record: Table) -> Html:
    rows = []
    found: dict[str, list[list[bool]]] = {}
    for row in record["rows"]:
        for arm, cells in row["cells"].items():
            name = f"{arm}, threshold {row['threshold']:g} %" if "threshold" in row else arm
            flags = [cell["verdict"] in _FLAGGED for cell in cells.values()]
            found.setdefault(name, []).append(flags)
    for name, runs in found.items():
        rows.append(
            (name, _share(flag for run in runs for flag in run), _share(any(run) for run in runs))
        )
    columns = [Column("Tool", True), Column("Benchmarks flagged"), Column("Runs with a flag")]
    caption = f"Commits in which nothing changed, {record['date'][:10]}, {machine}"
    return section(
        f"aa-{machine}", "Is nothing flagged where nothing changed?", table(columns, rows, caption)
    )


def _bisect(machine: str, record: Table) -> Html:
    rows = [row for row in record["rows"] if row["what"] == "bisect"]
    counted = [
        (word, _share(row["outcome"] == word for row in rows))
        for word in ("right", "wrong", "undecided")
    ]
    caption = f"Histories with one slowdown, {record['date'][:10]}, {machine}"
    columns = [Column("Outcome of bisect", True), Column("Histories")]
    return section(
        f"bisect-{machine}", "Does bisect find the commit?", table(columns, counted, caption)
    )


def _share(of: Iterable[bool]) -> str:
    flags = list(of)
    return f"{sum(flags)} of {len(flags)}" if flags else units.MISSING
