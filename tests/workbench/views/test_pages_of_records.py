"""The page of a race runs its own script and nothing else: of the newest record of each kind."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from command_line import rlox_opt
from hostile_html import harm
from projects import HERE
from rlox_opt.views import growth, html, primitives, race
from rlox_opt.views.model import Document

from peers import backends_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPORTS: dict[str, Callable[[Any], Document]] = {
    "ppo": race.document, "growth": growth.document, "primitives": primitives.document,
    "backends": backends_page.document,
}  # fmt: skip

WIDTHS = """[...document.querySelectorAll(".scroll")].map(
  (of) => [of.textContent.trim().slice(0, 60), of.scrollWidth, of.clientWidth])"""


class Seen(NamedTuple):
    """What is found of a page in a window of 1100: what it said, its frames of a flamegraph, its
    tables' names and widths, inner and outer."""

    said: list[str]
    frames: int
    widths: list[tuple[str, int, int]]


@pytest.fixture(scope="module", params=REPORTS)
def text(request: pytest.FixtureRequest) -> str:
    """A page of the kind asked for."""
    newest = max((HERE.peers / "record").glob(f"*/*_{request.param}.json"))
    return html.page(REPORTS[request.param](json.loads(newest.read_text())))


@pytest.fixture
def written(text: str, tmp_path: Path) -> Path:
    """A file with it."""
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def seen(browser: "Browser", text: str, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """It is opened once for all that look at it."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(text, encoding="utf-8")
    said: list[str] = []
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    found = Seen(said, page.locator("#flame div").count(), page.evaluate(WIDTHS))
    page.close()
    return found


def test_a_page_needs_nothing_that_its_policy_forbids(seen: Seen, text: str) -> None:
    assert (seen.frames > 3) == ('id="flame"' in text)
    assert seen.said == []


def test_what_somebody_put_into_a_page_neither_runs_nor_loads(
    browser: "Browser", written: Path
) -> None:
    assert harm(browser, written) == []


def test_no_table_is_cut_in_a_window_of_1100(seen: Seen) -> None:
    assert seen.widths
    assert [name for name, inner, outer in seen.widths if inner > outer] == []


def test_no_table_of_the_history_is_cut_on_a_screen_of_1280(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is as wide as the page; on a phone its rows stand as lists."""
    made = importlib.import_module("rlox_opt.views.site.publish")
    for pages in ("_commits", "_diffs"):  # a page for each commit, which is not looked at
        monkeypatch.setattr(made, pages, lambda *_: None)
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
