"""`rlox-opt peers growth`: sizes over four decades, knees and memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import projects
import pytest
from rlox_opt.cli import main as cli
from rlox_opt.project.project import Project
from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.growth import sizes_of, with_knees

# What a large array takes, also where glibc has no `mallinfo2`.
WEIGHS = """
import ctypes, serve

def grown():
    before = serve._allocated()
    kept = bytearray(3_000_000)
    return serve._allocated() - before

class Old:
    mallinfo = ctypes.CDLL(None).mallinfo

new = grown()
ctypes.CDLL = lambda name: Old()
assert new >= 3_000_000
assert abs(grown() - new) < 100_000
"""


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


def test_memory_is_measured_with_an_older_glibc() -> None:
    subprocess.run(
        [sys.executable, "-c", WEIGHS, "arm", "", "1"],
        cwd=cases.folder(projects.HERE),
        check=True,
        timeout=60,
    )


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
