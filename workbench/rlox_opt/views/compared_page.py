"""Two sides of training as tables, as Markdown and as a page with the differential flamegraph."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rlox_opt.history.compared import KINDS, Change, Compared
from rlox_opt.views import html, units
from rlox_opt.views.differential import flamegraph
from rlox_opt.views.markdown import table_lines
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.titles import layer_title

MOST = 12  # parts of a kind that are shown
_TITLES = {"training": "The whole", "layer": "Layers", "phase": "Phases", "function": "Functions"}
_NONE = {
    "layer": "No tool took samples of both sides.",
    "phase": "Neither side has phases.",
    "function": "Neither side kept its functions: it was written by an earlier version.",
}


def heading(found: Compared) -> str:
    """ "main (1a2b3c) → HEAD (4d5e6f)"."""
    return " → ".join(found.titles)


def sections(found: Compared) -> list[Section]:
    """A section for the whole and for each kind of part, what changed most first."""
    by_kind: dict[str, list[Change]] = {kind: [] for kind in ("training", *KINDS)}
    for change in found.changes:
        by_kind[change.kind].append(change)
    shown = []
    for kind, changes in by_kind.items():
        if changes:
            left_out = len(changes) - MOST
            text = [f"{left_out} that changed less are left out."] if left_out > 0 else []
            table = _table(kind, changes[:MOST])
            shown.append(Section(kind, _TITLES[kind], text, [table]))
        elif kind in _NONE:
            shown.append(Section(kind, _TITLES[kind], [_NONE[kind]]))
    return shown


def explained(found: Compared) -> list[str]:
    """What the figures are, and their limits, in sentences."""
    sides = f"{len(found.before)} and {len(found.after)} profiles"
    if found.steps:
        told = "Shares are of what a step took before: what stays as it was has no change."
    else:
        told = (
            "Shares are of training, for the times of steps cannot be compared: whatever grows "
            "makes the rest shrink."
        )
    if not found.repeated:
        judged = (
            "One profile a side: intervals (99 %) are of sampling alone, and nothing tells how far "
            "the whole and its phases would differ between two runs of the same."
        )
    elif found.rounds:
        judged = f"{sides}, taken in turns; intervals (99 %) are Student's over the rounds."
    else:
        judged = (
            f"{sides}, not taken in turns: intervals (99 %) are Welch's over the runs, and what "
            "the machine did to one side alone is in the difference."
        )
    return [told, judged, *found.notes]


def _table(kind: str, changes: Sequence[Change]) -> Table:
    rows = [
        (
            name_of(change),
            units.percent(change.before),
            units.percent(change.after),
            points(change.change),
            units.MISSING if change.ci99 is None else " to ".join(map(points, change.ci99)),
            change.verdict,
        )
        for change in changes
    ]
    columns = (_TITLES[kind], "Before", "After", "Change, points", "99 % interval", "Verdict")
    return Table(columns, rows)


def name_of(change: Change) -> str:
    """A part's name for readers."""
    if change.kind == "function":
        layer, _, function = change.name.partition(":")
        return f"{function} ({layer_title(layer)})"
    return layer_title(change.name) if change.kind == "layer" else change.name


def points(share: float) -> str:
    """A difference of shares in points: "+2.1", "−0.04"."""
    value = 100 * share
    return f"{value:+.{2 if abs(value) < 0.995 else 1}f}".replace("-", "−")


def markdown(found: Compared) -> str:
    """The whole document."""
    lines = [f"### {heading(found)}", ""]
    for section in sections(found):
        for table in section.tables:
            lines += table_lines(table)
        lines += [line for text in section.text for line in (text, "")]
    return "\n".join([*lines, *(f"- {text}" for text in explained(found))]) + "\n"


def page(found: Compared) -> str:
    """The page: one file that needs no other file and no network."""
    drawn = flamegraph({"the mean of all runs": {"training": found.difference()}})
    stacks = Section(
        "flamegraph",
        "Differential flamegraph",
        [] if drawn else ["There are no stacks of both sides to draw."],
        chart=Markup(drawn) if drawn else None,
    )
    return html.page(
        Document(
            "Training profiles, before and after",
            heading(found),
            _figures(found),
            [],
            [*sections(found), stacks, Section("reading", "How to read this", explained(found))],
            [("Before", found.titles[0]), ("After", found.titles[1])],
            html.flame_script() if drawn else "",
        )
    )


def _figures(found: Compared) -> list[tuple[str, str]]:
    """The whole, and the layer that changed most."""
    whole = [
        ("a step takes", units.factor(change.after / change.before))
        for change in found.changes
        if change.kind == "training"
    ]
    layers = [change for change in found.changes if change.kind == "layer"]
    return whole + [(name_of(layer), f"{points(layer.change)} points") for layer in layers[:1]]
