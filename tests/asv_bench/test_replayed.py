"""Recorded measurements, decided by today's code: the verdicts are those that the records have."""

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rlox_opt.stats.paired import FLAGGED, LOOKS, zone

from asv_bench import operating_curve
from asv_bench.levels import scores, synthetic
from asv_bench.levels.detectors import every
from asv_bench.project import PROJECT

# Earlier verdicts are by another rule: an interval beyond zero, not beyond the threshold.
BY_ZONES = "2026-11-24"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_an_interval_gives_the_verdict_that_was_recorded() -> None:
    """Or one that was undecided, since a difference must also pass the procedure of Benjamini and
    Hochberg over the benchmarks beside it."""
    runs = [
        (row["cells"]["diff"].values(), math.log1p(row["threshold"] / 100))
        for path in PROJECT.records.glob("*/*_injected-*.json")
        if path.name[:10] >= BY_ZONES
        for row in read(path)["rows"]
        if "diff" in row.get("cells", {})
    ]
    cells = [(zone(*cell["ci99"], band), cell, len(run)) for run, band in runs for cell in run]
    assert len(cells) >= 464
    other = [(said, cell, beside) for said, cell, beside in cells if said != cell["verdict"]]
    assert all(
        said in FLAGGED and cell["verdict"] == "undecided" and beside > 1
        for said, cell, beside in other
    ), other
    flagged = sum(cell["verdict"] in FLAGGED for _, cell, _ in cells)
    assert len(other) < flagged / 10  # the procedure seldom keeps one back


def test_simulated_runs_give_the_verdicts_that_were_recorded() -> None:
    """From the seed: four hundred runs a point, looked at after 5 restarts to 40."""
    (path,) = PROJECT.records.glob("*/*_operating-curve.json")
    record = read(path)
    for point in record["points"][::4]:
        at = [point[name] for name in ("slowdown", "scatter", "threshold")]
        rng = random.Random(f"0 {at[2]} {at[1]} {at[0]}")
        counts = Counter(operating_curve.verdict(rng, *at) for _ in range(record["runs"]))
        assert {said: n / record["runs"] for said, n in counts.items()} == point["shares"], at
    assert LOOKS == (5, 10, 20, 40)


@pytest.mark.parametrize(
    ("noise", "shape"),
    [("gauss", "+3 % in the middle"), ("ar1", "+3 % in the middle"), ("outliers", "+5 % late")],
)
def test_as_many_level_changes_are_located_as_were_recorded(noise: str, shape: str) -> None:
    detector = next(one for one in every() if one.name == "levels")
    (path,) = PROJECT.records.glob("*/2026-11-23T230228Z_levels.json")
    record = read(path)
    (cell,) = (
        cell for cell in record["cells"]
        if (cell["what"], cell["noise"], cell["shape"]) == ("whole", noise, shape)
    )  # fmt: skip
    (history,) = (of for of in synthetic.shapes(noise) if of.name == shape)
    numbers = range(record["first"], record["first"] + cell["histories"])
    told = scores.summed([scores.whole(detector, noise, history, number) for number in numbers])
    assert told == {"located": cell["located"], "false": cell["false"]}
