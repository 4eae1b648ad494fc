"""The page of two profiles compared, in a real browser, from a file, with the network off."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hostile_html import harm

from rlox_opt.history.compared import Compared, Run
from rlox_opt.history.store import Profile
from rlox_opt.views import compared_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def run(step: int, learn: int) -> Run:
    whole = step + learn
    shares = {"rust": step / whole, "python": learn / whole}
    functions = {"rust:step": step / whole, "python:learn": learn / whole}
    folded = f"env_step;step {step}\ngradient_update;learn {learn}\n"
    return Run(Profile(1000, shares, shares, functions, folded), whole * 1e-6)


def written(folder: Path) -> Path:
    found = Compared(
        tuple(run(20, 80 + i) for i in range(3)),
        tuple(run(40, 80 + i) for i in range(3)),
        ("main (1a2b3c4d5e)", "HEAD (5e4d3c2b1a) +r4"),
        rounds=True,
        steps=True,
        band=0.02,
    )
    path = folder / "diff.html"
    path.write_text(compared_page.page(found), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=[1280, 380])
def page(
    request: pytest.FixtureRequest, browser: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Page"]:
    """The page in a window so wide, opened once for all that look at it."""
    path = written(tmp_path_factory.mktemp("compared"))
    context = browser.new_context(offline=True, viewport={"width": request.param, "height": 800})
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []


def test_what_grew_is_red_and_as_wide_as_the_mean_of_both_sides(page: "Page") -> None:
    boxes = {
        label: page.locator("#flame div", has_text=label).first.bounding_box()
        for label in ("env_step", "gradient_update")
    }
    step, update = boxes["env_step"], boxes["gradient_update"]
    assert step is not None
    assert update is not None
    assert step["width"] / update["width"] == pytest.approx(30 / 81, rel=0.05)
    assert "worse" in str(
        page.locator("#flame div", has_text="env_step").first.get_attribute("style")
    )


def test_it_fits_its_window_and_every_part_can_be_reached(page: "Page") -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for target in page.eval_on_selector_all("nav a", "links => links.map(a => a.hash)"):
        assert page.locator(target).count() == 1


def test_what_somebody_put_into_it_neither_runs_nor_loads(
    browser: "Browser", tmp_path: Path
) -> None:
    assert harm(browser, written(tmp_path)) == []
