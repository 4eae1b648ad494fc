"""The report of a program and all its processes, as a page and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.sampling.flamegraph import tree
from rlox_opt.sampling.samples import OUTSIDE, Samples
from rlox_opt.views import details, html, pages, tables, units, waiting
from rlox_opt.views.component_tree import tree_lines
from rlox_opt.views.markdown import table_lines
from rlox_opt.views.model import Cell, Document, Report, Section, Table
from rlox_opt.views.titles import layer_title

UNSAMPLED = "not sampled"
_MOST_SPREADS = 12
_WHOLE = 0.95  # of a row: a layer with more stands alone; one with less than 0.05 is not named
_LONGEST = 100  # characters of a heading: two lines of the page


def sections(report: Report) -> list[Section]:
    """All sections but the trees, which are text: what is slow, who waits, layers, code,
    processes."""
    found = report.get("waiting")
    waits = waiting.sections(found) if found else []
    if serial := report.get("serial"):
        waits.append(waiting.cost(serial))
    if own := report.get("own_timing"):
        waits.append(own_timing(own))
    waits += details.on_device(report.get("device"))
    several = [_components(report)] if len(report["processes"]) > 1 else []
    return [_ranking(report), *_own_code(report), *waits, _layers(report), *several,
            _processes(report)]  # fmt: skip


def heading(report: Report) -> str:
    """The program's command without folders; of a long one as many words as fit."""
    words = [word.rsplit("/", 1)[-1] for word in report["command"]]
    words = words[1:] if words and words[0].startswith("python") else words
    text = " ".join(" ".join(words).split())
    if len(text) <= _LONGEST:
        return text
    return (text[: _LONGEST - 1].rpartition(" ")[0] or text[: _LONGEST - 2]) + " …"


def notices(report: Report) -> list[tuple[str, list[str]]]:
    """What a reader must know first."""
    found = [
        ("This report is incomplete", list(report["incomplete"])),
        ("Read with care", list(report["warnings"])),
    ]
    return [(title, sentences) for title, sentences in found if sentences]


def render_html(report: Report, stacks: Samples) -> str:
    """The page: one file that needs no other."""
    trees = "\n\n".join("\n".join(lines) for c in report["components"] if (lines := tree_lines(c)))
    chart = pages.render("report/trees.html", trees=trees) if trees else None
    phases = [Section("trees", "Phases by component", chart=chart)] if trees else []
    flame = html.flamegraph(
        {stacks.tool: tree(stacks, {}, "all threads")},
        {stacks.tool: stacks},
        stacks.tool,
        "Each thread with its phases first, then the stack of calls; widths are seconds in which "
        "anything was done.",
    )
    ranking, *others = sections(report)
    return html.page(
        Document(
            "Profile of a program",
            heading(report),
            figures(report),
            notices(report),
            [ranking, *phases, *others[:1], flame, *others[1:]],
            tables.facts(report),
            html.flame_script() if flame.chart else "",
        )
    )


def render_markdown(report: Report) -> str:
    """The same as Markdown, for a terminal or a pull request."""
    lines = [f"# {heading(report)}: profile of a program", ""]
    for title, sentences in notices(report):
        lines += [f"> **{title}.**", *(f"> - {text}" for text in sentences), ""]
    lines += [f"- **{what}**: {value}" for what, value in (*figures(report), *tables.facts(report))]
    for component in report["components"]:
        if tree := tree_lines(component):
            lines += ["", "```text", *tree, "```"]
    for section in sections(report):
        lines += ["", f"## {section.title}", "", *section.text, ""]
        for table in section.tables:
            lines += table_lines(table)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _own_code(report: Report) -> list[Section]:
    """The program's own functions and lines with most time; no section without any."""
    if not report["lines"]:
        return []
    functions: list[tuple[Cell, ...]] = [
        (row["name"], row["place"], _made_of(row), units.seconds(row["seconds"]),
         units.percent(row["share"]))
        for row in report["functions"]
    ]  # fmt: skip
    lines: list[tuple[Cell, ...]] = [
        (f"{row['place']}:{row['line']}", row["text"], _made_of(row),
         units.seconds(row["seconds"]), units.percent(row["share"]))
        for row in report["lines"]
    ]  # fmt: skip
    text = [
        "Python of the program's own, each with what it calls of libraries, and without what it "
        "calls of its own."
    ]
    text += [told for told in (lines_told_by(report), worth_a_span(report)) if told]
    columns = ("Spent in", "Time", "Share")
    return [
        Section(
            "own-code",
            "The program's own functions and lines",
            text,
            [
                Table(("Function", "File", *columns), functions, "Functions", left=3),
                Table(("Line", "Source", *columns), lines, "Lines", left=3),
            ],
        )
    ]


def _made_of(row: Mapping[str, Any]) -> str:
    """The layers of a row, "NumPy 80 %, Python 20 %", without small ones."""
    return ", ".join(
        layer_title(layer) + (f" {units.whole_percent(share)}" if share < _WHOLE else "")
        for layer, share in row["layers"]
        if share >= 1 - _WHOLE
    )


def lines_told_by(report: Report) -> str:
    """How exact line numbers are; "" if they are exact."""
    if report["sampler"] != "perf":
        return ""
    return (
        "perf does not see them: Python that runs for less than 5 ms between two calls counts for "
        "the line of one of them, and a loop without calls for its first line. With --sampler "
        "py-spy each line is as it was."
    )


def worth_a_span(report: Report) -> str:
    """The lines into which a program without phases divides; "" if it names phases."""
    if phased(report) or not report["parts"]:
        return ""
    lines = (f"{row['place']}:{row['line']} ({units.percent(row['share'])})"
             for row in report["parts"])  # fmt: skip
    return (
        "The program says no phases. A block of its own (`with span(…)`, or `@span`, of "
        "`rlox.timing` in the library rlox-rl) would tell most around each of these lines: "
        f"{', '.join(lines)}."
    )


def figures(report: Report) -> list[tuple[str, str]]:
    """The page's headline."""
    clocks = report["trace"]["clocks"]
    error = max((clock["error_us"] for clock in clocks), default=0.0)
    return [
        ("Wall time", units.seconds(report["wall_s"])),
        ("Start-up, in no share", units.seconds(report["startup_s"] or None)),
        ("Processes", units.count(len(report["processes"]))),
        ("Sampled by", report["sampler"] or "nothing"),
        ("Clocks aligned to", "one clock" if not error else f"± {error:.0f} µs"),
    ]


def _ranking(report: Report) -> Section:
    title = "Where time goes, all processes together"
    if not report["ranking"]:
        seen = any(thread["samples"] for of in report["processes"] for thread in of["threads"])
        why = "Only start-up and waiting were sampled" if seen else "Nothing was sampled"
        return Section("ranking", title, [f"{why}, so nothing is ranked."])
    phase = ("Phase",) if phased(report) else ()
    rows = [
        (
            f"{row['rank']}.",
            row["component"] + ("" if row["thread"] == "MainThread" else f" [{row['thread']}]"),
            *((row["phase"] or OUTSIDE,) if phase else ()),
            layer_title(row["layer"]),
            units.seconds(row["seconds"]),
            units.percent(row["share"]),
        )
        for row in report["ranking"]
    ]
    columns = ("", "Component", *phase, "Layer", "Time", "Share")
    text = [
        "Seconds of all equal threads, and their share of all time in which anything was done; "
        "processes run side by side, so a large share need not be what the whole waits for."
    ]
    return Section("ranking", title, text, [Table(columns, rows, left=len(columns) - 2)])


def phased(report: Report) -> bool:
    """Whether the program names any phases; without them, "outside all phases" says nothing."""
    return any(row["phase"] for row in report["ranking"])


def _layers(report: Report) -> Section:
    rows = [
        (_layer(layer["name"]), units.seconds(layer["seconds"]), units.percent(layer["share"]))
        for layer in report["layers"]
    ]
    text = ["Of all threads together; idle time is nobody's share."]
    return Section("layers", "Layers", text, [Table(("Layer", "Time", "Share"), rows)])


def _components(report: Report) -> Section:
    """Equal workers side by side, and where they differ most."""
    rows = []
    for component in report["components"]:
        for thread in component["threads"]:
            for phase in thread["phases"]:
                apart = phase["high"] - phase["low"]
                if thread["count"] > 1 and apart > 0:
                    rows.append((apart, component["title"], phase))
    rows.sort(key=lambda row: -row[0])
    if not rows:
        return Section("spread", "Equal workers", ["No two processes do the same."])
    table = Table(
        ("Component", "Phase", "Mean", "Lowest", "Highest", "Highest in"),
        [
            (
                title,
                phase["name"],
                *(units.seconds(phase[figure]) for figure in ("seconds", "low", "high")),
                phase["high_in"],
            )
            for _, title, phase in rows[:_MOST_SPREADS]
        ],
        left=2,
    )
    return Section("spread", "Equal workers, where they differ most", [], [table])


def _processes(report: Report) -> Section:
    rows = []
    for process in report["processes"]:
        for thread in process["threads"]:
            top = ", ".join(
                f"{_layer(layer['name'])} {units.percent(layer['share'])}"
                for layer in thread["layers"][:3]
            )
            how = "" if process["how"] else ", killed"
            lived = units.seconds(process["end_s"] - process["begin_s"])
            rows.append(
                (
                    f"{process['title']} ({process['pid']}{how})",
                    thread["name"],
                    top,
                    lived,
                    units.seconds(thread["seconds"]),
                    units.count(thread["samples"]),
                )
            )
    columns = ("Process", "Thread", "Layers", "Lived", "Time", "Samples")
    return Section("processes", "Processes and threads", [], [Table(columns, rows, left=3)])


def own_timing(found: Sequence[Mapping[str, Any]]) -> Section:
    """The program's own Timing report beside ours."""
    rows = [
        (
            row["component"],
            row["ours"] or units.MISSING,
            row["block"] + (", mean per call" if row["per_call"] else ""),
            units.seconds(row["own_s"]),
            units.seconds(row["our_s"]),
        )
        for row in found
    ]
    columns = ("Component", "Here", "Block", "It says", "Recorded")
    text = [
        "The program times its own blocks; the same blocks, as they were recorded here. "
        "Seconds are sums, or where it tells the mean per call, that on both sides."
    ]
    return Section("own-timing", "Its own report, and ours", text, [Table(columns, rows, left=3)])


def _layer(name: str) -> str:
    return UNSAMPLED if name == "unsampled" else layer_title(name)


def summary(report: Mapping[str, Any]) -> str:
    """ "python train.py: 4 processes, 61.2 s"."""
    number = len(report["processes"])
    told = f"{heading(report)}: {number} process{'' if number == 1 else 'es'}, "
    told += units.seconds(report["wall_s"])
    if report["startup_s"]:
        told += f", of which {units.seconds(report['startup_s'])} start-up, which is in no share"
    return told
