"""Steps of small networks by backend, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.views import html, units
from rlox_opt.views.markdown import table_lines
from rlox_opt.views.model import Section, Table
from rlox_opt.views.primitives import facts, left_out, measured, who

HEADING = "Small networks, backend by backend"
_BY_CRITERION = {"native": "ours, Rust", "burn": "Burn", "candle": "Candle", "faer": "faer"}


def summary(found: Mapping[str, Any]) -> Table:
    """A row for each step, a column for each backend."""
    python = [row["name"] for row in found["engines"]]
    columns = ("step", *_BY_CRITERION.values(), *(f"{name}, Python" for name in python))
    rows = []
    for case in found["cases"]:
        rust = found["criterion"].get(case["family"], {})
        times = {row["engine"]: row for row in case["rows"]}
        cells = (_cell(rust.get(backend)) for backend in _BY_CRITERION)
        rows.append((case["family"], *cells, *(_cell(times.get(name)) for name in python)))
    return Table(columns, rows)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the table, in a few sentences."""
    steps = "; ".join(f"{family['name']}: {family['what']}" for family in found["families"])
    return (
        f"{steps}. Medians with 95 % intervals, on {found['threads']} thread(s). The first four "
        "columns are criterion's, without Python, one after the other; the others are called from "
        "Python, in turn, over restarts of their processes. All start from the same weights, and "
        "their numbers are those of plain NumPy in float64."
    )


def markdown(found: Mapping[str, Any]) -> str:
    """The whole document."""
    lines = [f"# {HEADING}", "", explained(found), "", *table_lines(summary(found))]
    lines += [f"- **{name}**: {text}" for name, text in who(found)]
    lines += [f"- {text}" for text in left_out(found)]
    lines += ["", *(f"- {what}: {value}" for what, value in facts(found))]
    return "\n".join(lines) + "\n"


def page(found: Mapping[str, Any]) -> str:
    """One file that needs no other and no network."""
    engines = Table(("From Python", "What it is"), who(found), left=2)
    sections = [
        Section("steps", "Steps", [explained(found)], [summary(found)]),
        Section("engines", "From Python", [], [engines]),
    ]
    return html.document(
        f"{measured(found)} and its peers",
        HEADING,
        [("steps", str(len(found["cases"])))],
        [("Left out", left_out(found))],
        sections,
        facts(found),
    )


def _cell(row: Mapping[str, Any] | None) -> str:
    """ "98.1 µs (97.2 µs – 99.0 µs)"."""
    if row is None:
        return units.MISSING
    ends = row["ci95"]
    shown = f" ({units.fine_seconds(ends[0])} – {units.fine_seconds(ends[1])})" if ends else ""
    return units.fine_seconds(row["s"]) + shown
