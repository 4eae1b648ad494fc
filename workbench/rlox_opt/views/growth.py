"""How the cost of operations grows, as a page and as Markdown: time per element over four decades,
where the slope changes and why, and a call's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.primitives import facts, left_out, measured
from rlox_opt.views.scaling_picture import Line, Mark, picture

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["document", "explained", "left_out", "summary"]

HEADING = "How cost grows"


def summary(found: Mapping[str, Any]) -> Table:
    """For each operation and engine, the time per element at both ends, and the knees."""
    columns = ("operation", "over", "engine", "where the slope changes", "first", "last")
    rows = []
    for curve in found["curves"]:
        per = [s / size for s, size in zip(curve["s"], curve["sizes"], strict=True)]
        ends = f"{curve['axis']} {curve['sizes'][0]:,} to {curve['sizes'][-1]:,}"
        knees = [
            f"{knee['at']:,.0f}: {knee['before']:.2f} → {knee['after']:.2f}, {knee['why']}"
            for knee in curve["knees"]
        ]
        both = units.fine_seconds(per[0]), units.fine_seconds(per[-1])
        rows.append((curve["family"], ends, curve["engine"], knees or units.MISSING, *both))
    return Table(columns, rows, left=4)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the table, in a few sentences."""
    caches = ", ".join(f"{name} {size / 1024:,.0f} KiB" for name, size in found["caches"].items())
    return (
        f"Called from Python, on at most {found['threads']} core(s); geometric means over restarts "
        "of a restart's median. First and last: time of a call over its size, at both ends. A "
        "slope is that of ln(time of a call) over ln(size): 0 does not depend on the size, 1 is "
        "proportional to it. What happens at a knee is read from the caches of this machine "
        f"({caches or 'not told by the system'}) and from CPU time over wall time; it is a "
        "likely reason, not a proof."
    )


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    sections = [Section("summary", "Summary", [explained(found)], [summary(found)])]
    for family in found["families"]:
        if curves := _of(found, family):
            name, text = family["name"], [f"{family['what']}."]
            tables = [_detail(curve) for curve in curves]
            drawn = _picture(found, name, curves)
            sections.append(Section(name, name, text, tables, pictures=[drawn]))
    return Document(
        f"{measured(found)}, operation by operation",
        HEADING,
        [(f"{name} cache", f"{size / 1024:,.0f} KiB") for name, size in found["caches"].items()],
        [("Left out", left_out(found))],
        sections,
        facts(found),
    )


def _of(found: Mapping[str, Any], family: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [curve for curve in found["curves"] if curve["family"] == family["name"]]


def _picture(found: Mapping[str, Any], name: str, curves: Sequence[Mapping[str, Any]]) -> Markup:
    """Time per element; the marks belong to our first curve."""
    lines = [
        Line(
            curve["engine"],
            [(size, s / size) for size, s in zip(curve["sizes"], curve["s"], strict=True)],
            curve["engine"] in found["ours"],
        )
        for curve in curves
    ]
    ours = next((curve for curve in curves if curve["engine"] in found["ours"]), None)
    marks = [Mark(knee["at"], knee["why"]) for knee in ours["knees"]] if ours else []
    label = "time of a call, per element"
    return picture(name, curves[0]["axis"], lines, marks, label, in_page=True)


def _detail(curve: Mapping[str, Any]) -> Table:
    columns = (
        *(curve["axis"], "a call", "per element", "CPU ÷ wall"),
        *("result holds", "allocated at the peak", "page faults"),
    )
    rows = [
        (
            f"{size:,}",
            units.fine_seconds(s),
            units.fine_seconds(s / size),
            units.MISSING if share is None else f"{share:.2f}",
            units.size(held),
            units.size(peak),
            units.count(faults),
        )
        for size, s, share, held, peak, faults in zip(
            *(curve[name] for name in ("sizes", "s", "share", "held", "peak", "faults")),
            strict=True,
        )
    ]
    return Table(columns, rows, curve["engine"], left=0)
