"""`rlox-opt peers primitives`, what a run comes to: its table, standing, page and pictures."""

import math
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.history import standing
from rlox_opt.race.primitives import results
from rlox_opt.race.primitives.cases import Case
from rlox_opt.views import html, markdown
from rlox_opt.views import primitives as report


def reading(number: int, ours: float, theirs: float) -> dict[str, Any]:
    return {
        "restart": number,
        "case": "gae/n=8",
        "times": {"rlox": {"s": ours}, "numpy": {"s": theirs}},
        "ratios": {"rlox": {"numpy": math.log(ours / theirs)}},
        "left_out": {},
    }


def verdict_of(*pairs: tuple[float, float]) -> dict[str, Any]:
    readings = [reading(number, *pair) for number, pair in enumerate(pairs)]
    case = Case("gae", {"n": 8})
    _, theirs = results.rows_of(case, readings, ["rlox", "numpy"], ["rlox"])
    found: dict[str, Any] = theirs["against"]["rlox"]
    return found


def test_a_verdict_needs_an_interval_on_one_side_of_one() -> None:
    assert verdict_of((1.0, 2.0), (1.1, 2.0), *[(0.9, 2.0)] * 3)["verdict"] == "ahead"
    assert verdict_of((2.0, 1.0), (2.2, 1.0), *[(1.9, 1.0)] * 3)["verdict"] == "behind"
    near = verdict_of((1.0, 1.1), (1.1, 1.0), (1.0, 1.0), (1.2, 1.1), (1.1, 1.2))
    assert near["verdict"] == "not told apart"


@pytest.mark.parametrize("restarts", range(1, 5))
def test_a_verdict_needs_five_restarts(restarts: int) -> None:
    assert verdict_of(*[(1.0, 9.0)] * restarts)["verdict"] == "undecided"


def test_a_ratio_is_the_geometric_mean_of_its_restarts() -> None:
    found = verdict_of((1.0, 2.0), (1.0, 4.0), (1.0, 8.0))
    assert found["ratio"] == pytest.approx(0.25)
    # ln 2 to both sides is one standard deviation; Student's t of two degrees of freedom is 4.303.
    assert found["ci95"] == pytest.approx([0.25 / 2**2.4841, 0.25 * 2**2.4841], rel=1e-3)


def made_up_record() -> dict[str, Any]:
    """Two cases; in one the fastest other is ahead of us."""
    engines = [{"name": name, "what": f"<{name}>", "version": ""} for name in ("rlox", "numpy")]
    cases = []
    for n, ours, theirs in ((128, 1e-6, 5e-5), (32_768, 9e-5, 5e-5)):
        case = Case("gae", {"n": n})
        readings = [
            {**reading(number, ours * (1 + 0.01 * number), theirs), "case": case.key}
            for number in range(5)
        ]
        rows = results.rows_of(case, readings, ["rlox", "numpy"], ["rlox"])
        cases.append(
            {
                "key": case.key,
                "family": "gae",
                "size": dict(case.size),
                "title": case.title,
                "rows": rows,
            }
        )
    return {
        "threads": 1,
        "ours": ["rlox"],
        "engines": engines,
        "families": [{"name": "gae", "what": "GAE", "pictures": [{"axis": "n", "label": "steps"}]}],
        "cases": cases,
        "left_out": {"envpool": {"does not install: no wheel": []}},
        "date": "2026-01-01T00:00:00Z",
        "commit": "0" * 40,
        "dirty": False,
        "machine": {"cpu": "one", "cores": 2},
        "build": {"profile": "release", "features": ["opt-p1"]},
    }


def test_rows_that_are_lost_are_shown_as_plainly_as_the_others() -> None:
    found = made_up_record()
    assert standing.standing(found, "rlox") == {"ahead": 1, "behind": 1}
    for text in (markdown.text(report.document(found)), html.page(report.document(found))):
        assert "ahead" in text
        assert "1.84× (" in text
        assert "0.0204× (" in text, "how far ahead is seen, however far it is"
        assert ") behind" in text
        assert "does not install: no wheel" in text
    assert "&lt;numpy&gt;" in html.page(report.document(found))
    assert "<numpy>" not in html.page(report.document(found))


def test_the_page_shows_pictures_and_asks_nothing_of_anyone(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "primitives.html"
    path.write_text(html.page(report.document(made_up_record())), encoding="utf-8")
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda r: said.append(r.url) if r.url != path.as_uri() else None)
    page.goto(path.as_uri())
    assert page.locator("svg.scaling polyline").count() == 2
    names = page.locator("svg.scaling text[font-weight]").all_text_contents()
    assert "rlox" in names
    assert page.locator("#summary tbody tr").count() == 2
    assert said == []
    context.close()


def test_a_picture_may_be_of_cases_that_share_a_word() -> None:
    family = {
        "name": "push",
        "pictures": [{"axis": "obs_dim", "label": "numbers", "where": {"steps": "apart"}}],
    }
    cases = [
        {
            "family": "push",
            "size": {"obs_dim": n, "steps": steps},
            "rows": [{"engine": "rlox", "s": n * 1e-9}],
        }
        for n in (4, 64)
        for steps in ("joined", "apart")
    ]
    (drawn,) = report._pictures({"cases": cases, "ours": ["rlox"]}, family)
    assert "push, steps apart" in drawn
