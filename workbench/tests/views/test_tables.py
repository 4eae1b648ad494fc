"""The sections, and their Markdown: every table there, every figure with its unit."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.views import markdown, units
from rlox_opt.views.tables import disagreements, missing, notices, sections


def test_markdown_has_every_section_and_a_table_in_each(report: dict[str, Any]) -> None:
    report = report | {"tools": report["tools"] | {"scalene": SCALENE}}
    text = markdown.render(report)
    parts = text.split("\n## ")[1:]
    assert [part.splitlines()[0] for part in parts] == [
        "End to end",
        "Layers",
        "Bottlenecks",
        "Planned optimisations",
        "Phases",
        "Component latencies",
        "Boundary crossings",
        "Hot lines and operators",
        "Tools",
    ]
    for part in parts:
        assert "| ---" in part, part


SCALENE = {
    "slowdown": 1.2,
    "samples": 700,
    "errors": 0,
    "layers": [],
    "lines": [{"file": "toy/learner/ppo.py", "line": 7, "source": "a | b", "share": 0.5}],
}


def test_markdown_tables_have_as_many_cells_in_every_row(report: dict[str, Any]) -> None:
    text = markdown.render(report | {"tools": {"scalene": SCALENE}})
    lines = text.replace("\\|", "").splitlines()
    for above, line in pairwise(lines):
        if above.startswith("|") and line.startswith("|"):
            assert above.count("|") == line.count("|"), line


def test_a_tool_has_its_window_with_the_reason_and_the_widest_interval(
    report: dict[str, Any],
) -> None:
    window = {"seconds": 20, "why": "±0.7 points for any shares", "half_width": 0.0042}
    text = markdown.render(report | {"tools": {"perf": report["tools"]["perf"] | window}})
    assert "| 20.0 s: ±0.7 points for any shares | ±0.42 points |" in text


def test_markdown_takes_the_runs_text_literally() -> None:
    text = markdown.render({"algo": "ppo", "env_id": "x", "incomplete": ["a|b <i>*c*</i> `d` e_f"]})
    assert r"a\|b \<i\>\*c\*\</i\> \`d\` e_f" in text


def test_a_layer_of_which_nothing_was_seen_has_no_row(report: dict[str, Any]) -> None:
    never = {"name": "gil", "seconds": 0.0, "share": 0.0, "ci95": [0.0, 0.0]}
    assert "GIL" in markdown.render(
        report | {"layers": [*report["layers"], never | {"share": 0.01}]}
    )
    assert "GIL" not in markdown.render(report | {"layers": [*report["layers"], never]})


def test_a_sound_run_has_no_notice(report: dict[str, Any]) -> None:
    whole = report | {"tools": {k: v for k, v in report["tools"].items() if k != "scalene"}}
    assert notices(whole) == []
    assert missing(report) == ["scalene gave nothing: scalene is not installed."]
    assert notices(whole | {"warnings": ["The machine was busy."]}) == [
        ("Read with care", ["The machine was busy."])
    ]


def test_every_section_of_an_empty_report_says_why_it_is_empty() -> None:
    for section in sections({"algo": "ppo"}):
        assert section.text, section.id
        assert all(table.rows for table in section.tables), section.id


def test_tools_that_differ_by_more_than_chance_are_said_to() -> None:
    def view(share: float) -> dict[str, Any]:
        return {"layers": [{"name": "rust", "share": share, "ci95": [share - 0.01, share + 0.01]}]}

    def told(share: float) -> str:
        tools = {"perf": view(0.10), "py-spy": view(share)}
        (sentence,) = disagreements({"layer_source": "perf", "tools": tools})
        return sentence

    assert told(0.2) == (
        "perf and py-spy differ most about Rust: 10.0 % against 20.0 %, "
        "10.0 points, more than sampling explains."
    )
    assert told(0.11).endswith("1.0 points, within their intervals.")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (1.4794, "1.48 s"), (0.0123, "12.3 ms"), (48.4e-6, "48.4 µs"), (0.9999, "1.00 s"),
     (94.42, "94.4 s"), (0.5e-6, "0.50 µs"), (1234.0, "1,234 s"), (None, "–")],
)  # fmt: skip
def test_seconds_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    assert units.seconds(value) == text


@given(st.floats(1e-6, 1e4))
def test_seconds_read_back_to_within_a_per_cent(value: float) -> None:
    number, unit = units.seconds(value).split(" ")
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
    assert float(number.replace(",", "")) * scale == pytest.approx(value, rel=0.006)


def test_small_shares_and_ratios_close_to_one_keep_their_digits() -> None:
    assert units.percent(0.664) == "66.4 %"
    assert units.percent(0.00412) == "0.41 %"
    assert units.interval([0.651, 0.677]) == "65.1–67.7 %"
    assert units.factor(1.0172) == "1.017×"
    assert units.factors([1.098, 1.102]) == "1.098–1.102×"
    assert units.factors([1.3, 1.34]) == "1.30–1.34×"
    assert units.size(29_696) == "29.7 kB"
    assert units.size(56e6) == "56.0 MB"


def test_ratios_keep_the_digits_that_their_interval_bears() -> None:
    assert units.estimate(5.31, [5.12, 5.58]) == "5.31× (5.1–5.6)"
    assert units.estimate(5.31, [5.29, 5.33]) == "5.31× (5.29–5.33)"
    assert units.estimate(1.003, [0.998, 1.008]) == "1.003× (0.998–1.008)"
    assert units.estimate(1234.5, [1100.0, 1400.0]) == "1,234× (1,100–1,400)"
    assert units.estimate(2.0, [2.0, 2.0]) == "2.00× (2.00–2.00)"
    assert units.estimate(0.00679, [0.0053, 0.0087]) == "0.0068× (0.005–0.009)"
    assert units.band([4.5, 6.7]) == "4.5–6.7×"
    assert units.band([1, 1.08]) == "1.00–1.08×"
