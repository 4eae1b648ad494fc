"""The summary says what the report holds, also when little of it is there."""

import io
from pathlib import Path
from typing import Any

import pytest
import toy_projects
from rich.console import Console

from rlox_opt.sampling import results
from rlox_opt.sampling.spec import Spec
from rlox_opt.views import terminal


@pytest.fixture
def report() -> dict[str, Any]:
    spec = Spec(
        "child_of.py", "plain", "sac", "Pendulum-v1", 1, 0, "cpu", 1, 0, 0.0, "", {"n_envs": 1}
    )
    return results.skeleton(toy_projects.PROJECT, spec, ["perf"])


def shown(report: dict[str, Any]) -> str:
    text = io.StringIO()
    console = Console(file=text, width=100, highlight=False)
    console.print(terminal.summary(report, Path("profiles/x")))
    return text.getvalue()


def test_a_report_without_anything_says_so(report: dict[str, Any]) -> None:
    report["incomplete"] = ["It was interrupted during: plain run."]
    text = shown(report)
    assert "the plain run did not finish" in text
    assert "interrupted during" in text
    assert "Layers" not in text
    assert "profiles/x/report.html" in text


def test_layers_are_ranked_with_their_interval(report: dict[str, Any]) -> None:
    report["layers"] = [
        {"name": "rust", "seconds": 0.2, "share": 0.2, "ci95": [0.19, 0.21]},
        {"name": "numpy", "seconds": 0.8, "share": 0.8, "ci95": [0.79, 0.81]},
    ]
    report["layer_source"] = "perf"
    text = shown(report)
    assert text.index("NumPy") < text.index("Rust")
    assert "79.0–81.0 %" in text


def test_a_missing_tool_is_shown_with_its_remedy(report: dict[str, Any]) -> None:
    report["tools"]["perf"] |= {"status": "unavailable", "reason": "no [perf]", "remedy": "get it"}
    assert "no [perf] get it" in shown(report)


def test_a_tool_is_shown_with_its_window_and_why_it_ended(report: dict[str, Any]) -> None:
    report["tools"]["perf"] |= {
        "status": "ok", "samples": 19_940, "seconds": 20, "why": "±0.7 points for any shares",
    }  # fmt: skip
    assert "20.0 s: ±0.7 points for any shares" in shown(report)


def test_a_bottleneck_tells_what_is_on_already_and_what_was_found_not_to_help(
    report: dict[str, Any],
) -> None:
    report["layers"] = [{"name": "rust", "seconds": 1.0, "share": 1.0, "ci95": [1.0, 1.0]}]
    bottleneck = {
        "rank": 1, "what": "update", "layer": "rust", "share": 0.8, "ci95": [0.7, 0.9],
        "optimizations": [], "on": ["R9"], "rejected": ["R6", "R11"],
    }  # fmt: skip
    report["bottlenecks"] = [bottleneck]
    assert "on already: R9; found not to help: R6, R11" in shown(report)
    report["bottlenecks"] = [bottleneck | {"on": [], "rejected": []}]
    assert "no card touches it" in shown(report)


@pytest.mark.parametrize(
    ("share", "bar"),
    [(0.0, "    "), (1.0, "████"), (0.5, "██  "), (0.28125, "█▏  "), (2.0, "████")],
)
def test_bars_are_as_long_as_the_share(share: float, bar: str) -> None:
    assert terminal.bar(share, width=4) == bar
