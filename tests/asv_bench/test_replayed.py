"""Recorded measurements, decided by today's code: the verdicts are those that the records have."""

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rlox_opt.stats.family import judge
from rlox_opt.stats.paired import LEVEL, LOOKS, zone
from rlox_opt.stats.student import t_quantile

from asv_bench import operating_curve
from asv_bench.levels import scores, synthetic
from asv_bench.levels.detectors import every
from asv_bench.project import PROJECT

# Earlier verdicts are by another rule: an interval beyond zero, not beyond the threshold.
BY_ZONES = "2026-11-24"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def ratios(ci99: tuple[float, float]) -> list[float]:
    """The log-ratios of as many restarts as at the last look, whose interval is this one."""
    low, high = (math.log(end) for end in ci99)
    n = LOOKS[-1]
    off = (high - low) / 2 * math.sqrt(n - 1) / t_quantile(LEVEL, n - 1)
    return [(low + high) / 2 - off, (low + high) / 2 + off] * (n // 2)


def test_an_interval_gives_the_verdict_that_was_recorded() -> None:
    """Its zone alone, or that and the procedure of Benjamini and Hochberg at the last look, which
    can keep a difference back that is small beside the scatter."""
    runs = [
        (row["cells"]["diff"], math.log1p(row["threshold"] / 100))
        for path in PROJECT.records.glob("*/*_injected-*.json")
        if path.name[:10] >= BY_ZONES
        for row in read(path)["rows"]
        if "diff" in row.get("cells", {})
    ]
    assert sum(len(cells) for cells, _ in runs) >= 464
    for cells, band in runs:
        recorded = {name: cell["verdict"] for name, cell in cells.items()}
        told = {name: zone(*cell["ci99"], band) for name, cell in cells.items()}
        if told != recorded:
            judged = judge({name: ratios(cell["ci99"]) for name, cell in cells.items()}, band)
            told = {name: judgement.verdict for name, judgement in judged.items()}
        assert told == recorded


def test_simulated_runs_give_the_verdicts_that_were_recorded() -> None:
    """From the seed: four hundred runs a point, looked at after 5 restarts to 40. Two points of
    each threshold and scatter, at slowdowns that differ from one to the next."""
    (path,) = PROJECT.records.glob("*/*_operating-curve.json")
    record = read(path)
    for point in record["points"][::9]:
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
