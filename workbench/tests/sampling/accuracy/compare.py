"""What a program says of its threads against what a report says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# Points that a layer may be off.
TOLERANCE = {"perf": 2.0, "py-spy": 4.0}
# What no share is of. py-spy stops the program to look at it, which the program's clock cannot tell
# from waiting for the interpreter.
_APART = {"perf": ("startup", "unsampled"), "py-spy": ("startup", "unsampled", "gil")}
_TRACE = 0.0005  # a share that is not worth a row
_LEAST = 0.005  # a share that a report may miss


class Row(NamedTuple):
    """A layer of a thread: its true share, the reported one and that one's interval."""

    thread: str
    layer: str
    truth: float
    share: float
    low: float
    high: float
    sampler: str

    @property
    def error(self) -> float:
        """In points."""
        return 100 * (self.share - self.truth)

    @property
    def holds(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high


def rows(
    compositions: Sequence[Mapping[str, Any]], report: Mapping[str, Any], sampler: str
) -> list[Row]:
    """Every layer that one of the two has, of every thread that told what it did."""
    found: list[Row] = []
    several = len({each["pid"] for each in compositions}) > 1
    for told_of in compositions:
        name = told_of["thread"] + (f" of {told_of['pid']}" if several else "")
        found += _thread(name, told_of["seconds"], _layers(report, told_of), sampler)
    return found


def _layers(report: Mapping[str, Any], told_of: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        layer
        for process in report["processes"]
        if process["pid"] == told_of["pid"]
        for thread in process["threads"]
        if thread["name"] == told_of["thread"]
        for layer in thread["layers"]
    ]


def _thread(
    name: str,
    truth: Mapping[str, float],
    reported: Iterable[Mapping[str, Any]],
    sampler: str,
) -> list[Row]:
    """Shares are of the thread's time after its start-up. A layer that the report does not have
    is said to be less than half a point."""
    apart = _APART[sampler]
    counted = {layer["name"]: layer for layer in reported if layer["name"] not in apart}
    true = {layer: seconds for layer, seconds in truth.items() if layer not in apart}
    whole = sum(layer["seconds"] for layer in counted.values()) or 1.0
    work = sum(true.values())
    found = []
    for layer in dict.fromkeys([*true, *counted]):
        share, low, high = 0.0, 0.0, _LEAST
        if (of := counted.get(layer)) is not None:
            share = of["seconds"] / whole
            ends = of.get("ci95") or (of["share"], of["share"])  # an old report has a point alone
            low, high = (share * end / of["share"] for end in ends)
        real = true.get(layer, 0.0) / work
        if max(share, real) >= _TRACE:
            found.append(Row(name, layer, real, share, low, high, sampler))
    return sorted(found, key=lambda row: -row.truth)


def told(found: Sequence[Row]) -> str:
    """The rows as a table in Markdown."""
    head = ("thread", "layer", "truth %", "measured %", "error", "interval", "holds")
    lines = [f"| {' | '.join(head)} |", "|---|---|---:|---:|---:|---|---|"]
    for row in found:
        interval = f"{100 * row.low:.1f} to {100 * row.high:.1f}"
        cells = (
            *(row.thread, row.layer, f"{100 * row.truth:.1f}", f"{100 * row.share:.1f}"),
            *(f"{row.error:+.1f}", interval, "yes" if row.holds else "no"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
