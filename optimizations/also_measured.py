"""What some optimisations must show besides the speed of a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rlox_opt.harness import restarts
from rlox_opt.harness.restarts import Cell
from rlox_opt.project.project import Project

if TYPE_CHECKING:
    from rlox_opt.plan.comparing import Series
    from rlox_opt.system.progress import Lines

Result = dict[str, Any]
Also = dict[str, Any]

# Rows and lengths on either side of both of P8's thresholds: from 16 rows on only the baseline is
# parallel below 4,096 elements, below 16 rows only the optimised twin is parallel above them.
_CROSSOVER_ROWS = {16: (16, 64, 255), 8: (512, 2_048, 8_192, 32_768)}
_SHARE_S = 0.3


def extra(
    project: Project,
    id_: str,
    extension: Path,
    results: Sequence[Result],
    most: int,
    also: Also,
    progress: Lines,
) -> list[Result]:
    """Fill `also` for the optimisation `id_`; returns results of further workloads."""
    if id_ == "P5":
        also["growth"] = growth(results)
    elif id_ == "P8":
        progress.note("looking for the crossover")
        also["crossover_elements"] = crossover(extension, progress)
    elif id_ == "P11":
        return other_thread(project, extension, most, progress)
    elif id_ in ("P3", "P12"):
        also["bytes_copied"] = [copied(result) for result in results if _counted(result)]
    return []


def growth(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Exponent of the time in n, `{workload: {twin: exponent}}`: the slope of least squares of
    log(seconds) over log(n). 0 is constant, 1 linear."""
    exponents: dict[str, dict[str, float]] = {}
    for workload in dict.fromkeys(result["workload"] for result in results):
        of = [result for result in results if result["workload"] == workload]
        x = [math.log(result["size"]["n"]) for result in of]
        exponents[workload] = {
            twin: _slope(x, [math.log(result[f"{twin}_s"]) for result in of])
            for twin in ("baseline", "optimized")
        }
    return exponents


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def crossover(extension: Path, progress: Lines) -> float | None:
    """Elements of a token KL from which two threads and more are faster than one, interpolated
    between the sizes around it; None if they are not faster anywhere or everywhere."""
    from rlox_opt.plan.comparing import Series, measure

    series = [
        Series(Cell("P8", "token_kl", (("batch", rows), ("length", length))))
        for rows, lengths in _CROSSOVER_ROWS.items()
        for length in lengths
    ]
    measure(series, partial(restarts.twins, extension), 5, progress)
    points = []
    for one in series:
        rows, length = (number for _, number in one.cell.size)
        # ln(time in parallel / time in turn): the baseline is the parallel side at 16 rows only.
        log_ratio = math.log(one.estimate().ratio)
        points.append((math.log(rows * length), log_ratio if rows >= 16 else -log_ratio))
    points.sort()
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 > 0 >= y1:
            return round(math.exp(x0 + (x1 - x0) * y0 / (y0 - y1)))
    return None


def other_thread(project: Project, extension: Path, most: int, progress: Lines) -> list[Result]:
    """P11: the share of its full speed that another Python thread keeps while this one samples."""
    from rlox_opt.plan.comparing import Series, measure, result

    shared = []
    for size in next(
        s for i, w, s in project.installed.pairs() if (i, w) == ("P11", "sample_256_numpy")
    ):
        series = Series(Cell("P11", "sample_256_numpy", tuple(size.items())))

        def one(cells: Sequence[Cell], _: float, seed: int) -> Any:
            return ((cell, restarts.shares(extension, cell, _SHARE_S, seed)) for cell in cells)

        measure([series], one, most, progress)
        shares = [(1 / r.baseline_s, 1 / r.optimized_s) for r in series.readings]
        before, after = (sum(column) / len(shares) for column in zip(*shares, strict=True))
        kept = result(series, {}) | {"workload": "other_thread"}
        kept |= {"baseline_s": None, "optimized_s": None}  # inverse shares, no time of a call
        shared.append(kept | {"share": {"baseline": before, "optimized": after}})
    return shared


def _counted(result: Result) -> bool:
    return result["allocated_bytes"] is not None


def copied(result: Result) -> Result:
    """Bytes that a push copies: what goes into vectors made for it, and the row in the ring."""
    size = result["size"]
    row = 4 * (2 * size["obs_dim"] + size["act_dim"])
    bytes_ = {twin: allocated + row for twin, allocated in result["allocated_bytes"].items()}
    return {"workload": result["workload"], "size": size, **bytes_}


def builds(
    project: Project,
    profiles: tuple[str, str],
    series: list[Series],
    most: int,
    progress: Lines,
    also: Also,
) -> list[Result]:
    """P6: the extension built with either profile, cold, for the time of building; in that of the
    twins, the second size of every workload of the core, and all of them together. Readings go into
    `series`."""
    from rlox_opt.plan.comparing import Series, measure, result
    from rlox_opt.plan.extensions import build
    from rlox_opt.stats import paired

    features = project.installed.build_info()["features"]
    built, twins = {}, {}
    for side, profile in zip(("baseline", "optimized"), profiles, strict=True):
        progress.note(f"building with the profile {profile}, from nothing")
        built[side] = build(project, f"p6-{side}", features, profile, cold=True)
        twins[side] = build(project, f"p6-{side}-twins", features, profile, twins=True).path
    also["build_seconds"] = {side: round(b.seconds, 1) for side, b in built.items()}
    also["bytes"] = {side: b.bytes for side, b in built.items()}

    series += [
        Series(Cell(id_, workload, tuple(sizes[1].items())))
        for id_, workload, sizes in project.installed.pairs()
        if not workload.endswith("_numpy")
    ]
    restart = partial(restarts.builds, twins)

    def together() -> paired.Estimate | None:
        """The mean over the workloads, one log-ratio a restart."""
        if not series[0].readings:
            return None
        rows = zip(*(one.readings for one in series), strict=True)
        return paired.estimate([fmean(reading.log_ratio for reading in row) for row in rows])

    def waiting() -> list[Cell]:
        """All of them, until the mean has its verdict."""
        mean = together()
        return [] if mean and mean.verdict != "undecided" else [one.cell for one in series]

    measure(series, restart, most, progress, waiting)
    mean = together()
    assert mean is not None
    whole = {
        "workload": "all",
        "size": {},
        "ratio": mean.ratio,
        "ci95": mean.ci95,
        "verdict": mean.verdict,
        "restarts": mean.restarts,
    }
    each = [
        result(s, {}) | {"workload": f"{s.cell.id} {s.cell.workload}", "aa": None} for s in series
    ]
    return [whole, *each]
