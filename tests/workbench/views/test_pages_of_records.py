"""The page of a race runs its own script and nothing else: of the newest record of each kind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
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
