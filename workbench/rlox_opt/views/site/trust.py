"""How far verdicts can be trusted: calibrations, and scores of injected regressions, by machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.system import schema
from rlox_opt.views import units
from rlox_opt.views.site.axis import Row, chart
from rlox_opt.views.site.layout import (
    Column,
    Html,
    Page,
    breakable,
    join,
    pairs,
    paragraph,
    section,
    table,
    tag,
)
from rlox_opt.views.site.scores import SCORES

_WANTED = 1.03  # the change that should be found

Table = Mapping[str, Any]


def read(folder: Path) -> dict[str, dict[str, list[Table]]]:
    """The records of each machine by their kind ("calibration", "injected-score", …), the oldest
    first. Raises NotReadError."""
    found: dict[str, dict[str, list[Table]]] = {}
    for path in sorted(folder.glob("*/*.json"), key=lambda path: path.name):
        kind = path.stem.partition("_")[2].rstrip("-0123456789")
        found.setdefault(path.parent.name, {}).setdefault(kind, []).append(
            schema.read(path, dict[str, Any])
        )
    return found


def trust(found: Mapping[str, Mapping[str, Sequence[Table]]]) -> Page:
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
        parts += [make(machine, kinds[kind]) for kind, make in SCORES.items() if kind in kinds]
    if len(parts) == 1:
        command = tag("code", "rlox-opt calibrate")
        parts.append(paragraph(Html(f"No machine is calibrated yet: {command} does it.")))
    return Page("trust.html", "Trust", join(parts, "\n"), heading="Can these verdicts be trusted?")


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
