"""How reliable verdicts are: calibrations, and scores of injected regressions, by machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt.system import schema
from rlox_opt.views import units
from rlox_opt.views.site.axis import Placed, Row, axis
from rlox_opt.views.site.layout import Page
from rlox_opt.views.site.operating import Operating, operating
from rlox_opt.views.site.scores import SCORES, Score, scoreboard

_WANTED = 1.03  # the change that should be found

_Record = Mapping[str, Any]


class _Benchmark(NamedTuple):
    """The findings on a benchmark."""

    name: str
    detectable: str
    spread: str
    alarms: str


class _Calibration(NamedTuple):
    """The newest calibration of a machine; `older` describes the rates of earlier ones. Both are
    left out of records that name no threshold: their verdicts were by another rule."""

    record: _Record
    figures: list[tuple[str, str]]
    older: str
    axis: Placed
    benchmarks: list[_Benchmark]


class _Machine(NamedTuple):
    """All that is known of a machine; `scores` by name."""

    name: str
    calibration: _Calibration | None
    operating: Operating | None
    scores: Mapping[str, Score]


def read(folder: Path) -> dict[str, dict[str, list[_Record]]]:
    """The records of each machine by their kind ("calibration", "injected-score", …), the oldest
    first. Raises NotReadError."""
    found: dict[str, dict[str, list[_Record]]] = {}
    for path in sorted(folder.glob("*/*.json"), key=lambda path: path.name):
        kind = path.stem.partition("_")[2].rstrip("-0123456789")
        found.setdefault(path.parent.name, {}).setdefault(kind, []).append(
            schema.read(path, dict[str, Any])
        )
    return found


def trust(found: Mapping[str, Mapping[str, Sequence[_Record]]]) -> Page:
    """`trust.html`."""
    machines = [_machine(name, kinds) for name, kinds in sorted(found.items())]
    told = {
        "machines": [of for of in machines if any(of[1:])],
        "slowdowns": any("score" in of.scores for of in machines),
        "scoreboard": scoreboard(found),
    }
    return Page("trust.html", "trust", told)


def _machine(name: str, kinds: Mapping[str, Sequence[_Record]]) -> _Machine:
    return _Machine(
        name,
        _calibration(kinds["calibration"]) if "calibration" in kinds else None,
        operating(kinds["operating-curve"]) if "operating-curve" in kinds else None,
        {id_: make(name, kinds[kind]) for kind, (id_, make) in SCORES.items() if kind in kinds},
    )


def _calibration(every: Sequence[_Record]) -> _Calibration:
    newest = every[-1]
    benchmarks = sorted(newest["benchmarks"].items(), key=lambda item: -item[1]["detectable"])
    small = sum(of["detectable"] <= _WANTED for _, of in benchmarks)
    figures = [
        (f"{what} flagged at {threshold} %, nothing changed", units.percent(of[key]))
        for threshold, of in newest.get("thresholds", {}).items()
        for what, key in (("runs", "run_alarms"), ("benchmarks", "cell_alarms"))
    ]
    figures.append(("find 3 %", f"{small} of {len(benchmarks)}"))
    older = "; ".join(
        f"{of['date'][:10]}: {units.percent(of['run_alarms'])}"
        for of in every[:-1]
        if "thresholds" in of
    )
    rows = [
        Row(name, units.percent(of["detectable"] - 1), (1.0, of["detectable"]))
        for name, of in benchmarks
    ]
    told = [
        _Benchmark(
            name,
            units.percent(of["detectable"] - 1),
            units.percent(of["sd"]),
            units.percent(of["alarms"]),
        )
        for name, of in benchmarks
    ]
    return _Calibration(newest, figures, older, axis(rows, _WANTED), told)
