"""The site in a real browser, opened from files with the network off."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from accessible import complaints

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOKED_AT = (
    "index.html", "tutorial.html", "guides/pull-requests.html", "reference/verbs/diff.html",
    "reference/settings.html", "reference/python/buffers.html",
)  # fmt: skip
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Opened:
    """Loads pages of the site into one tab, since opening another takes longer than loading, as
    somebody finds them who comes for the first time. What the browser complains of or asks the
    network for is in `said`."""

    def __init__(self, browser: "Browser", site: Path) -> None:
        self.site = site
        self.said: list[str] = []
        self.tab = browser.new_context(offline=True).new_page()
        self.tab.on("console", self._hear)
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", self._see)

    def __call__(self, path: str, viewport: Any = WIDE, color_scheme: Any = "light") -> "Page":
        self.tab.mouse.move(0, 0)
        if self.tab.url != "about:blank":
            self.tab.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.tab.goto("about:blank")  # no page is there that could follow the change
        self.tab.set_viewport_size(viewport)
        self.tab.emulate_media(color_scheme=color_scheme)
        self.tab.goto((self.site / path).as_uri())
        return self.tab

    def _hear(self, message: Any) -> None:
        if message.type in ("warning", "error"):
            self.said.append(message.text)

    def _see(self, request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "data:", "about:")):
            self.said.append(request.url)


@pytest.fixture(scope="module")
def opened(browser: "Browser", site: Path) -> Opened:
    return Opened(browser, site)


@pytest.fixture
def open_(opened: Opened) -> Iterator[Opened]:
    """Opens pages, of which nothing may have been said at the end."""
    opened.said.clear()
    yield opened
    opened.tab.evaluate("0")  # what was said until now is heard
    assert opened.said == []


@pytest.mark.parametrize("path", LOOKED_AT)
def test_axe_finds_nothing_to_complain_of(open_: Opened, path: str) -> None:
    page = open_(path)
    page.add_style_tag(content="* { transition: none !important; }")  # no colour is half-way
    assert complaints(page) == []


def test_a_page_is_dark_where_the_reader_wants_it_dark(open_: Opened) -> None:
    def background(scheme: Any) -> str:
        page = open_("index.html", color_scheme=scheme)
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light, dark = (
        [int(part) for part in background(of).split("(")[1].rstrip(")").split(",")[:3]]
        for of in ("light", "dark")
    )
    assert min(light) > 200
    assert max(dark) < 60


@pytest.mark.parametrize("path", LOOKED_AT)
def test_on_a_phone_no_page_scrolls_sideways(open_: Opened, path: str) -> None:
    page = open_(path, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(
    ("asked", "leads_to"),
    [
        ("lint-suite", "reference/verbs/lint-suite.html"),
        ("thresholds", "reference/settings.html"),
        ("compute_gae", "reference/python/advantages.html"),
    ],
)
def test_the_search_finds_a_verb_a_setting_and_a_function(
    open_: Opened, asked: str, leads_to: str
) -> None:
    page = open_("index.html")
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type(asked)
    found = page.get_by_role("option")
    found.first.wait_for()
    link = page.locator(f'[role="option"][href*="{leads_to}"]').first
    link.click()
    page.wait_for_url(f"**/{leads_to}*")
    assert asked in page.locator("main").inner_text()
