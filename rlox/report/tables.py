"""What the report says, in order, as sections of sentences and tables.

Markdown and the page are two renderings of these sections; neither adds a figure of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from rlox.report import units
from rlox.report.titles import TOOLS_VIEW, layer_title

Report = Mapping[str, Any]
Cell = str | list[str]


@dataclass(frozen=True)
class Table:
    """Rows of text under `columns`; the first `left` columns are words, the others figures."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    caption: str = ""
    left: int = 1


@dataclass(frozen=True)
class Section:
    """One part of the report. `id` names it in links; without tables, `text` says why."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def heading(report: Report) -> str:
    """ "PPO on CartPole-v1"."""
    return f"{str(report.get('algo', '?')).upper()} on {report.get('env_id', '?')}"


def warnings(report: Report) -> list[str]:
    """What is missing from this report, in sentences; empty when all of it is there."""
    found = list(report.get("incomplete") or [])
    tools = report.get("tools") or {}
    found += [
        f"{name} gave nothing: {tool['reason']}"
        for name, tool in tools.items()
        if tool.get("reason")
    ]
    if not report.get("phases"):
        found.append("The plain run did not finish: there are no speeds and no phases.")
    if not report.get("layers"):
        found.append("No layers: no tool took samples, so nothing below is ranked by layer.")
    return found


def sections(report: Report) -> list[Section]:
    """All sections, as a reader asks: how fast, where, what to do about it, how do you know."""
    return [
        _end_to_end(report),
        _layers(report),
        _bottlenecks(report),
        _cards(report),
        _phases(report),
        _micro(report),
        _crossings(report),
        _tools(report),
    ]


def facts(report: Report) -> list[tuple[str, str]]:
    """The run's circumstances: (what, value), those that are known."""
    machine, versions = report.get("machine") or {}, report.get("versions") or {}
    commit = str(report.get("commit") or "unknown")[:12]
    features = ", ".join(report.get("features") or []) or "none (all baselines)"
    settings = {k: report[k] for k in ("n_envs", "seed") if k in report}
    settings |= report.get("settings") or {}
    cpu = [machine.get("cpu"), machine.get("cores") and f"{machine['cores']} cores"]
    system = [machine.get("os"), machine.get("memory_gib") and f"{machine['memory_gib']} GiB"]
    found = [
        ("Date", str(report.get("date", "")).replace("T", " ")),
        ("Commit", commit + (" with uncommitted changes" if report.get("dirty") else "")),
        ("Optimisations", features),
        ("Machine", ", ".join(str(x) for x in cpu if x)),
        ("System", ", ".join(str(x) for x in system if x)),
        ("Versions", ", ".join(f"{k} {v}" for k, v in versions.items() if v)),
        ("Run", ", ".join(f"{k}={v}" for k, v in settings.items())),
    ]
    return [(what, value) for what, value in found if value]


def _end_to_end(report: Report) -> Section:
    rows = [
        ("Timesteps", units.count(report.get("total_timesteps"))),
        ("Wall time", units.seconds(report.get("wall_s"))),
        ("Start-up", units.seconds(report.get("init_s"))),
        ("Training", units.seconds(report.get("train_s"))),
        ("Environment steps per second", units.count(report.get("sps") and round(report["sps"]))),
        ("Mean return, last episodes", units.count(report.get("mean_return"))),
    ]
    text = ["From the plain run, with no tool attached."]
    return Section("end-to-end", "End to end", text, [Table(("Figure", "Value"), rows)])


def _layers(report: Report) -> Section:
    layers = report.get("layers") or []
    if not layers:
        return Section("layers", "Layers", ["No tool took samples, so there is no ranking."])
    source = report.get("layer_source")
    ranked = Table(
        ("Layer", "Time", "Share", "95 % interval"),
        [
            (
                layer_title(layer["name"]),
                units.seconds(layer["seconds"]),
                units.percent(layer["share"]),
                units.interval(layer.get("ci95")),
            )
            for layer in sorted(layers, key=lambda layer: -layer["share"])
        ],
    )
    text = [
        "The training thread's wall time by who spends it"
        + (f", from {source}'s samples" if source else "")
        + " within phases timed by the program's own clock. Shares sum to 1."
    ]
    views = _views(report)
    if len(views) < 2:
        return Section("layers", "Layers", text, [ranked])
    names = [layer["name"] for layer in sorted(layers, key=lambda layer: -layer["share"])]
    names += sorted({name for view in views.values() for name in view} - set(names))
    side = Table(
        ("Layer", *views),
        [
            (
                layer_title(name),
                *(
                    units.percent(view[name]["share"]) if name in view else units.MISSING
                    for view in views.values()
                ),
            )
            for name in names
        ],
        caption="Side by side",
    )
    return Section("layers", "Layers", text + disagreements(report), [ranked, side])


def _views(report: Report) -> dict[str, dict[str, Any]]:
    """Each tool's layers by name, tools that saw none left out."""
    return {
        name: {layer["name"]: layer for layer in tool["layers"]}
        for name, tool in (report.get("tools") or {}).items()
        if tool.get("layers")
    }


def disagreements(report: Report) -> list[str]:
    """For each pair of tools, a sentence on the layer they differ most about."""
    found = []
    for (one, a), (other, b) in combinations(_views(report).items(), 2):
        if not (both := a.keys() & b.keys()):
            continue
        name = max(sorted(both), key=lambda name: abs(a[name]["share"] - b[name]["share"]))
        gap = abs(a[name]["share"] - b[name]["share"]) * 100
        found.append(
            f"{one} and {other} differ most about {layer_title(name)}: "
            f"{units.percent(a[name]['share'])} against {units.percent(b[name]['share'])}, "
            f"{gap:.1f} points{_beyond_chance(a[name].get('ci95'), b[name].get('ci95'))}."
        )
    return found


def _beyond_chance(a: Sequence[float] | None, b: Sequence[float] | None) -> str:
    if not a or not b:
        return ""
    apart = a[0] > b[1] or b[0] > a[1]
    return ", more than sampling explains" if apart else ", within their intervals"


def _bottlenecks(report: Report) -> Section:
    found = report.get("bottlenecks") or []
    if not found:
        return Section("bottlenecks", "Bottlenecks", ["Without samples no hot spot can be ranked."])
    rows = [
        (
            str(spot["rank"]),
            spot["what"],
            layer_title(spot["layer"]),
            [_card(card) for card in spot["optimizations"]] or "none planned",
            units.percent(spot["share"]),
            units.interval(spot.get("ci95")),
        )
        for spot in found
    ]
    columns = (
        "#",
        "Where",
        "Layer",
        "Planned, and the most each could gain",
        "Share",
        "95 % interval",
    )
    text = [
        "Hot spots by share of training time. A planned optimisation stands beside each spot it "
        "touches, with the speed-up of training if all the samples it could remove were gone "
        "(Amdahl's bound, 95 % interval): what it may reach at most, not what it will."
    ]
    return Section("bottlenecks", "Bottlenecks", text, [Table(columns, rows, left=4)])


def _card(card: Mapping[str, Any]) -> str:
    within = f" ({units.factors(card['bound_ci95'])})" if card.get("bound_ci95") else ""
    return f"{card['id']} ≤ {units.factor(card['bound'])}{within}"


def _cards(report: Report) -> Section:
    cards = report.get("cards") or []
    if not cards:
        return Section("optimisations", "Planned optimisations", ["No cards were found."])
    rows = [
        (
            card["id"],
            card["title"],
            card["status"],
            card["reason"] or "",
            units.percent(card["share"]),
            units.factor(card["bound"]),
            units.factors(card["bound_ci95"]),
        )
        for card in cards
    ]
    columns = (
        "Card",
        "What",
        "Status",
        "Not bounded because",
        "Could remove",
        "Bound",
        "95 % interval",
    )
    text = ["Every card of the plan, against this run."]
    return Section("optimisations", "Planned optimisations", text, [Table(columns, rows, left=4)])


def _phases(report: Report) -> Section:
    phases = report.get("phases") or []
    if not phases:
        return Section("phases", "Phases", ["The plain run did not finish, so no phase was timed."])
    rows = [
        (
            "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}" * phase["name"].count("/")
            + phase["name"].rsplit("/", 1)[-1],
            units.seconds(phase["seconds"]),
            units.percent(phase["share"]),
            units.count(phase["calls"]),
            units.seconds(phase["seconds"] / phase["calls"] if phase["calls"] else None),
        )
        for phase in phases
    ]
    columns = ("Phase", "Time", "Share of training", "Calls", "Per call")
    text = ["Timed in the plain run; an outer phase includes its inner ones."]
    tracked = sum(phase["seconds"] for phase in phases if "/" not in phase["name"])
    if train := report.get("train_s"):
        text.append(f"{units.percent(1 - tracked / train)} of training lies outside all phases.")
    return Section("phases", "Phases", text, [Table(columns, rows)])


def _micro(report: Report) -> Section:
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
        "Each timed alone, warm, apart from training: inside training the same call costs more."
    ]
    return Section("latencies", title, text, tables)


def _crossings(report: Report) -> Section:
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


def _tools(report: Report) -> Section:
    tools = report.get("tools") or {}
    if not tools:
        return Section("tools", "Tools", ["No tool ran."])
    rows = []
    for name, tool in tools.items():
        said = " ".join(str(tool[key]) for key in ("reason", "remedy") if tool.get(key))
        errors = tool.get("errors")
        if isinstance(errors, list):
            said, errors = " ".join([said, *map(str, errors)]).strip(), len(errors)
        rows.append(
            (
                name,
                said or TOOLS_VIEW.get(name, ""),
                units.factor(tool.get("slowdown")),
                units.count(tool.get("samples")),
                units.count(errors),
            )
        )
    columns = ("Tool", "What it sees, or why it is missing", "Slowdown", "Samples", "Errors")
    text = [
        "Each tool watched a run of its own. Slowdown is against the plain run; no figure of a "
        "slowed run is shown as a speed."
    ]
    return Section("tools", "Tools", text, [Table(columns, rows, left=2)])
