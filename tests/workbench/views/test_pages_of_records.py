"""The page of a race runs its own script and nothing else: of the newest record of each kind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import rlox_opt
from hostile_html import harm
from projects import HERE
from rlox_opt.views import growth, primitives, race

from peers import backends_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES: dict[str, Callable[[Any], str]] = {
    "ppo": race.page, "growth": growth.page, "primitives": primitives.page,
    "backends": backends_page.page,
}  # fmt: skip

WIDTHS = """[...document.querySelectorAll(".scroll")].map(
  (of) => [of.textContent.trim().slice(0, 60), of.scrollWidth, of.clientWidth])"""


@pytest.fixture(params=PAGES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A page of the kind asked for."""
    newest = max((HERE.peers / "record").glob(f"*/*_{request.param}.json"))
    path = tmp_path / "page.html"
    path.write_text(PAGES[request.param](json.loads(newest.read_text())), encoding="utf-8")
    return path


def test_a_page_needs_nothing_that_its_policy_forbids(browser: "Browser", written: Path) -> None:
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(written.as_uri())
    assert (page.locator("#flame div").count() > 3) == ('id="flame"' in written.read_text())
    page.close()
    assert said == []


def test_what_somebody_put_into_a_page_neither_runs_nor_loads(
    browser: "Browser", written: Path
) -> None:
    assert harm(browser, written) == []


def test_no_table_is_cut_in_a_window_of_1100(browser: "Browser", written: Path) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(written.as_uri())
    widths = page.evaluate(WIDTHS)
    page.close()
    assert widths
    assert [name for name, inner, outer in widths if inner > outer] == []


def test_no_table_of_the_history_is_cut_on_a_screen_of_1280(
    browser: "Browser", tmp_path: Path
) -> None:
    """Each is as wide as the page; on a phone its rows stand as lists."""
    assert rlox_opt("publish", str(tmp_path / "pages")).returncode == 0
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    tables, cut = 0, []
    for path in sorted((tmp_path / "pages").glob("*.html")):
        page.goto(path.as_uri())
        for name, inner, outer in page.evaluate(WIDTHS):
            tables += 1
            if inner > outer:
                cut.append((path.name, name, inner, outer))
    page.close()
    assert tables > 10
    assert cut == []
