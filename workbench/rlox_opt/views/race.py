"""Peers side by side as a page and as Markdown: a table, a picture, and who was left out and
why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.views import units
from rlox_opt.views.model import Document, Section, Table
from rlox_opt.views.race_picture import picture, task, trainers
from rlox_opt.views.tables import built, origin


def heading(found: Mapping[str, Any]) -> str:
    """ "PPO on CartPole-v1, side by side"."""
    return f"{task(found)}, side by side"


def summary(found: Mapping[str, Any]) -> Table:
    """Speeds, compile times, times to the return and returns, with their intervals."""
    job, first = found["job"], found["held_to"]
    of_limit = _of_limit(found)
    columns = (
        "peer",
        "steps/s",
        f"× {first}",
        *((f"× {job['limit']}",) if of_limit else ()),
        "compiling",
        f"to {job['reach']:g}",
        f"× {first}",
        "final return",
        "runs",
    )
    rows = [
        (
            row["peer"],
            units.count(round(row["sps"])),
            _ratio(row["sps_ratio"]),
            *((_ratio(row["limit_ratio"]),) if of_limit else ()),
            units.seconds(row["compile_s"]) if row["compile_s"] else units.MISSING,
            _reached(row),
            _ratio(row["reach_ratio"]),
            _return(row["final_return"]),
            str(row["runs"]),
        )
        for row in found["table"]
    ]
    return Table(columns, rows)


def explained(found: Mapping[str, Any]) -> str:
    """How to read the table, in a few sentences."""
    job, first = found["job"], found["held_to"]
    others = f"{first} or {job['limit']}" if _of_limit(found) else first
    return (
        f"{job['total_timesteps']:,} steps, {job['threads']} thread(s) of torch or XLA; medians. "
        "Steps per second are those of the whole training, without making environments and "
        f"without compiling. To {job['reach']:g}: seconds until the mean return of "
        f"{found['window']} episodes is that high, compiling counted, of the runs that got there. "
        f"×: how many times as fast or as soon as {others} in the same round, geometric mean with "
        "its 95 % interval by Student's t over rounds. Final return: mean of a run's last "
        f"{found['window']} episodes, mean over runs with its 95 % interval."
    )


def document(found: Mapping[str, Any]) -> Document:
    """The whole report."""
    text, drawn = [explained(found)], [picture(found, in_page=True)]
    who = Table(("Peer", "What runs"), _who(found), left=2)
    sections = [
        Section("standings", "Standings", text, [summary(found)], pictures=drawn),
        Section("peers", "Peers", [], [who]),
    ]
    left_out = [f"{name} {why}" for name, why in found["left_out"].items()]
    fastest = max(trainers(found) or found["table"], key=lambda row: row["sps"])
    figures = [
        ("steps per second", units.count(round(fastest["sps"]))),
        ("the fastest", fastest["peer"]),
    ]
    return Document(
        "Race of libraries",
        heading(found),
        figures,
        [("Left out", left_out)],
        sections,
        _facts(found),
    )


def _who(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (row["peer"], f"{row['what']} ({row['version']})" if row["version"] else row["what"])
        for row in found["table"]
    ]


def _of_limit(found: Mapping[str, Any]) -> bool:
    """Whether the peers are compared with one that does not train, too."""
    return any(row.get("limit_ratio") for row in found["table"])


def _facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    settings = ", ".join(f"{name}={value}" for name, value in found["job"].items())
    return [*origin(found), *built(found), ("Task", settings)]


def _ratio(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return units.MISSING
    to_itself = found["ratio"] == 1 and found["ci95"] == [1, 1]
    return "1×" if to_itself else units.estimate(found["ratio"], found["ci95"])


def _reached(row: Mapping[str, Any]) -> str:
    if row["reach_s"] is None:
        return "never"
    missed = "" if row["reached"] == row["runs"] else f" ({row['reached']} of {row['runs']})"
    return units.seconds(row["reach_s"]) + missed


def _return(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return units.MISSING
    mean, ends = found["mean"], found["ci95"]
    digits = ",.0f" if abs(mean) >= 100 else ",.1f"
    return f"{mean:{digits}}" + (f" ({ends[0]:{digits}} to {ends[1]:{digits}})" if ends else "")
