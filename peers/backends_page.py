"""Steps of small networks by backend, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.primitives import facts, left_out, measured, who

HEADING = "Small networks, backend by backend"
_BY_CRITERION = {"native": "ours, Rust", "burn": "Burn", "candle": "Candle", "faer": "faer"}


def summary(found: Mapping[str, Any]) -> Table:
    """A row for each step, a column for each backend."""
    rust, python = by_criterion(found), from_python(found)
    rows = [(*one, *other[1:]) for one, other in zip(rust.rows, python.rows, strict=True)]
    called = (f"{name}, Python" for name in python.columns[1:])
    return Table((*rust.columns, *called), rows)


def by_criterion(found: Mapping[str, Any]) -> Table:
    """What is timed without Python: a row for each step, a column for each backend."""
    times = [found["criterion"].get(case["family"], {}) for case in found["cases"]]
    return _times(found, _BY_CRITERION, times)


def from_python(found: Mapping[str, Any]) -> Table:
    """What is called from Python: a row for each step, a column for each engine."""
    names = {engine["name"]: engine["name"] for engine in found["engines"]}
    times = [{row["engine"]: row for row in case["rows"]} for case in found["cases"]]
    return _times(found, names, times)


def _times(
    found: Mapping[str, Any], titles: Mapping[str, str], times: Sequence[Mapping[str, Any]]
) -> Table:
    """A row for each step of the times of the backends in `titles`."""
    rows = [
        (case["family"], *(_cell(of.get(name)) for name in titles))
        for case, of in zip(found["cases"], times, strict=True)
    ]
    return Table(("step", *titles.values()), rows)


def explained(found: Mapping[str, Any]) -> str:
    """What the steps are, and how to read their times, in a few sentences."""
    steps = "; ".join(f"{family['name']}: {family['what']}" for family in found["families"])
    return f"{steps}. {_how(found)}"


def _how(found: Mapping[str, Any]) -> str:
    return (
        f"Times with 95 % intervals, on {found['threads']} thread(s). Those without Python are "
        "criterion's medians, of one backend after the other; the others are called from Python, "
        "in turn: geometric means over restarts of their processes. All start from the same "
        "weights, and their numbers are those of plain NumPy in float64."
    )


def _what(found: Mapping[str, Any]) -> Table:
    """A row for each step."""
    rows = [(family["name"], family["what"]) for family in found["families"]]
    return Table(("step", "what it is"), rows, left=2)


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    engines = Table(("From Python", "What it is"), who(found), left=2)
    sections = [
        Section("steps", "Steps", [_how(found)], [_what(found)]),
        Section("rust", "Without Python", [], [by_criterion(found)]),
        Section("python", "Called from Python", [], [from_python(found), engines]),
    ]
    return Document(
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
