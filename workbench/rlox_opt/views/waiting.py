"""Who waits for whom, and how much faster the whole would be if one part were faster: sections of
the report of several processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.sampling.processes.gains import MOST_TIMES
from rlox_opt.views import units
from rlox_opt.views.model import Cell, Section, Table

MOST = 15  # parts that are shown; report.json has more
_WAITS = 4  # of a component's waits
_LITTLE = 0.005  # of a thread's time: shorter waits are left out
_WORTH = 1.005  # smaller gains are left out


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The sections on the result of `rlox_opt.sampling.processes.analysis`. If no thread waits for
    another, a part's worth is its share, and a replay says no more."""
    if alone(found):
        return []
    return [_states(found), *((_gains(found), _path(found)) if found["replayed"] else ())]


def alone(found: Mapping[str, Any]) -> bool:
    """Whether there is only one thread, which waits for no other."""
    kinds = found["kinds"]
    return sum(row["threads"] for row in kinds) <= 1 and not any(
        wait["share"] >= _LITTLE for row in kinds for wait in row["waits"]
    )


def cost(found: Mapping[str, Any]) -> Section:
    """The section on the result of `rlox_opt.sampling.processes.serial`."""
    rows = [
        (
            title,
            units.seconds(found[side]["train_s"]),
            units.seconds(found[side]["cpu_s"]),
            ", ".join(f"{on} {units.seconds(s)}" for on, s in found[side]["waits"].items()),
        )
        for title, side in (("in its processes", "processes"), ("in one", "serial"))
    ]
    columns = (
        "The same training",
        "From its first phase to its last",
        "CPU of all threads",
        "Waits",
    )
    more = "" if found["cpu"] is None else f", for {units.factor(found['cpu'])} the CPU"
    text = [
        f"In its processes training is {units.factor(found['faster'])} as fast as in one{more}. "
        "What is taken more is what they cost: messages, copies, and work that each does again."
    ]
    return Section("serial", "What the processes cost", text, [Table(columns, rows)])


def worth(found: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """The parts that are worth something: what, and how many times as fast the whole would be with
    the part twice as fast, and without it."""
    if found is None or alone(found):
        return []
    return [
        (gain["what"], units.factor(gain["twice"]), _without(gain))
        for gain in found.get("gains", ())
        if gain["gone"] >= _WORTH
    ]


def _without(gain: Mapping[str, Any]) -> str:
    return "all of it" if gain["gone"] >= MOST_TIMES else units.factor(gain["gone"])


def _states(found: Mapping[str, Any]) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (
            _named(row),
            [_wait(wait) for wait in row["waits"][:_WAITS] if wait["share"] >= _LITTLE] or "nobody",
            _spread(row),
            units.percent(row["waiting"]),
            units.percent(row["kept"]),
            units.percent(row["idle"]),
        )
        for row in found["kinds"]
    ]
    columns = ("Component", "Waits for", "Busy", "Waiting", "Kept off the CPU", "Idle")
    text = [
        "Each thread's time, equal ones folded into one: the mean, and the least and the most busy "
        "where they differ. Kept off the CPU is ready to run, while others had the cores.",
        *found["notes"],
    ]
    return Section("waiting", "Busy, waiting, idle", text, [Table(columns, rows, left=2)])


def _named(row: Mapping[str, Any]) -> str:
    return str(row["kind"]) if row["threads"] == 1 else f"{row['kind']} ({row['threads']})"


def _wait(wait: Mapping[str, Any]) -> str:
    what = wait["what"] if wait["what"].startswith(wait["on"]) else f"{wait['on']} {wait['what']}"
    return f"{wait['whom']}: {what} {units.percent(wait['share'])}"


def _spread(row: Mapping[str, Any]) -> str:
    low, high = row["spread"]
    told = units.percent(row["busy"])
    return told if high - low < _LITTLE else f"{told} ({units.interval((low, high))})"


def _gains(found: Mapping[str, Any]) -> Section:
    rows = [
        (
            gain["what"],
            gain["kind"],
            units.seconds(gain["seconds"]),
            units.percent(gain["on_path"]),
            units.factor(gain["twice"]),
            _without(gain),
            units.factor(gain["evened"]),
        )
        for gain in found["gains"]
        if max(gain["gone"], gain["evened"] or 0.0) >= _WORTH
    ]
    took = found["replayed"]
    text = [
        "How many times as fast the whole would be: the recorded program run again on paper, with "
        "one part faster. A part that others do not wait for is worth nothing, however long it is.",
        f"As it was, the replay takes {units.seconds(took['replayed_s'])} for what took "
        f"{units.seconds(took['recorded_s'])}.",
    ]
    if not rows:
        return Section("gains", "What would make it faster", [*text, "No part alone would."])
    columns = (
        *("Part", "What it is", "Work", "Of the critical path"),
        *("Twice as fast", "Without it", "As fast as its equals"),
    )
    table = Table(columns, rows[:MOST], left=2)
    return Section("gains", "What would make it faster", text, [table])


def _path(found: Mapping[str, Any]) -> Section:
    rows = [
        (what, units.percent(share))
        for what, share in list(found["critical_path"].items())[:MOST]
        if share >= _LITTLE
    ]
    text = ["From the end of the run back: what each thread did that somebody waited for."]
    table = Table(("On the critical path", "Share"), rows)
    return Section("critical-path", "Critical path", text, [table])
