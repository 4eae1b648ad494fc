"""`rlox-opt peers growth`: sizes over four decades, knees, memory, and pictures of them."""

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rlox_opt.cli import main as cli
from rlox_opt.project.project import Project
from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.growth import sizes_of, with_knees
from rlox_opt.views import growth as report
from rlox_opt.views.scaling_picture import Line, Mark, picture

SVG = "{http://www.w3.org/2000/svg}"


def test_every_operation_is_followed_over_four_decades() -> None:
    grown = [family for family in cases.load(Project.here())[0] if family.growth]
    assert len(grown) >= 10
    for family in grown:
        assert family.growth is not None
        sizes = sizes_of(family.growth)
        assert sizes == sorted(set(sizes))
        assert sizes[-1] / sizes[0] >= 10_000 / 1.01
        assert len(sizes) >= 16


def test_growth_is_measured_with_its_memory(
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["peers", "growth", "--runs", "1", "--json", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [curve["engine"] for curve in found["curves"]] == ["rlox", "slow"]
    ours, slow = found["curves"]
    assert ours["sizes"][0] == 1
    assert ours["sizes"][-1] == 100
    assert slow["s"][0] > 0.002
    assert all(share is not None and share < 1.5 for share in ours["share"])
    # Two arrays of float64, and what malloc adds to them.
    assert 1600 <= ours["held"][-1] < 5000
    assert 1600 <= ours["peak"][-1] < 5000
    assert {path.suffix for path in made_up.glob("record/*/*_growth.*")} == {
        ".json",
        ".md",
        ".html",
    }


def test_an_engine_that_failed_in_a_restart_has_a_curve_of_the_others() -> None:
    families = {family.name: family for family in cases.load(Project.here())[0]}
    weights = {"s": 1e-6, "share": 1.0, "held": 160, "peak": 320, "faults": 0.0}
    row = {"engine": "numpy", "s": 1e-6, "ci95": None}
    found = {
        "families": [{"name": "gae"}],
        "engines": [{"name": "numpy"}],
        "cases": [{"key": "gae/n=10", "family": "gae", "size": {"n": 10}, "rows": [row]}],
        "readings": [
            {"case": "gae/n=10", "times": {"numpy": weights}},
            {"case": "gae/n=10", "times": {}},
        ],
    }
    (curve,) = with_knees(found, families)["curves"]
    assert curve["held"] == [160]


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
    for text in (report.markdown(found), report.page(found)):
        assert "0.10 → 0.90" in text
        assert "160 B" in text
        assert "320 B" in text
        assert "50.0 ns" in text
        assert "48 KiB" in text
    assert "<call>" not in report.page(found)


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
