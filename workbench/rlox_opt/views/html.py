"""The page: one file that needs no network, no server and no other file.

Everything but the flamegraph is plain HTML, so that the page can be read without JavaScript. All
text from the run is escaped. A content security policy forbids all requests, and all scripts and
style sheets other than the page's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from rlox_opt.project.layers import everywhere
from rlox_opt.sampling.flamegraph import self_seconds, tree
from rlox_opt.sampling.samples import Samples
from rlox_opt.views import pages, tables, units
from rlox_opt.views.axes import Axis, round_step
from rlox_opt.views.model import Document, Report, Section
from rlox_opt.views.titles import TITLES, layer_title

_TICKS = 6  # of the layers' axis, beside its end
_PERCENT = -2  # the power of ten of the smallest step between two ticks


def render(report: Report, samples: Mapping[str, Samples]) -> str:
    """The whole page."""
    flamegraph = _flamegraph(report, samples)
    end_to_end, *others = tables.sections(report)
    layers, *after = (_drawn(section, report) for section in others)
    return page(
        Document(
            "Training profile",
            tables.heading(report),
            _headline(report),
            tables.notices(report),
            # The flamegraph stands after the layers, where the reader asks what a layer contains.
            [layers, flamegraph, *after, end_to_end],
            tables.facts(report),
            flame_script() if flamegraph.chart else "",
        )
    )


def page(of: Document) -> str:
    """One file that needs no other file and no network."""
    return pages.render("report/page.html", **vars(of), layers=everywhere().layers) + "\n"


def style_sheet() -> str:
    """The styles of all pages, with a colour for each layer."""
    return pages.render("report/page.css", layers=everywhere().layers)


def flame_script() -> Markup:
    """The script that draws `flamegraph.html`."""
    path = files("rlox_opt.views.site").joinpath("static").joinpath("flamegraph.js")
    return Markup(path.read_text(encoding="utf-8"))


def _headline(report: Report) -> list[tuple[str, str]]:
    layers = tables.ranked_layers(report)
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


def _drawn(section: Section, report: Report) -> Section:
    """The section with a picture in place of its first table, if there is one."""
    draw = {"layers": _layers, "phases": _phases}.get(section.id)
    if draw is None or not section.tables:
        return section
    return replace(section, chart=draw(report), tables=section.tables[1:])


def _layers(report: Report) -> Markup:
    layers = tables.ranked_layers(report)
    most = max(max(layer["share"], *(layer.get("ci95") or [0])) for layer in layers)
    step = round_step(0, most, _TICKS, _PERCENT)
    ticks = [step * number for number in range(max(1, math.ceil(most / step - 1e-9)) + 1)]
    x = Axis(0, ticks[-1], 0, 100, linear=True, digits=3)
    return pages.render("report/layers.html", layers=layers, ticks=ticks, x=x)


def _phases(report: Report) -> Markup:
    inner: dict[str, list[Mapping[str, Any]]] = {}
    for phase in report["phases"]:
        inner.setdefault(phase["name"].rpartition("/")[0], []).append(phase)
    return pages.render("report/phases.html", inner=inner)


def _flamegraph(report: Report, samples: Mapping[str, Samples]) -> Section:
    """The stacks of each tool that has any."""
    clock = self_seconds(report)
    trees = {name: tree(found, clock) for name, found in samples.items()}
    explained = (
        "Phases first, then the stack of calls within each; widths are seconds of the plain run."
    )
    return flamegraph(trees, samples, report.get("layer_source"), explained)


def flamegraph(
    trees: Mapping[str, Any], samples: Mapping[str, Samples], chosen: str | None, explained: str
) -> Section:
    """The trees of samples of each tool that has any; `chosen` is the one that is shown first."""
    trees = {name: found for name, found in trees.items() if found["nodes"]}
    if not trees:
        none = "No tool took samples, so there are no stacks to draw."
        return Section("flamegraph", "Flamegraph", [none])
    present = {layer for found in trees.values() for layer in found["layers"]}
    chart = pages.render(
        "flamegraph.html",
        label="Flamegraph",
        explained=f"{explained} Colours are layers. Click or press Enter to zoom, Escape to go "
        "back, arrows to walk, / to search.",
        options=[(name, f"{name}, {len(samples[name].samples):,} samples") for name in trees],
        chosen=chosen,
        legend=[(layer, title) for layer, title in TITLES.items() if layer in present],
        titles=TITLES,
        tools=trees,
    )
    return Section("flamegraph", "Flamegraph", chart=chart)
