"""Operations side by side, as a page and as Markdown: which engine is ahead, how times grow, every
time with its interval, and which engines were left out and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlox_opt.history.standing import fastest_other, standing
from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.scaling_picture import Line, picture
from rlox_opt.views.tables import built, origin

if TYPE_CHECKING:
    from markupsafe import Markup

HEADING = "Operations, side by side"
_SMALL = 0.1  # smaller ratios get three digits: some peers take a thousand times as long


def summary(found: Mapping[str, Any]) -> Table:
    """For each case, ours and the fastest of the others."""
    ours = found["ours"]
    against = (f"{name} ÷ it" for name in ours)
    columns = ("operation", "size", *ours, "fastest other", "its time", *against)
    rows = []
    for case in found["cases"]:
        times = {row["engine"]: row for row in case["rows"]}
        rival = fastest_other(case, ours)
        rows.append(
            (
                case["family"],
                case["title"],
                *(_seconds(times.get(name)) for name in ours),
                rival["engine"] if rival else units.MISSING,
                _seconds(rival),
                *(_against(rival, name) for name in ours),
            )
        )
    return Table(columns, rows, left=2)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the tables, in a few sentences."""
    cores = "one core" if found["threads"] == 1 else f"{found['threads']} cores"
    standings = "; ".join(
        f"{name}: " + ", ".join(f"{verdict} {n}" for verdict, n in standing(found, name).items())
        for name in found["ours"]
    )
    return (
        f"Called from Python, all engines on {cores}, in turn; geometric means over restarts. ÷: "
        "our time over that of the fastest other, below 1 we are ahead; geometric mean over "
        "restarts of the ratio within rounds, with its 95 % interval by Student's t. Ahead and "
        "behind need an interval that does not hold 1; where it does, the two are not told apart. "
        "Undecided: there were too few restarts. "
        f"Cases against the fastest other: {standings}."
    )


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    sections = [
        Section("summary", "Who is ahead", [explained(found)], _by_family(summary(found))),
        *(
            Section(
                family["name"],
                family["name"],
                [f"{family['what']}."],
                _details(found, family),
                pictures=_pictures(found, family),
            )
            for family in found["families"]
        ),
        Section("engines", "Engines", [], [Table(("Engine", "What it is"), who(found), left=2)]),
    ]
    return Document(
        f"{measured(found)} and its peers",
        HEADING,
        [
            (f"{name}: {verdict}", str(n))
            for name in found["ours"]
            for verdict, n in standing(found, name).items()
        ],
        [("Left out", left_out(found))],
        sections,
        facts(found),
    )


def _by_family(table: Table) -> list[Table]:
    """`table` as one for each operation, which its caption names: so it fits a narrow window."""
    families = dict.fromkeys(str(row[0]) for row in table.rows)
    return [
        Table(table.columns[1:], [row[1:] for row in table.rows if row[0] == name], name)
        for name in families
    ]


def measured(found: Mapping[str, Any]) -> str:
    """The name of what the others are compared with."""
    return str(found["ours"][0]) if found["ours"] else "This library"


def left_out(found: Mapping[str, Any]) -> list[str]:
    """A sentence on each engine that was left out, and each reason."""
    return [
        f"{name} {why}" + (f" ({', '.join(cases)})" if cases else "")
        for name, reasons in found["left_out"].items()
        for why, cases in reasons.items()
    ]


def facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where and when it was measured."""
    return [*origin(found), *built(found)]


def _details(found: Mapping[str, Any], family: Mapping[str, Any]) -> list[Table]:
    """A table for each case of a family: every engine, the fastest first."""
    ours = found["ours"]
    tables = []
    for case in found["cases"]:
        if case["family"] != family["name"] or not case["rows"]:
            continue
        tails = any("p99_s" in row for row in case["rows"])
        tail, against = ("p99",) if tails else (), (f"{name} ÷ it" for name in ours)
        columns = ("engine", "mean", "95 %", *tail, "restarts", *against)
        rows = [
            (
                row["engine"],
                units.fine_seconds(row["s"]),
                _ends(row["ci95"]),
                *((units.fine_seconds(row.get("p99_s")),) if tails else ()),
                str(row["restarts"]),
                *(_against(row, name) for name in ours),
            )
            for row in sorted(case["rows"], key=lambda row: float(row["s"]))
        ]
        tables.append(Table(columns, rows, case["title"]))
    return tables


def _pictures(found: Mapping[str, Any], family: Mapping[str, Any]) -> list[Markup]:
    """How the time of a call grows along each axis of the family, with a line for each engine."""
    drawn = []
    for asked in family["pictures"]:
        axis, where = asked["axis"], asked.get("where", {})
        of = [
            case
            for case in found["cases"]
            if case["family"] == family["name"]
            and all(case["size"][name] == value for name, value in where.items())
        ]
        points: dict[str, list[tuple[float, float]]] = {}
        for case in of:
            for row in case["rows"]:
                points.setdefault(row["engine"], []).append((case["size"][axis], row["s"]))
        lines = [
            Line(name, sorted(own), name in found["ours"])
            for name, own in points.items()
            if len(own) > 1
        ]
        if lines:
            fixed = "".join(
                f", {name} {value:,}" if isinstance(value, int) else f", {name} {value}"
                for name, value in where.items()
            )
            title = f"{family['name']}{fixed}"
            drawn.append(picture(title, asked["label"], lines, in_page=True))
    return drawn


def who(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The engines, what they are and their versions."""
    return [
        (row["name"], f"{row['what']} ({row['version']})" if row["version"] else row["what"])
        for row in found["engines"]
    ]


def _seconds(row: Mapping[str, Any] | None) -> str:
    return units.fine_seconds(row["s"]) if row else units.MISSING


def _ends(ends: Sequence[float] | None) -> str:
    return (
        f"{units.fine_seconds(ends[0])} – {units.fine_seconds(ends[1])}" if ends else units.MISSING
    )


def _against(row: Mapping[str, Any] | None, name: str) -> str:
    """ "0.31× (0.30–0.32) ahead"."""
    if row is None or name not in row["against"]:
        return units.MISSING
    against = row["against"][name]
    ratio, ends = against["ratio"], against["ci95"]
    if ratio < _SMALL:
        places = 2 - math.floor(math.log10(ratio))
        within = f" ({ends[0]:.{places}f}–{ends[1]:.{places}f})" if ends else ""
        shown = f"{ratio:.{places}f}×{within}"
    else:
        shown = units.estimate(ratio, ends)
    return f"{shown} {against['verdict']}"
