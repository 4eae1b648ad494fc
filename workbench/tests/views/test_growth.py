"""`rlox-opt peers growth`: sizes over four decades, knees, memory, and pictures of them."""

import math
from typing import Any
from xml.etree import ElementTree

import pytest

from rlox_opt.views import growth as report
from rlox_opt.views import html, markdown
from rlox_opt.views.scaling_picture import Line, Mark, picture

SVG = "{http://www.w3.org/2000/svg}"


def curve(engine: str, seconds: list[float], knees: list[dict[str, Any]]) -> dict[str, Any]:
    n = len(seconds)
    return {
        "family": "gae",
        "engine": engine,
        "axis": "n",
        "sizes": [10**i for i in range(1, n + 1)],
        "s": seconds,
        "ci95": [None] * n,
        "share": [1.0] * n,
        "held": [160.0] * n,
        "peak": [320.0] * n,
        "faults": [0.0] * n,
        "knees": knees,
    }


def test_page_and_markdown_show_knees_and_memory() -> None:
    knee = {"at": 1000.0, "before": 0.1, "after": 0.9, "why": "work outweighs the <call>"}
    found = {
        "threads": 2,
        "ours": ["rlox"],
        "engines": [],
        "families": [{"name": "gae", "what": "GAE", "pictures": []}],
        "caches": {"L1d": 49152},
        "curves": [
            curve("rlox", [5e-7, 5e-7, 1e-6, 9e-6], [knee]),
            curve("numpy", [1e-5, 1e-4, 1e-3, 1e-2], []),
        ],
        "left_out": {},
        "date": "2026-01-01T00:00:00Z",
        "commit": "0" * 40,
        "dirty": False,
        "machine": {"cpu": "one", "cores": 2},
        "build": {"profile": "release", "features": []},
    }
    for text in (markdown.text(report.document(found)), html.page(report.document(found))):
        assert "0.10 → 0.90" in text
        assert "160 B" in text
        assert "320 B" in text
        assert "50.0 ns" in text
        assert "48 KiB" in text
    assert "<call>" not in html.page(report.document(found))


def test_a_picture_has_a_line_an_engine_and_a_mark_a_knee() -> None:
    points = [(10.0, 1e-6), (100.0, 1e-5), (1000.0, 2e-4)]
    lines = [Line("rlox", points, True), Line("numpy", [(x, 3 * y) for x, y in points], False)]
    svg = ElementTree.fromstring(picture("GAE", "steps", lines, [Mark(100.0, "outgrows L1d")]))
    drawn = svg.findall(f"{SVG}polyline")
    assert [line.get("class") for line in drawn] == ["ours", None]
    assert len([line for line in svg.findall(f"{SVG}line") if line.get("class") == "mark"]) == 1
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for line in drawn:
        places = [tuple(map(float, at.split(","))) for at in line.attrib["points"].split()]
        assert places == sorted(places)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
        assert places[0][1] > places[-1][1], "more time is higher"
    # Both axes are logarithmic: a decade is as long everywhere.
    (x0, y0), (x1, y1), (x2, y2) = [
        tuple(map(float, at.split(","))) for at in drawn[0].attrib["points"].split()
    ]
    assert x1 - x0 == pytest.approx(x2 - x1, rel=0.01)
    assert (y1 - y2) / (y0 - y1) == pytest.approx(math.log10(20), rel=0.02)
