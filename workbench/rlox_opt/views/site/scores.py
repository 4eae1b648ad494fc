"""Scores of the tools where the truth was known: injected slowdowns, unchanged commits, synthetic
histories, and slowdowns that other projects reported."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any, NamedTuple

from rlox_opt.history import elsewhere
from rlox_opt.history.injected import is_near, slowed, spared, title
from rlox_opt.stats.paired import FLAGGED
from rlox_opt.stats.rate import upper_bound
from rlox_opt.views import units
from rlox_opt.views.site.layout import Table

_LONGEST = 40  # characters of an error; the record has all of them

_Record = Mapping[str, Any]


class Score(NamedTuple):
    """A question and its answer: a sentence, and tables with a note each ("" for none)."""

    title: str
    tables: Sequence[tuple[Table, str]]
    told: str = ""


def _telling(records: Sequence[_Record]) -> list[_Record]:
    """The newest records that contain a tool, at its setting and place, which no newer record
    contains."""
    found: list[_Record] = []
    told: set[tuple[str, str | None]] = set()
    for record in reversed(records):
        rows = [row for row in record["rows"] if "cells" in row]
        of = {(title(arm, row), row.get("regression")) for row in rows for arm in row["cells"]}
        if not found or of - told:
            found.append(record)
        told |= of
    return found


def _score(machine: str, records: Sequence[_Record]) -> Score:
    """For each tool: slowdowns found by size, and false alarms."""
    return Score(
        "Would a slowdown be found?",
        [_slowdowns(machine, record) for record in _telling(records)],
        "Commits with an injected slowdown: how many each tool calls slower, and what it flags for "
        "nothing.",
    )


def _slowdowns(machine: str, record: _Record) -> tuple[Table, str]:
    trials = [row for row in record["rows"] if row["what"] == "trial"]
    percents = sorted({row["percent"] for row in trials} - {0})
    arms = list(dict.fromkeys(arm for row in trials for arm in row["cells"]))
    rows = []
    for arm in arms:
        own = [row for row in trials if arm in row["cells"]]
        found = [
            _share(
                slowed(row, arm)["verdict"] == "slower"
                for row in own
                if row["percent"] == percent and is_near(row)
            )
            for percent in percents
        ]
        still = _rate(_flags(row["cells"][arm].values()) for row in own if not row["percent"])
        beside = _rate(_flags(spared(row, arm)) for row in own)
        rows.append((title(arm, own[0]), *found, still, beside))
    columns = _columns(
        "Tool", *(f"{percent:g} % found" for percent in percents), "False alarms", "Beside a change"
    )
    places = ", ".join(dict.fromkeys(row["regression"] for row in trials))
    tools = ", ".join(name for name, *_ in rows)
    caption = f"Slowdowns of known size, {_of(machine, record)}: {tools}; {places}"
    off = {
        f"{row['regression']} at {row['percent']:g} % (truly {100 * (row['truth'] - 1):.1f} %)"
        for row in trials
        if row["percent"] and not is_near(row)
    }
    note = f"Not counted, for their true size is another: {', '.join(sorted(off))}." if off else ""
    return Table(columns, rows, caption), note


def _columns(words: str, *figures: str) -> dict[str, str | None]:
    """Columns of a table: the first has words, the others have figures."""
    return {words: "word", **dict.fromkeys(figures)}


def _of(machine: str, record: _Record) -> str:
    """The origin of a figure: machine, day and commit."""
    return f"{machine}, {record['date'][:10]}, commit {record.get('commit', '')[:10]}"


def _aa(machine: str, records: Sequence[_Record]) -> Score:
    return Score(
        "Is nothing flagged where nothing changed?",
        [(_alarms(machine, record), "") for record in _telling(records)],
    )


def _alarms(machine: str, record: _Record) -> Table:
    rows = []
    found: dict[str, list[list[bool]]] = {}
    for row in record["rows"]:
        for arm, cells in row["cells"].items():
            found.setdefault(title(arm, row), []).append(_flags(cells.values()))
    for name, runs in found.items():
        rows.append((name, _rate(runs), _rate([any(run)] for run in runs)))
    columns = _columns("Tool", "Benchmarks flagged", "Runs with a flag")
    caption = f"Commits in which nothing changed, {_of(machine, record)}: {', '.join(found)}"
    return Table(columns, rows, caption)


def _bisect(machine: str, records: Sequence[_Record]) -> Score:
    """How often the commit was found, by the newest record of each load."""
    newest: dict[str, Table] = {}
    for record in records:
        rows = [row for row in record["rows"] if row["what"] == "bisect"]
        counted = [
            (word, _share(row["outcome"] == word for row in rows))
            for word in ("right", "wrong", "undecided")
        ]
        tool = title("bisect", next(iter(rows), {}))
        caption = f"Histories with one slowdown, {_of(machine, record)}: {tool}"
        newest[tool] = Table(_columns("Outcome of bisect", "Histories"), counted, caption)
    return Score("Does bisect find the commit?", [(table, "") for table in newest.values()])


def _levels(_machine: str, records: Sequence[_Record]) -> Score:
    newest: dict[tuple[str, str], dict[str, _Record]] = {}  # by noise and detector, then by shape
    for record in records:
        for cell in record["cells"]:
            if cell["what"] == "whole":
                _, comma, hint = cell["shape"].partition(", ")
                row = f"{cell['noise']}{comma}{hint}", cell["detector"]
                newest.setdefault(row, {})[cell["shape"]] = cell
    shapes = {shape for of in newest.values() for shape in of}
    sizes = sorted(set().union(*(of for of in map(_steps, shapes) if len(of) == 1)))
    rows = []
    for (noise, detector), of in newest.items():
        flat = [cell for shape, cell in of.items() if not _steps(shape)]
        of_size = [[cell for shape, cell in of.items() if _steps(shape) == {n}] for n in sizes]
        found = [_part(stepped, "located") for stepped in of_size]
        rows.append((noise, detector, _part(flat, "false"), *found))
    columns: dict[str, str | None] = {"Noise": "word", "Detector": "word"}
    shares = ["Flat ones alarmed", *(f"{size} % steps located" for size in sizes)]
    columns |= dict.fromkeys(shares, "folds")
    return Score(
        "Are level changes found, and only those?",
        [(Table(columns, rows, f"Level changes, until {records[-1]['date'][:10]}"), "")],
        "Synthetic histories of a hundred commits, looked at as a whole; and families of "
        "benchmarks over 44 commits, of which one has a step ten before the end, and any may be "
        "alarmed. Recorded ones are drawn from this project's own readings. Counted: counts name "
        "the step's commit, and of each benchmark two others, where nothing happened. Located is "
        f"within {records[-1]['near']} commits.",
    )


def _steps(shape: str) -> set[int]:
    """The sizes of the steps in per cent: "-3 % in the middle" → 3."""
    return {int(size) for size in re.findall(r"[+-](\d+) %", shape)}


def _part(cells: Sequence[_Record], name: str) -> str:
    histories = sum(cell["histories"] for cell in cells)
    return f"{sum(cell[name] for cell in cells) / histories:.3f}" if histories else units.MISSING


def _attribution(machine: str, records: Sequence[_Record]) -> Score:
    record = records[-1]
    rows = [row for row in record["rows"] if row["what"] == "attribution"]
    counted = [
        (
            f"{percent:g} %",
            *(_share(r["right"][n] for r in rows if r["percent"] == percent) for n in (0, 1)),
        )
        for percent in sorted({row["percent"] for row in rows})
    ]
    columns = _columns("Slowdown", "Right layer", "Right function")
    caption = f"Injected slowdowns put down to their cause, {_of(machine, record)}"
    return Score("Is the cause found?", [(Table(columns, counted, caption), "")])


def scoreboard(found: Mapping[str, Mapping[str, Sequence[_Record]]]) -> Score | None:
    """The score on slowdowns of other projects, over all machines; None without records."""
    records = [(name, of) for name, kinds in found.items() for of in kinds.get("elsewhere", ())]
    newest = list(_newest_of_each(sorted(records, key=lambda of: of[1]["date"])))
    every = [row for *_, own in newest for row in own]
    if not every:
        return None
    of_all: defaultdict[str, defaultdict[str, list[elsewhere.Told]]]
    of_all = defaultdict(lambda: defaultdict(list))
    each: list[tuple[str, ...]] = []
    named: list[str] = []
    reasons = {
        (row["project"], row["head"]): elsewhere.reasons(row)
        for row in every
        if row["what"] == "why" and "failed" not in row
    }
    for row in every:
        if row["what"] != "pair":
            continue
        reported = f"{row.get('reported', '')} ({row['source']})" if "source" in row else ""
        why = reasons.get((row["project"], row["head"]), ())
        commit = f"{row['project']} {row['head'][:10]}"
        for of in elsewhere.told(row):
            of_all[of.tool][commit].append(of)
            beside = f"{of.flagged} of {of.beside}" if of.beside else units.MISSING
            took = " + ".join(f"{part:.1f}" for part in elsewhere.minutes(row) or ())
            each.append((
                commit, reported, of.tool, _outcome(row, of.outcome), of.span, beside,
                took or units.MISSING,
            ))  # fmt: skip
            named.append(_share(one.named for one in why if of.tool == "diff"))
    columns = _columns("Commit", "Reported", "Tool", "Outcome", "Times as long (99 %)",
                       "Flagged beside", "Builds + the rest, min")  # fmt: skip
    columns |= dict.fromkeys(("Reported", "Tool", "Outcome"), "word")
    note = (
        "Flagged beside: how many of the other benchmarks are called slower, of which nobody "
        "expected it. They may be slower indeed, so these flags need not be false."
    )
    if reasons:
        columns["Reason named"] = None
        each = [(*row, name) for row, name in zip(each, named, strict=True)]
        note += (
            " Reason named: of the benchmarks for which the reason was looked for, those where the "
            "first function that is named is one that the change, or its correction, touches."
        )
    scored = [(tool, *_counted(told), _of_nothing(every, tool)) for tool, told in of_all.items()]
    counts = _columns("Tool", "Commits found", *(word.capitalize() for word in elsewhere.OUTCOMES),
                      "Flagged beside", "Flagged for nothing")  # fmt: skip
    counts["Flagged for nothing"] = "folds"  # says how many were undecided, too
    at: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for machine, record, own in newest:
        place = machine, record["date"][:10], record.get("commit", "")[:10]
        at[place] += [row["project"] for row in own]
    measured = [(*place, ", ".join(dict.fromkeys(projects))) for place, projects in at.items()]
    where = dict.fromkeys(("Machine", "Date", "Commit of rlox-opt", "Projects"), "word")
    caption = "Commits that made something slower"
    return Score(
        "Are slowdowns of other projects found?",
        [
            (
                Table(counts, scored, f"{caption}: counts"),
                "A commit that a benchmark reaches is found by any of its comparisons, which are "
                "counted after it. Beside a count of what was found stands the lowest rate "
                "that may lie behind it, beside a count of flags the highest (95 % confidence).",
            ),
            (Table(columns, each, f"{caption}: each"), note),
            (_searches(every), ""),
            (Table(where, measured, "Where this was measured"), ""),
        ],
        "Public projects in whose issues a slowdown is reported, with the commit that made it. "
        "Found: a benchmark is called slower. Blind: no benchmark of the suite reaches the "
        "slowdown. Each tool gets the same commits and benchmarks; the other tools are those that "
        "the projects use.",
    )


def _newest_of_each(
    records: Sequence[tuple[str, _Record]],
) -> Iterator[tuple[str, _Record, list[_Record]]]:
    """Records with their machines, the newest first, each with the rows on a project and a tool
    that no newer record has."""
    told: set[tuple[str, ...]] = set()
    for machine, record in reversed(records):
        keyed = [
            ((row["project"], row["what"], row.get("tool", "")), row) for row in record["rows"]
        ]
        own = [row for key, row in keyed if key not in told]
        if own:
            yield machine, record, own
        told |= {key for key, _ in keyed}


def _outcome(row: _Record, outcome: str | None) -> str:
    if "failed" in row:
        return shorten(f"failed: {row['failed']}", _LONGEST, placeholder=" …")
    return outcome or units.MISSING


def _searches(every: Sequence[_Record]) -> Table:
    rows = [
        (
            row["project"],
            str(row.get("commits", units.MISSING)),
            _outcome(row, row.get("outcome")),
            (row.get("commit") or units.MISSING)[:10],
            _minutes(row["seconds"] / 60 if "seconds" in row else None),
        )
        for row in every
        if row["what"] == "bisect"
    ]
    columns = _columns("Project", "Commits", "Outcome of bisect", "Commit found", "Min")
    columns |= dict.fromkeys(("Outcome of bisect", "Commit found"), "word")
    return Table(columns, rows, "Search for the commit")


def _counted(of_commits: Mapping[str, Sequence[elsewhere.Told]]) -> Sequence[str]:
    """For one tool: commits found among those that it reaches, comparisons by outcome, and
    flags."""
    told = [of for each in of_commits.values() for of in each]
    outcomes = [of.outcome for of in told]
    counts = [f"{outcomes.count(word)}" for word in elsewhere.OUTCOMES]
    counts[0] = _least([outcome == "found" for outcome in outcomes])
    by_commit = [{of.outcome for of in each} for each in of_commits.values()]
    found = _least(["found" in of for of in by_commit if of != {"blind"}])
    beside = _rate([n < of.flagged for n in range(of.beside)] for of in told)
    return found, *counts, beside


def _least(hits: Sequence[bool]) -> str:
    """Hits in trials, with the smallest rate that agrees with them."""
    if not hits:
        return units.MISSING
    least = 1 - upper_bound(len(hits) - sum(hits), len(hits))
    return f"{_share(hits)} (> {units.percent(least)})"


def _of_nothing(every: Sequence[_Record], tool: str) -> str:
    rows = [row for row in every if row["what"] == "unchanged" and "cells" in row]
    cells = [row["cells"][tool].values() for row in rows if tool in row["cells"]]
    undecided = sum(cell["verdict"] == "undecided" for of in cells for cell in of)
    # An undecided benchmark is not flagged either, so the number of these stands beside.
    return _rate(map(_flags, cells)) + (f", {undecided} undecided" if undecided else "")


def _minutes(of: float | None) -> str:
    return units.MISSING if of is None else f"{of:.1f}"


def _flags(cells: Iterable[_Record]) -> list[bool]:
    return [cell["verdict"] in FLAGGED for cell in cells]


def _rate(runs: Iterable[Sequence[bool]]) -> str:
    """Hits in trials, with the largest rate that agrees with them: with few trials, none is not
    0."""
    flags = [flag for run in runs for flag in run]
    if not flags:
        return units.MISSING
    return f"{_share(flags)} (< {units.percent(upper_bound(sum(flags), len(flags)))})"


def _share(of: Iterable[bool]) -> str:
    flags = list(of)
    return f"{sum(flags)} of {len(flags)}" if flags else units.MISSING


# By kind of record, with a name: the function that makes a machine's score of them, oldest first.
SCORES: Mapping[str, tuple[str, Callable[[str, Sequence[_Record]], Score]]] = {
    "injected-score": ("score", _score),
    "injected-aa": ("aa", _aa),
    "injected-bisect": ("bisect", _bisect),
    "injected-attribute": ("attribution", _attribution),
    "levels": ("levels", _levels),
}
