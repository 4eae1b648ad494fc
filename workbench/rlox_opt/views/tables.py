"""The contents of the report, in order, as sections of sentences and tables.

Markdown and the page are two renderings of these sections; neither adds a figure of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.views import details, units
from rlox_opt.views.model import Report, Section, Table
from rlox_opt.views.titles import layer_title

_SEEN = 0.0005  # of the whole: less would be shown as 0.0 %


def heading(report: Report) -> str:
    """ "PPO on CartPole-v1"."""
    return f"{str(report.get('algo', '?')).upper()} on {report.get('env_id', '?')}"


def notices(report: Report) -> list[tuple[str, list[str]]]:
    """What a reader must know first: titles with their sentences; empty for a sound report."""
    found = [
        ("This report is incomplete", missing(report)),
        ("Read with care", list(report.get("warnings") or [])),
    ]
    return [(title, sentences) for title, sentences in found if sentences]


def missing(report: Report) -> list[str]:
    """What is missing in this report, in sentences; empty if nothing is."""
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
    """All sections in the order of a reader's questions: how fast, where, what to do, how
    certain."""
    profiler = (report.get("tools") or {}).get("torch.profiler") or {}
    return [
        _end_to_end(report),
        _layers(report),
        _bottlenecks(report),
        _cards(report),
        _phases(report),
        details.latencies(report),
        details.crossings(report),
        details.hot_code(report),
        *details.on_device(profiler.get("device")),
        details.tools(report),
    ]


def facts(report: Report) -> list[tuple[str, str]]:
    """The known circumstances of the run: (what, value)."""
    machine, versions = report.get("machine") or {}, report.get("versions") or {}
    features = ""
    if report.get("features", []) is not None:  # None for a program that did not load our extension
        features = ", ".join(report.get("features") or []) or "none (all baselines)"
    settings = {k: report[k] for k in ("n_envs", "seed") if k in report}
    settings |= report.get("settings") or {}
    cpu = [machine.get("cpu"), machine.get("cores") and f"{machine['cores']} cores"]
    system = [machine.get("os"), machine.get("memory_gib") and f"{machine['memory_gib']} GiB"]
    found = [
        ("Date", str(report.get("date_utc") or report.get("date") or "").replace("T", " ")),
        ("Commit", _commit(report)),
        ("Optimisations", features),
        ("Machine", ", ".join(str(x) for x in cpu if x)),
        ("System", ", ".join(str(x) for x in system if x)),
        ("Versions", ", ".join(f"{k} {v}" for k, v in versions.items() if v)),
        ("Run", ", ".join(f"{k}={v}" for k, v in settings.items())),
    ]
    return [(what, value) for what, value in found if value]


def origin(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where and when a record of peers was made, as in `facts`."""
    machine = record["machine"]
    return [
        ("Date", record["date"]),
        ("Commit", _commit(record)),
        ("Machine", f"{machine['cpu']}, {machine['cores']} cores"),
    ]


def built(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the build of such a record was made, as far as the package says it."""
    build = record["build"]
    said = build.get("profile"), *build.get("features", ()), build.get("instructions")
    return [("Build", ", ".join(filter(None, said)))] if any(said) else []


def _commit(record: Mapping[str, Any]) -> str:
    shown = str(record.get("commit") or "unknown")[:12]
    return shown + (" with uncommitted changes" if record.get("dirty") else "")


def _end_to_end(report: Report) -> Section:
    more = report.get("end_to_end") or {}
    mean, random = report.get("mean_return"), report.get("random_return")
    figures = [
        ("Timesteps", units.count(more.get("steps", report.get("total_timesteps")))),
        ("Wall time: setting up and training", units.seconds(report.get("wall_s"))),
        ("Imports, before", units.seconds(more.get("import_s"))),
        ("Setting up", units.seconds(report.get("init_s"))),
        ("Training", units.seconds(report.get("train_s"))),
        ("Environment steps per second", _rounded(report.get("sps"))),
        ("The same after warm-up", _rounded(more.get("steady_sps"))),
        ("CPU used by the training thread", units.percent(more.get("cpu_share"))),
        ("Gradient steps", units.count(more.get("updates"))),
        ("Episodes", units.count(more.get("episodes"))),
        ("Mean return, last episodes", units.MISSING if mean is None else f"{mean:,.1f}"),
        ("Mean return of a random policy", units.MISSING if random is None else f"{random:,.1f}"),
    ]
    asked = {"Timesteps", "Training", "Environment steps per second"}  # shown even when unknown
    rows = [row for row in figures if row[1] != units.MISSING or row[0] in asked]
    text = ["From the plain run, with no tool attached."]
    return Section("end-to-end", "End to end", text, [Table(("Figure", "Value"), rows)])


def _rounded(value: float | None) -> str:
    return units.count(None if value is None else round(value))


def ranked_layers(report: Report) -> list[Mapping[str, Any]]:
    """The layers with most time first, without those with hardly any."""
    seen = [layer for layer in report.get("layers") or () if layer["share"] >= _SEEN]
    return sorted(seen, key=lambda layer: -layer["share"])


def _layers(report: Report) -> Section:
    layers = report.get("layers") or []
    if not layers:
        return Section("layers", "Layers", ["No tool took samples, so there is no ranking."])
    source = report.get("layer_source")
    found = ranked_layers(report)
    ranked = Table(
        ("Layer", "Time", "Share", "95 % interval"),
        [
            (
                layer_title(layer["name"]),
                units.seconds(layer["seconds"]),
                units.percent(layer["share"]),
                units.interval(layer.get("ci95")),
            )
            for layer in found
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
    names = [layer["name"] for layer in found]
    others = {name for view in views.values() for name, of in view.items() if of["share"] >= _SEEN}
    names += sorted(others - set(names))
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
    """Each tool's layers by name, without tools that have none."""
    return {
        name: {layer["name"]: layer for layer in tool["layers"]}
        for name, tool in (report.get("tools") or {}).items()
        if tool.get("layers")
    }


def disagreements(report: Report) -> list[str]:
    """For each tool other than the ranking's, a sentence on the layer with the largest
    difference."""
    views = _views(report)
    source = report.get("layer_source")
    if source not in views:
        return []
    found, a = [], views[source]
    for other, b in views.items():
        if other == source or not (both := a.keys() & b.keys()):
            continue
        name = max(sorted(both), key=lambda name: abs(a[name]["share"] - b[name]["share"]))
        gap = abs(a[name]["share"] - b[name]["share"]) * 100
        found.append(
            f"{source} and {other} differ most about {layer_title(name)}: "
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
            [*map(_card, spot["optimizations"]), *settled(spot)] or "no card touches it",
            units.percent(spot["share"]),
            units.interval(spot.get("ci95")),
        )
        for spot in found
    ]
    columns = (
        "#",
        "Where",
        "Layer",
        "Optimisations, and the most each could gain",
        "Share",
        "95 % interval",
    )
    text = [
        "Hot spots by share of training time. A planned optimisation stands beside each spot it "
        "touches, with the speed-up of training if all the samples it could remove were gone "
        "(Amdahl's bound, 95 % interval): what it may reach at most, not what it will. Those that "
        "are on already, and those that were found not to help, are named without one."
    ]
    return Section("bottlenecks", "Bottlenecks", text, [Table(columns, rows, left=4)])


def settled(spot: Mapping[str, Any]) -> list[str]:
    """Of a bottleneck's cards, those that this run had, and those that were found not to help.
    Reports of earlier versions name neither."""
    kinds = {"on": "on already", "rejected": "found not to help"}
    return [f"{what}: {', '.join(spot[kind])}" for kind, what in kinds.items() if spot.get(kind)]


def _card(card: Mapping[str, Any]) -> str:
    within = f" ({units.factors(card['bound_ci95'])})" if card.get("bound_ci95") else ""
    return f"{card['id']} ≤ {units.factor(card['bound'])}{within}"


def _cards(report: Report) -> Section:
    cards = report.get("cards") or []
    if not cards:
        return Section("optimisations", "Planned optimisations", ["No cards were found."])
    bounded = Table(
        ("Card", "What", "Status", "Could remove", "Bound", "95 % interval"),
        [
            (
                card["id"],
                card["title"],
                card["status"],
                units.percent(card["share"]),
                units.factor(card["bound"]),
                units.factors(card["bound_ci95"]),
            )
            for card in sorted(cards, key=lambda card: -(card["bound"] or 0))
            if card["bound"] is not None
        ],
        left=3,
    )
    others = Table(
        ("Card", "What", "Status", "Not on this run's path"),
        [
            (card["id"], card["title"], card["status"], card["reason"])
            for card in cards
            if card["bound"] is None
        ],
        left=4,
    )
    text = [
        "Every card against this run: the share of training it could remove at most, "
        "and the speed-up if it did."
    ]
    tables = [table for table in (bounded, others) if table.rows]
    return Section("optimisations", "Planned optimisations", text, tables)


def _phases(report: Report) -> Section:
    phases = report.get("phases") or []
    if not phases:
        return Section("phases", "Phases", ["The plain run did not finish, so no phase was timed."])
    text = ["Timed in the plain run; an outer phase includes its inner ones."]
    if train := report.get("train_s"):
        tracked = sum(phase["seconds"] for phase in phases if "/" not in phase["name"])
        text.append(f"{units.percent(max(0.0, 1 - tracked / train))} lies outside all phases.")
    if cost := report.get("timing_overhead"):
        text.append(
            f"The clock itself cost {units.percent(cost['share'])} of training: {cost['spans']:,} "
            f"blocks of {units.seconds(cost['ns_per_span'] / 1e9)}."
        )
    tables = [_phase_table(phases, report.get("train_s"), "")]
    for thread, tree in (report.get("threads") or {}).items():
        tables.append(_phase_table(tree, report.get("train_s"), f"Thread {thread}"))
    return Section("phases", "Phases", text, tables)


def _phase_table(phases: Sequence[Mapping[str, Any]], train: float | None, caption: str) -> Table:
    rows = [
        (
            "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}" * phase["name"].count("/")
            + phase["name"].rsplit("/", 1)[-1],
            units.seconds(phase["seconds"]),
            units.percent(phase["seconds"] / train if train else None),
            units.count(phase["calls"]),
            units.seconds(phase["seconds"] / phase["calls"] if phase["calls"] else None),
        )
        for phase in phases
    ]
    return Table(("Phase", "Time", "Share of training", "Calls", "Per call"), rows, caption)
