"""The page: one file that needs no network, no server and no other file.

Everything but the flamegraph is plain HTML, so that the page reads without JavaScript. All text
that comes from the run is escaped, and a content security policy forbids any request, and any
script or style sheet but those that the page was written with.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from rlox_opt.project.layers import everywhere
from rlox_opt.sampling.flamegraph import self_seconds, tree
from rlox_opt.sampling.samples import Samples
from rlox_opt.views import tables, units
from rlox_opt.views.model import Cell, Report, Section, Table
from rlox_opt.views.titles import TITLES, layer_title

_AXIS_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_MOST_TICKS = 6


def render(report: Report, samples: Mapping[str, Samples]) -> str:
    """The whole page."""
    heading = tables.heading(report)
    flame = _flame(report, samples)
    parts = tables.sections(report)
    # The picture of the stacks stands where the reader asks what is in a layer.
    places = {section.id: section_of(section, report) for section in parts}
    order = [(section.id, section.title) for section in parts if section.id != "end-to-end"]
    order.insert(1, ("flamegraph", "Flamegraph"))
    places["flamegraph"] = flame[0]
    order.append(("end-to-end", "End to end"))
    return document(
        f"{heading}: rlox training profile",
        "rlox training profile",
        heading,
        _headline(report),
        tables.notices(report),
        [(id_, title, places[id_]) for id_, title in order],
        tables.facts(report),
        flame[1],
    )


def document(
    title: str,
    over: str,
    heading: str,
    figures: Sequence[tuple[str, str]],
    notices: Sequence[tuple[str, Sequence[str]]],
    sections: Sequence[tuple[str, str, str]],
    facts: Sequence[tuple[str, str]],
    script: str = "",
    styles: Sequence[str] = (),
) -> str:
    """A page: `over` stands above its heading, `sections` are (id, title, HTML), `script` is run
    at the end, `styles` are the contents of style elements in sections; all else is text."""
    style = "\n" + style_sheet()
    return Template(asset("page.html")).substitute(
        policy=_policy([script] if script else [], [style, *styles]),
        title=escape(title),
        style=style,
        over=escape(over),
        heading=escape(heading),
        figures=_pairs(figures),
        notices="\n".join(_notice(*notice) for notice in notices),
        nav="\n".join(f'<a href="#{id_}">{escape(named)}</a>' for id_, named, _ in sections),
        sections="\n".join(body for *_, body in sections),
        facts=_pairs(facts, grouped=False),
        script=f"<script>{script}</script>" if script else "",
    )


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """No request, no script and no style sheet but these, and no text that a script would take for
    HTML. Style attributes are allowed: bars have their lengths and colours there."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_digests(scripts)}; require-trusted-types-for 'script'; "
        f"style-src-elem {_digests(styles)}; style-src-attr 'unsafe-inline'"
    )


def _digests(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def style_sheet() -> str:
    """The styles of all pages, with a colour for each layer."""
    colours = " ".join(f"--{layer.name}: {layer.colour};" for layer in everywhere().layers)
    return asset("page.css").replace("/* layers */", colours)


def asset(name: str) -> str:
    """A file that pages are made of."""
    return files("rlox_opt.views").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _headline(report: Report) -> list[tuple[str, str]]:
    layers = sorted(report.get("layers") or [], key=lambda layer: -layer["share"])
    sps, mean = report.get("sps"), report.get("mean_return")
    random = report.get("random_return")
    beside = "" if random is None else f" (random policy {random:,.1f})"
    found = [
        ("steps per second", sps and units.count(round(sps))),
        ("training", report.get("train_s") and units.seconds(report["train_s"])),
        ("timesteps", report.get("total_timesteps") and units.count(report["total_timesteps"])),
        ("mean return" + beside, None if mean is None else f"{mean:,.1f}"),
        (layer_title(layers[0]["name"]), units.percent(layers[0]["share"]))
        if layers
        else ("", None),
    ]
    return [(what, value) for what, value in found if value]


def _pairs(pairs: Sequence[tuple[str, str]], grouped: bool = True) -> str:
    inner = [f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in pairs]
    return "\n".join(f"<div>{pair}</div>" for pair in inner) if grouped else "\n".join(inner)


def _notice(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
    return f'<div class="notice" role="note"><h2>{escape(title)}</h2><ul>{items}</ul></div>'


def section_of(section: Section, report: Report | None = None) -> str:
    """A section: sentences, then tables; with the report of one run, pictures for some of them."""
    drawn = {"layers": _chart, "phases": _phases}.get(section.id) if report else None
    body = "\n".join(f"<p>{escape(text)}</p>" for text in section.text)
    shown = section.tables
    if drawn and shown and report:
        body += drawn(report)
        shown = shown[1:]  # the first table is the picture's own
    many = "grid" if len(shown) > 1 and all(len(t.columns) <= 3 for t in shown) else ""
    body += f'<div class="{many}">' + "\n".join(map(table_of, shown)) + "</div>" if shown else ""
    return f'<section id="{section.id}"><h2>{escape(section.title)}</h2>\n{body}</section>'


def table_of(table: Table) -> str:
    """A table that scrolls by itself, and becomes blocks where it is narrow."""

    def cells(tag: str, row: Sequence[Cell]) -> str:
        # On a phone a wide table's rows become blocks, whose cells bear their column's name.
        return "".join(
            f"<{tag}{' class=word' if index < table.left else ''}"
            + (' scope="col">' if tag == "th" else f' data-label="{escape(table.columns[index])}">')
            + f"{_cell(cell)}</{tag}>"
            for index, cell in enumerate(row)
        )

    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = cells("th", table.columns)
    rows = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in table.rows)
    kind = "narrow" if len(table.columns) <= 3 else "wide"
    label = escape(table.caption or table.columns[0])
    return (
        f'<div class="scroll {kind}" tabindex="0" role="region" aria-label="{label}">'
        f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell).replace("/", "/<wbr>")  # paths of phases may break there
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in cell) + "</ul>"


def _chart(report: Report) -> str:
    """Bars of the layers' shares with whiskers for their intervals, on one axis from 0."""
    layers = sorted(report["layers"], key=lambda layer: -layer["share"])
    most = max(max(layer["share"], *(layer.get("ci95") or [0])) for layer in layers)
    step = next((s for s in _AXIS_STEPS if most / s <= _MOST_TICKS), _AXIS_STEPS[-1])
    ticks = [step * n for n in range(int(most / step - 1e-9) + 2)]
    end = ticks[-1]

    def at(value: float) -> str:
        return f"{100 * value / end:.3f}%"

    grid = "".join(f'<u style="left:{at(tick)}"></u>' for tick in ticks[1:-1])
    rows = []
    for layer in layers:
        ci = layer.get("ci95")
        # A layer that was never seen has an interval of nothing, which is no whisker.
        whisker = (
            f'<b style="left:{at(ci[0])};width:{at(ci[1] - ci[0])}"></b>' if ci and ci[1] else ""
        )
        told = f"95 % interval {units.interval(ci)}" if ci else ""
        rows.append(
            f'<div class="bar" style="--c:var(--{escape(layer["name"])})" title="{told}" '
            f'data-layer="{escape(layer["name"])}" data-share="{layer["share"]:.6f}">'
            f"<span>{escape(layer_title(layer['name']))}</span>"
            f'<span class="track">{grid}<i style="width:{at(layer["share"])}"></i>{whisker}</span>'
            f'<span class="share">{units.percent(layer["share"])}</span>'
            f'<span class="time">{units.seconds(layer["seconds"])}</span></div>'
        )
    labels = "".join(f'<span style="left:{at(tick)}">{tick * 100:.0f} %</span>' for tick in ticks)
    axis = f'<span></span><span class="track">{labels}</span>'
    axis = f'<div class="bar axis" aria-hidden="true">{axis}</div>'
    note = (
        '<p class="note">Share of the training thread\'s wall time, and seconds of the plain run. '
        "Whiskers: 95 % interval of the share, from the number of samples.</p>"
    )
    return f'<div class="chart">{"".join(rows)}{axis}</div>{note}'


def _phases(report: Report) -> str:
    """The phases as nested, collapsible rows."""
    children: dict[str, list[Mapping[str, Any]]] = {}
    for phase in report["phases"]:
        children.setdefault(phase["name"].rpartition("/")[0], []).append(phase)

    def row(phase: Mapping[str, Any]) -> str:
        calls, width = phase["calls"], min(100, 100 * phase["share"])
        each = phase["seconds"] / calls if calls else None
        return (
            f'<span class="name">{escape(phase["name"].rsplit("/", 1)[-1])}</span>'
            f'<span class="track"><i style="width:{width:.2f}%"></i></span>'
            f'<span class="num">{units.percent(phase["share"])}</span>'
            f'<span class="num">{units.seconds(phase["seconds"])}</span>'
            f'<span class="num calls">{units.count(calls)}</span>'
            f'<span class="num per">{units.seconds(each)}</span>'
        )

    def block(phase: Mapping[str, Any]) -> str:
        inner = "".join(map(block, children.get(phase["name"], ())))
        if not inner:
            return f'<div class="leaf">{row(phase)}</div>'
        return f"<details open><summary>{row(phase)}</summary>{inner}</details>"

    head = (
        '<div class="head"><span class="name">Phase</span><span class="track-head"></span>'
        '<span class="num">Share</span><span class="num">Time</span>'
        '<span class="num calls">Calls</span><span class="num per">Per call</span></div>'
    )
    return f'<div class="phases">{head}{"".join(map(block, children.get("", ())))}</div>'


def _flame(report: Report, samples: Mapping[str, Samples]) -> tuple[str, str]:
    """The flamegraph's section with its data, and its script."""
    clock = self_seconds(report)
    trees = {name: tree(found, clock) for name, found in samples.items()}
    trees = {name: found for name, found in trees.items() if found["nodes"]}
    title = '<section id="flamegraph"><h2>Flamegraph</h2>\n'
    if not trees:
        return title + "<p>No tool took samples, so there are no stacks to draw.</p></section>", ""
    source = report.get("layer_source")
    options = "".join(
        f'<option value="{escape(name)}"{" selected" if name == source else ""}>'
        f"{escape(name)}, {len(samples[name].samples):,} samples</option>"
        for name in trees
    )
    present = {layer for found in trees.values() for layer in found["layers"]}
    legend = "".join(
        f'<li><i style="--c:var(--{layer})"></i>{escape(title_)}</li>'
        for layer, title_ in TITLES.items()
        if layer in present
    )
    data = json.dumps({"titles": TITLES, "tools": trees}, separators=(",", ":"))
    body = (
        "<p>Phases first, then the stack of calls within each; widths are seconds of the plain "
        "run, colours are layers. Click or press Enter to zoom, Escape to go back, arrows to "
        "walk, / to search.</p>\n"
        '<div class="tools-bar"><label>Stacks of <select id="flame-tool">'
        f"{options}</select></label>"
        '<input id="flame-search" type="search" placeholder="Search frames" '
        'aria-label="Search frames">'
        '<button id="flame-reset" type="button">Reset</button></div>\n'
        f'<ul class="legend" aria-label="Colours">{legend}</ul>\n'
        '<div id="flame" role="tree" aria-label="Flamegraph"></div>\n'
        '<p id="flame-said" aria-live="polite"></p><div id="tip" role="tooltip" hidden></div>'
        "<noscript><p>The flamegraph needs JavaScript; the folded stacks lie beside this page.</p>"
        "</noscript>"
    )
    escaped = data.replace("<", "\\u003c")
    body += f'\n<script type="application/json" id="flame-data">{escaped}</script></section>'
    return title + body, asset("flamegraph.js")
