"""A page runs its own script and shows its own style, and nothing that somebody put into it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hostile_html import harm
from test_processes import STACKS
from test_processes import report as report_of_processes

from rlox_opt.sampling.samples import Samples
from rlox_opt.views import html, processes

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KINDS = ("training", "no stacks", "processes")


@pytest.fixture(scope="module")
def texts(report: dict[str, Any], samples: dict[str, Samples]) -> dict[str, str]:
    """A page of each kind."""
    made = (
        html.render(report, samples), html.render(report, {}),
        processes.render_html(report_of_processes(), STACKS),
    )  # fmt: skip
    return dict(zip(KINDS, made, strict=True))


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path, texts: dict[str, str]) -> Path:
    """A file with the page of the kind asked for."""
    path = tmp_path / "page.html"
    path.write_text(texts[request.param], encoding="utf-8")
    return path


@pytest.mark.parametrize("written", KINDS, indirect=True)
def test_a_page_needs_nothing_that_its_policy_forbids(browser: "Browser", written: Path) -> None:
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(written.as_uri())
    assert (page.locator("#flame div").count() > 3) == ('id="flame"' in written.read_text())
    page.close()
    assert said == []


@pytest.mark.parametrize("written", KINDS, indirect=True)
def test_what_somebody_put_into_a_page_neither_runs_nor_loads(
    browser: "Browser", written: Path
) -> None:
    assert harm(browser, written) == []


@pytest.mark.parametrize("written", ["training"], indirect=True)
def test_without_the_policy_it_would(browser: "Browser", written: Path) -> None:
    written.write_text(without_policy(written.read_text()))
    harms = (
        "!base", "!from-data", "!iframe", "!image", "!image", "!link", "!onclick", "!onerror",
        "!script", "!svg", "!text-as-html", "from-sheet", "from-style", "/data", "/form?",
        "/image.png",
    )  # fmt: skip
    found = harm(browser, written, waited_for=harms)
    assert set(found) == set(harms)
    assert found.count("!image") == 2


def without_policy(text: str) -> str:
    found, times = re.subn(r"<meta http-equiv=.Content-Security-Policy.*>", "", text)
    assert times == 1
    return found
