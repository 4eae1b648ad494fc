"""The report's reference sections: component latencies, crossings, hot code, the tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlox_opt.sampling.samples import OUTSIDE
from rlox_opt.views import units
from rlox_opt.views.model import Cell, Report, Section, Table
from rlox_opt.views.titles import TOOLS_VIEW

MOST_ROWS = 12  # of the hottest lines and operators; report.json holds more


def latencies(report: Report) -> Section:
    rows = report.get("micro") or []
    title = "Component latencies"
    if not rows:
        return Section("latencies", title, ["Not measured in this run."])
    tables = []
    for group in dict.fromkeys(row["group"] for row in rows):
        within = [row for row in rows if row["group"] == group]
        shares = any(row.get("share") is not None for row in within)
        tables.append(
            Table(
                ("Operation", "Latency", "Share") if shares else ("Operation", "Latency"),
                [
                    (row["name"], units.seconds(row["us"] / 1e6))
                    + ((units.percent(row.get("share")),) if shares else ())
                    for row in within
                ],
                caption=group,
            )
        )
    text = [
        "Each timed apart from training, taking turns with the others; inside training, where the "
        "caches hold other things, the same call may cost more or less."
    ]
    return Section("latencies", title, text, tables)


def crossings(report: Report) -> Section:
    rows = report.get("crossings") or []
    title = "Boundary crossings"
    if not rows:
        return Section("crossings", title, ["Not counted in this run."])
    unit = report.get("crossings_per") or "iteration"
    total = sum(row["per_iteration"] for row in rows if row.get("kind", "rust") == "rust")
    table = Table(
        ("Call", "Into", f"Per {unit}", "Bytes", "Time"),
        [
            (
                row["name"],
                row.get("kind", "rust"),
                units.count(row["per_iteration"]),
                units.size(row["bytes"]) if row["bytes"] else units.MISSING,
                units.seconds(row["us"] / 1e6),
            )
            for row in rows
        ],
        left=2,
    )
    text = [
        f"{units.count(total)} calls from Python into Rust per {unit}, counted; bytes and time are "
        f"per {unit}, and the time is that spent inside the calls."
    ]
    return Section("crossings", title, text, [table])


def hot_code(report: Report) -> Section:
    """The lines in which scalene, and the operators in which torch.profiler, found most time."""
    found = report.get("tools") or {}
    tables = []
    if lines := (found.get("scalene") or {}).get("lines"):
        rows: list[tuple[Cell, ...]] = [
            (f"{line['file']}:{line['line']}", line["source"], units.percent(line["share"]))
            for line in lines[:MOST_ROWS]
        ]
        tables.append(Table(("Line", "Source", "Share"), rows, "Lines, by scalene", left=2))
    if ops := (found.get("torch.profiler") or {}).get("ops"):
        rows = [
            (
                op["name"],
                units.count(op["calls"]),
                units.seconds(op["self_us"] / 1e6),
                units.percent(op["share"]),
            )
            for op in ops[:MOST_ROWS]
        ]
        columns = ("Operator", "Calls", "Own time", "Share of torch's")
        tables.append(Table(columns, rows, "torch's operators, by torch.profiler"))
    text = (
        "Under the tool, so the times are slowed ones; the order is what to read."
        if tables
        else "Neither scalene nor torch.profiler gave any."
    )
    return Section("hot-code", "Hot lines and operators", [text], tables)


def on_device(found: Mapping[str, Any] | None) -> list[Section]:
    """The host's waits and the device's kernels, separately; no section if all is on the CPU."""
    if not found or not found["phases"]:
        return []
    waited = Table(
        ("Waits in", "For kernels launched in", "Kernel", "Time"),
        [
            (
                row["waits"] or OUTSIDE,
                row["launched"] or units.MISSING,
                row["name"],
                units.seconds(row["seconds"]),
            )
            for row in found["waited"][:MOST_ROWS]
        ],
        "What the host waited for",
        left=3,
    )
    phases = Table(
        ("Phase", "Host waits", "Its kernels run"),
        [
            (
                use["phase"] or OUTSIDE,
                units.seconds(use["waits"]),
                units.seconds(use["kernels"]),
            )
            for use in found["phases"][:MOST_ROWS]
        ],
        "Phases, host and device",
    )
    text = (
        "On a device work goes on after the call that asked for it has returned. Kernels count for "
        "the phase that launched them; a wait is told by the kernels that ran meanwhile, so a "
        "phase that only asks for a result is not blamed for computing it."
    )
    return [Section("device", "Host and device", [text], [waited, phases])]


def tools(report: Report) -> Section:
    tools = report.get("tools") or {}
    if not tools:
        return Section("tools", "Tools", ["No tool ran."])
    rows = []
    for name, tool in tools.items():
        said = " ".join(str(tool[key]) for key in ("reason", "remedy") if tool.get(key))
        rows.append(
            (
                name,
                said or TOOLS_VIEW.get(name, ""),
                window(tool),
                units.points(tool.get("half_width")),
                units.factor(tool.get("slowdown")),
                units.count(tool.get("samples") or None),
                units.count(tool.get("errors")),
            )
        )
    columns = (
        *("Tool", "What it sees, or why it is missing", "Window, and why it ended then"),
        *("Widest interval", "Slowdown", "Samples", "Errors"),
    )
    text = [
        "Each tool watched a run of its own. Slowdown is against the plain run; no figure of a "
        "slowed run is shown as a speed. A window is as long as its interval demands, by shares "
        "that are known before it begins; the widest interval is the one that came of it."
    ]
    return Section("tools", "Tools", text, [Table(columns, rows, left=3)])


def window(tool: Report) -> str:
    """How long a tool recorded, and why it ended then; a report of an earlier version tells no
    reason."""
    if tool.get("status", "ok") != "ok" or tool.get("seconds") is None:
        return units.MISSING
    lasted = units.seconds(tool["seconds"])
    return f"{lasted}: {tool['why']}" if tool.get("why") else lasted
