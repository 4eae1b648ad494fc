"""Counts of slowdowns found and missed, and of false alarms, and tables of these counts.

A slower benchmark is found if it is called slower; undecided, unchanged and faster are misses. A
flag on a benchmark that no change affects is a false alarm.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlox_opt.history.injected import has_truth, is_near, title
from rlox_opt.stats.paired import FLAGGED
from rlox_opt.stats.rate import upper_bound

from asv_bench import markdown
from asv_bench.injected.regressions import Regression

Row = Mapping[str, Any]


@dataclass
class Count:
    """`hits` in `of` trials."""

    hits: int = 0
    of: int = 0

    def add(self, hit: bool) -> None:
        self.hits += hit
        self.of += 1

    def __str__(self) -> str:
        return f"{self.hits}/{self.of}" if self.of else "–"

    def bounded(self) -> str:
        """The count with the largest rate that agrees with it (95 %): with few trials, no hit does
        not mean 0."""
        return f"{self} (< {100 * upper_bound(self.hits, self.of):.1f} %)" if self.of else "–"


@dataclass
class Score:
    """The score of one tool at one setting. `found` is by nominal per cent, for slowdowns that are
    truly `near` it. `beside` counts benchmarks that a slowdown does not affect, `inside` true
    ratios within the interval."""

    found: dict[float, Count] = field(default_factory=dict)
    unchanged: Count = field(default_factory=Count)
    beside: Count = field(default_factory=Count)
    inside: Count = field(default_factory=Count)
    seconds: list[float] = field(default_factory=list)

    def add(self, row: Row, cells: Mapping[str, Any], benchmark: str) -> None:
        """Count a trial in which `benchmark` was made slower by `percent`."""
        cell = cells[benchmark]
        others = [flagged(other) for name, other in cells.items() if name != benchmark]
        if not row["percent"]:
            for flag in (flagged(cell), *others):
                self.unchanged.add(flag)
        else:
            for flag in others:
                self.beside.add(flag)
            if is_near(row):
                self.found.setdefault(row["percent"], Count()).add(cell["verdict"] == "slower")
        if cell["ci99"]:
            self.inside.add(has_truth(row, cell))
        self.seconds.append(row["seconds"])


def flagged(cell: Mapping[str, Any]) -> bool:
    """Whether a benchmark is called changed."""
    return cell["verdict"] in FLAGGED


def scored(rows: Iterable[Row], regressions: Sequence[Regression]) -> dict[str, Score]:
    """The score of each tool and setting over these trials."""
    benchmark = {regression.id: regression.benchmark for regression in regressions}
    by_arm: dict[str, Score] = {}
    for row in rows:
        for arm, cells in row["cells"].items():
            by_arm.setdefault(arm, Score()).add(row, cells, benchmark[row["regression"]])
    return by_arm


def score_tables(rows: Sequence[Row], regressions: Sequence[Regression]) -> Iterator[str]:
    """Tables in all, then by what limits the benchmark's speed, then by regression."""
    percents = sorted({row["percent"] for row in rows} - {0})
    bounds = {regression.id: regression.bound for regression in regressions}
    parts = [("all", rows)]
    for bound in dict.fromkeys(bounds.values()):
        parts.append((bound, [row for row in rows if bounds[row["regression"]] == bound]))
    yield from markdown.table(
        ["bound by", "tool", *(f"{p:g} % found" for p in percents), "false alarms: nothing changed",
         "beside a change", "interval has the truth", "s a comparison"],
        (
            [part, arm, *(str(score.found.get(p, Count())) for p in percents),
             score.unchanged.bounded(), score.beside.bounded(), str(score.inside),
             _median(score.seconds)]
            for part, own in parts
            for arm, score in scored(own, regressions).items()
        ),
    )  # fmt: skip
    yield ""
    of_each = []
    for regression in regressions:
        own = [row for row in rows if row["regression"] == regression.id]
        truths = {row["percent"]: row["truth"] for row in own}
        true = ", ".join(f"{100 * (truths[p] - 1):.1f}" for p in percents if p in truths)
        for arm, score in scored(own, regressions).items():
            shares = [str(score.found.get(p, Count())) for p in percents]
            named = [f"{regression.kind} (`{regression.id}`)", regression.bound]
            of_each.append([*named, true, arm, *shares, str(score.unchanged)])
    yield from markdown.table(
        ["regression", "bound by", "truly, %", "tool", *(f"{p:g} %" for p in percents), "0 %"],
        of_each,
    )


def aa_table(rows: Iterable[Row]) -> Iterator[str]:
    """The table of false alarms where nothing has changed."""
    cells: dict[str, Count] = {}
    runs: dict[str, Count] = {}
    seconds: dict[str, list[float]] = {}
    for row in rows:
        for arm, of in row["cells"].items():
            name = title(arm, row)
            flags = [flagged(cell) for cell in of.values()]
            for flag in flags:
                cells.setdefault(name, Count()).add(flag)
            runs.setdefault(name, Count()).add(any(flags))
            seconds.setdefault(name, []).append(row["seconds"])
    yield from markdown.table(
        ["tool", "benchmarks flagged", "runs with a flag", "s a run"],
        (
            [name, cells[name].bounded(), runs[name].bounded(), _median(seconds[name])]
            for name in cells
        ),
    )


def bisect_table(rows: Sequence[Row]) -> Iterator[str]:
    """The table of histories, each and all together."""
    yield from markdown.table(
        ["seed", "regression", "truly, %", "outcome", "commits left", "comparisons",
         "s with builds"],
        (
            [str(row["seed"]), row["regression"], f"{100 * (row['truth'] - 1):.1f}",
             row["outcome"], str(row["left"]), str(row["comparisons"]), f"{row['seconds']:.0f}"]
            for row in rows
        ),
    )  # fmt: skip
    outcomes = [row["outcome"] for row in rows]
    counted = ", ".join(f"{outcomes.count(o)} {o}" for o in ("right", "wrong", "undecided"))
    yield from ("", f"{len(rows)} histories: {counted}.")


def attribution_tables(rows: Sequence[Row], regressions: Sequence[Regression]) -> Iterator[str]:
    """Tables of layers and functions that were named rightly, in all and by regression."""
    percents = sorted({row["percent"] for row in rows})
    of_all = []
    for percent in percents:
        layer, function, named = Count(), Count(), Count()
        for row in rows:
            if row["percent"] == percent:
                layer.add(row["right"][0])
                function.add(row["right"][1])
                if row.get("named") is not None:
                    named.add(row["named"])
        of_all.append([f"{percent:g} %", str(layer), str(function), str(named)])
    yield from markdown.table(
        ["slowdown", "right layer", "right function", "named of those the change touches"], of_all
    )
    yield ""
    of_each = []
    for regression in regressions:
        for row in (row for row in rows if row["regression"] == regression.id):
            share = f"{100 * row['layers'][row['layer']]:.0f} %"
            marks = ["yes" if right else "no" for right in row["right"]]
            of_each.append(
                [regression.id, f"{100 * (row['truth'] - 1):.1f}", regression.layer,
                 f"{row['layer']} ({share})", str(row["function"]), *marks,
                 ", ".join(row.get("touched") or ["–"]), f"{row['seconds']:.0f}"]
            )  # fmt: skip
    yield from markdown.table(
        ["regression", "truly, %", "layer", "found (part of the change)", "function found",
         "layer right", "function right", "touched, and on the stacks of what grew", "s"],
        of_each,
    )  # fmt: skip


def probe_table(rows: Iterable[Row]) -> Iterator[str]:
    """The table of the slowdowns' sizes. If one is linear, its rows agree on the k of 1 %."""
    yield from markdown.table(
        ["regression", "k", "ratio", "99 % interval", "k of 1 %", "its interval"],
        (
            [row["regression"], str(row["k"]), f"{row['ratio']:.4f}",
             "{:.4f}–{:.4f}".format(*row["ci99"]), _k_of_1(row, row["ratio"]),
             "–".join(_k_of_1(row, end) for end in reversed(row["ci99"]))]
            for row in rows
        ),
    )  # fmt: skip


def _k_of_1(row: Row, ratio: float) -> str:
    return f"{row['k'] / (100 * (ratio - 1)):.1f}" if ratio > 1 else "∞"


def _median(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.0f}"
