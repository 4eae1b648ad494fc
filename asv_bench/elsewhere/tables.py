"""Tables of what was found, what was flagged wrongly, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rlox_opt.history import elsewhere
from rlox_opt.stats.paired import FLAGGED

from asv_bench import markdown
from asv_bench.injected.scores import Count

Row = Mapping[str, Any]


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """All tables that have rows."""
    of = {
        what: [
            row for row in rows if row["what"] == what and (what == "pair" or "failed" not in row)
        ]
        for what in _KINDS
    }
    for what, table in _KINDS.items():
        if of[what]:
            yield from ("", f"**{_TITLES[what]}**", "")
            yield from table(of[what])


def _first(rows: Sequence[Row]) -> Iterator[str]:
    head = ["project", "lines written", "init, s", "base: environment, build", "head: build",
            "reading the suite", "measuring", "from init to verdicts, s", "verdicts"]  # fmt: skip
    parts = ("base", "head", "listing", "measuring")
    yield from markdown.table(
        head,
        (
            [row["project"], str(row["configured"]), f"{row['init_seconds']:.1f}",
             *(_seconds(row["parts"].get(part)) for part in parts),
             f"{row['seconds']:.0f}", str(len(row["cells"]["diff"]))]
            for row in rows
        ),
    )  # fmt: skip


def _pair(rows: Sequence[Row]) -> Iterator[str]:
    yield from markdown.table(
        ["project", "reported", "by", "outcome", "times as long (99 %)", "others flagged", *_TOOK],
        (
            [row["project"], row.get("reported", "–"), of.tool, of.outcome, of.span,
             f"{of.flagged}/{of.beside}", *_took(row)]
            for row in rows
            for of in elsewhere.told(row)
        ),
    )  # fmt: skip


def _why(rows: Sequence[Row]) -> Iterator[str]:
    found = [(row, of) for row in rows for of in elsewhere.reasons(row)]
    yield from markdown.table(
        ["project", "benchmark", "times as long", "named", "of those the change touches",
         "functions that grew", "s"],
        (
            [row["project"], of.benchmark, f"{of.ratio:.2f}", "yes" if of.named else "no",
             of.touched or "–", of.grew or "–", f"{of.seconds:.0f}"]
            for row, of in found
        ),
    )  # fmt: skip
    named = Count()
    for _, of in found:
        named.add(of.named)
    yield from ("", f"The function that it is known to be is named for {named} benchmarks.")


def _unchanged(rows: Sequence[Row]) -> Iterator[str]:
    flagged: dict[tuple[str, str], Count] = {}
    seconds: dict[tuple[str, str], float] = {}
    undecided: dict[tuple[str, str], int] = {}
    for row, arm, cells in _arms(rows):
        key = row["project"], arm
        count = flagged.setdefault(key, Count())
        seconds[key] = seconds.get(key, 0.0) + row["seconds"]
        for cell in cells.values():
            count.add(cell["verdict"] in FLAGGED)
            undecided[key] = undecided.get(key, 0) + (cell["verdict"] == "undecided")
    yield from markdown.table(
        ["project", "by", "flagged (95 % bound)", "undecided", "min"],
        (
            [*key, count.bounded(), str(undecided.get(key, 0)), f"{seconds[key] / 60:.1f}"]
            for key, count in flagged.items()
        ),
    )


def _bisect(rows: Sequence[Row]) -> Iterator[str]:
    yield from markdown.table(
        ["project", "commits", "found", "times as long", "comparisons", "min"],
        (
            [row["project"], str(row["commits"]),
             f"{row['outcome']}: {(row['commit'] or '–')[:10]}",
             f"{row['ratio']:.3f}" if row["ratio"] else "–", str(len(row["comparisons"])),
             f"{row['seconds'] / 60:.1f}"]
            for row in rows
        ),
    )  # fmt: skip


def _record(rows: Sequence[Row]) -> Iterator[str]:
    yield from markdown.table(
        ["project", "commits", "recorded", "failed", "min", "publish, s", "series"],
        (
            [row["project"], str(row["asked"]), str(row["recorded"]), str(len(row["unrecorded"])),
             f"{row['seconds'] / 60:.1f}", f"{row['publish_seconds']:.1f}",
             str(row["pages"]["series"])]
            for row in rows
        ),
    )  # fmt: skip


def _arms(rows: Iterable[Row]) -> Iterator[tuple[Row, str, Mapping[str, Any]]]:
    for row in rows:
        for arm, cells in row["cells"].items():
            yield row, arm, cells


_TOOK = ("builds, min", "measuring, min")


def _took(row: Row) -> list[str]:
    """Minutes for environments and builds, and for the rest."""
    return [f"{part:.1f}" for part in elsewhere.minutes(row) or ()] or ["–", "–"]


def _seconds(of: float | None) -> str:
    return "–" if of is None else f"{of:.1f}"


_KINDS = {
    "first": _first,
    "pair": _pair,
    "why": _why,
    "unchanged": _unchanged,
    "bisect": _bisect,
    "record": _record,
}
_TITLES = {
    "first": "From the installed wheel to the first verdict, nothing configured, no package cached",
    "pair": "Commits known to be slower",
    "why": "Why they are",
    "unchanged": "Commits that differ in a comment",
    "bisect": "Search for the commit",
    "record": "A history",
}
