"""The pages in a real browser, from files, with the network off."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import made_up_history
import pytest
from accessible import complaints
from made_up_history import Step, publish
from opened_pages import PHONE, UNFOLDED, WIDE, Opened

from rlox_opt.views.site.layout import benchmark_path, commit_path, diff_path
from rlox_opt.views.site.model import History, read

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

STEPPED = made_up_history.NAMES[1]
KINDS = (
    "overview", "commits", "benchmark", "training", "commit", "first commit", "diff", "profiles",
    "optimisations", "card", "trust",
)  # fmt: skip
LIGHT, DARK = "rgb(253, 253, 252)", "rgb(22, 24, 27)"
# The share of a canvas' pixels that are drawn, and how many colours they have.
DRAWN = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Map();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 200) continue;
    const key = `${data[i]},${data[i + 1]},${data[i + 2]}`;
    colours.set(key, (colours.get(key) || 0) + 1);
  }
  return [...colours.values()].filter(count => count > 20).length;
}"""


@pytest.fixture(scope="module")
def urls(pages: Path, history: History) -> dict[str, str]:
    """A page of each kind."""
    stepped = history.commits[12].hash
    paths = (
        "index.html", "commits.html", benchmark_path(STEPPED), benchmark_path("train.ppo"),
        commit_path(stepped), commit_path(history.commits[0].hash), diff_path(stepped),
        "profiles.html", "optimisations.html", "optimisation/p5.html", "trust.html",
    )  # fmt: skip
    return {kind: (pages / path).as_uri() for kind, path in zip(KINDS, paths, strict=True)}


@pytest.fixture(scope="module")
def opened(browser: "Browser", urls: dict[str, str]) -> Opened:
    return Opened(browser, urls)


@pytest.fixture
def open_(opened: Opened) -> Iterator[Opened]:
    """Opens pages of the kinds, and of the addresses that the test adds; at the end, none may have
    said anything or asked beyond its files."""
    urls = opened.urls
    opened.said.clear()
    yield opened
    opened.urls = urls
    opened.settle()
    assert opened.said == []


class Seen(NamedTuple):
    """What is found of a page: what it said, how many <h1> it has, whether the scripts it has ran,
    and what axe complains of."""

    said: list[str]
    headings: int
    ran: bool
    problems: list[Any]


@pytest.fixture(scope="module")
def seen(opened: Opened) -> Callable[[str], Seen]:
    """Looks at a page of each kind once, for all tests that ask for something of it."""

    @cache
    def look(kind: str) -> Seen:
        opened.said.clear()
        page = opened(kind)
        headings = page.locator("h1").count()
        ran = (
            page.locator("noscript").count() == 0
            or page.evaluate("window.rlox !== undefined")
            or page.locator("#flame").count() == 1
        )
        page.evaluate(UNFOLDED)
        problems = complaints(page)
        opened.settle()
        return Seen([*opened.said], headings, ran, problems)

    return look


def colours(canvas: "Locator") -> int:
    found: int = canvas.evaluate(DRAWN)
    return found


def comes(page: "Page", holds: Callable[[], bool]) -> bool:
    """Whether it holds within half a minute. The page's policy forbids `wait_for_function`."""
    for _ in range(600):
        if holds():
            return True
        page.wait_for_timeout(50)
    return holds()


def rows(page: "Page") -> list[str]:
    """The names of the benchmarks that the overview shows."""
    return page.locator("#benchmarks tbody tr:visible th").all_inner_texts()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_loads_without_a_word_or_a_request(seen: Callable[[str], Seen], kind: str) -> None:
    found = seen(kind)
    assert found.said == []
    assert found.headings == 1
    assert found.ran


def test_a_request_beyond_the_files_would_be_seen(browser: "Browser", urls: dict[str, str]) -> None:
    opened = Opened(browser, urls)
    page = opened("overview")
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://localhost:9/x'}))")
    said = comes(page, lambda: bool(opened.said))
    page.context.close()
    assert said  # the page's own policy forbids it, and the browser says so


def test_every_chart_of_a_benchmark_is_drawn_and_as_wide_as_its_place(open_: Opened) -> None:
    page = open_("benchmark")
    charts = page.locator(".plot canvas")
    assert charts.count() == 5
    for number in range(5):
        # Two lines, their points, and grey text at the least; marks of level changes in two.
        assert colours(charts.nth(number)) >= 3
    widths = page.eval_on_selector_all(
        ".plot", "all => all.map(one => [one.clientWidth, one.querySelector('.uplot').clientWidth])"
    )
    assert all(place == chart for place, chart in widths)


def test_the_switch_shows_ratios_or_what_was_measured(open_: Opened) -> None:
    page = open_("benchmark")
    output = page.locator("#time output")
    before = page.locator("#time canvas").evaluate("canvas => canvas.toDataURL()")
    assert "of the control's time" in output.inner_text()
    page.get_by_label("as measured").check()
    after = page.locator("#time canvas").evaluate("canvas => canvas.toDataURL()")
    assert after != before
    assert colours(page.locator("#time canvas")) >= 3
    page.get_by_label("against the control").check()
    assert page.locator("#time canvas").evaluate("canvas => canvas.toDataURL()") == before


def test_the_slider_walks_along_the_commits_by_keyboard(open_: Opened, history: History) -> None:
    page = open_("benchmark")
    slider, output = page.locator("#time .walk input"), page.locator("#time output")
    slider.focus()
    page.keyboard.press("Home")
    assert history.commits[0].hash[:7] in output.inner_text()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    said = output.inner_text()
    assert history.commits[12].hash[:7] in said
    assert history.commits[12].subject in said
    assert history.commits[12].subject in (slider.get_attribute("aria-valuetext") or "")
    output.get_by_role("link").click()
    assert page.url.endswith(commit_path(history.commits[12].hash))


def test_the_values_are_there_as_a_table(open_: Opened, history: History) -> None:
    page = open_("benchmark")
    page.locator("#time details.values summary").click()
    cells = page.locator("#time details.values tbody tr")
    cells.first.wait_for()  # the table is made when it is opened
    assert cells.count() == 30
    first = cells.first.inner_text()
    assert history.commits[-1].hash[:7] in first
    entry = next(r.entry for r in history.commits[-1].recordings if r.entry.features)
    ratio = next(c.ratio for c in entry.cells if (c.benchmark, c.kind) == (STEPPED, "time"))
    assert ratio is not None
    assert f"{ratio:.2f}×" in first


def test_the_last_commits_alone_can_be_shown(open_: Opened, tmp_path: Path) -> None:
    of: dict[str, Any] = {"benchmarks": 1, "kinds": ("time",), "features": [()]}
    made_up_history.write(tmp_path / "store", commits=40, profiled_every=40, moved_at=None, **of)
    publish(tmp_path / "pages", History.of(read(tmp_path / "store")))
    name = made_up_history.benchmark_name(0)
    open_.urls = open_.urls | {"short": (tmp_path / "pages" / benchmark_path(name)).as_uri()}
    page = open_("short")
    assert page.locator("#time .walk input").get_attribute("max") == "39"
    page.get_by_label("Commits").select_option("30")
    assert page.locator("#time .walk input").get_attribute("max") == "29"


def test_layers_are_stacked_to_the_top_in_their_own_colours(open_: Opened) -> None:
    page = open_("profiles")
    canvas = page.locator(".plot canvas").first
    assert colours(canvas) >= len(made_up_history.LAYERS)
    shown = page.locator(".plot canvas:visible").count()
    assert shown == 2  # of PPO and SAC, of the newest commit's machine
    page.get_by_label("Measured with").select_option("baseline, example-2.80ghz-2c")
    headings = page.locator("main h2:visible").all_inner_texts()
    assert headings == [f"{algo}, baseline, example-2.80ghz-2c" for algo in ("PPO", "SAC")]
    before = page.locator(".plot canvas:visible").first.evaluate("canvas => canvas.toDataURL()")
    page.get_by_label("time a step").check()
    after = page.locator(".plot canvas:visible").first.evaluate("canvas => canvas.toDataURL()")
    assert after != before


def test_the_filter_finds_by_words_and_choices(open_: Opened) -> None:
    page = open_("overview")
    assert len(rows(page)) == 16
    page.get_by_label("Find").fill("GAE 2048")
    assert set(rows(page)) == {STEPPED, made_up_history.NAMES[2]}
    assert page.locator("#count").inner_text() == "4 of 16 shown"
    page.get_by_label("Features").select_option("baseline")
    assert len(rows(page)) == 2
    page.get_by_label("Changed").select_option("slower")
    assert rows(page) == [STEPPED]
    page.get_by_label("Find").fill("no such benchmark")
    assert rows(page) == []
    page.get_by_label("Find").fill("")
    page.get_by_label("Features").select_option("")
    page.get_by_label("Changed").select_option("faster")
    assert set(rows(page)) == {made_up_history.NAMES[3]}


def test_rows_are_sorted_by_what_is_asked(open_: Opened) -> None:
    page = open_("overview")
    assert rows(page)[:4] == [made_up_history.NAMES[3]] * 2 + [STEPPED] * 2  # commit 20, then 12
    page.get_by_label("Order").select_option("ratio")
    assert rows(page)[0] == STEPPED
    page.get_by_label("Order").select_option("text")
    assert rows(page) == sorted(rows(page), key=str.lower)


def test_the_keyboard_reaches_the_filter_and_the_table(open_: Opened) -> None:
    page = open_("overview")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => {
                  const on = document.activeElement, style = getComputedStyle(on);
                  return [on.id || on.closest("#benchmarks")?.id || on.textContent.trim(),
                          on.matches(":focus-visible") && style.outlineStyle !== "none"];
                }"""
            )
        )
    names = [name for name, _ in reached]
    assert names[0] == "Skip to the content"
    assert names.index("theme") < names.index("filter") < names.index("benchmarks")
    assert all(visible for _, visible in reached)


def test_the_skip_link_goes_past_the_navigation(open_: Opened) -> None:
    page = open_("benchmark")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_the_flamegraph_tells_what_changed_and_walks_by_keyboard(open_: Opened) -> None:
    page = open_("commit")
    page.locator("#flame-search").fill("rust::kernel")
    hits = page.locator("#flame div.hit")
    assert hits.count() >= 3
    assert "of the control's time a step" in page.inner_text("#flame-said")
    page.locator("#flame-search").press("Enter")
    assert "rust::kernel<ppo>" in page.inner_text("#flame-said")
    assert "points" in page.inner_text("#flame-said")
    page.keyboard.press("Escape")
    page.get_by_label("Stacks of").select_option(index=1)
    page.locator("#flame-search").fill("rust::kernel<sac>")
    assert hits.count() >= 3


@pytest.mark.parametrize("kind", ["overview", "benchmark"])
def test_dark_follows_the_system_until_the_button_is_used(open_: Opened, kind: str) -> None:
    page = open_(kind, color_scheme="dark", apart=True)
    now = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(now) == DARK
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(now) == LIGHT
    page.reload()
    assert page.evaluate(now) == LIGHT  # it is remembered
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(now) == DARK


def test_charts_are_drawn_anew_in_the_other_theme(open_: Opened) -> None:
    page = open_("benchmark", apart=True)
    canvas = page.locator("#time canvas")
    light = canvas.evaluate("canvas => canvas.toDataURL()")
    page.get_by_role("button", name="Dark").click()
    assert comes(page, lambda: canvas.evaluate("canvas => canvas.toDataURL()") != light)
    assert comes(page, lambda: colours(canvas) >= 3)


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_phone_no_page_scrolls_sideways(open_: Opened, kind: str) -> None:
    page = open_(kind, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_charts_follow_the_width_of_the_window(open_: Opened) -> None:
    page = open_("benchmark")
    page.set_viewport_size({"width": 500, "height": 800})
    width = "document.querySelector('.uplot').clientWidth"
    assert comes(page, lambda: bool(page.evaluate(width) < 500))
    assert comes(page, lambda: colours(page.locator("#time canvas")) >= 3)


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_to_complain_of(seen: Callable[[str], Seen], kind: str) -> None:
    assert seen(kind).problems == []


@pytest.mark.slow
def test_two_thousand_commits_are_drawn(open_: Opened, tmp_path: Path) -> None:
    of: dict[str, Any] = {
        "benchmarks": 1,
        "kinds": ("time",),
        "features": [()],
        "profiled_every": 9999,
    }
    made_up_history.write(
        tmp_path / "store", 2000, steps=[Step(0, 1500, 1.05)], moved_at=None, **of
    )
    publish(tmp_path / "pages", History.of(read(tmp_path / "store")))
    name = made_up_history.benchmark_name(0)
    open_.urls = open_.urls | {"long": (tmp_path / "pages" / benchmark_path(name)).as_uri()}
    page = open_("long")
    assert page.locator(".walk input").get_attribute("max") == "1999"
    assert colours(page.locator(".plot canvas")) >= 3
    assert page.locator("ol.moves li").count() == 1
    page.get_by_label("Commits").select_option("1000")
    assert page.locator(".walk input").get_attribute("max") == "999"


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_how_often_intervals_held_is_drawn_and_told(open_: Opened, size: dict[str, int]) -> None:
    page = open_("optimisations", viewport=size)
    place = page.locator("#coverage .shares")
    box = place.bounding_box()
    assert box is not None
    assert page.locator("#coverage .legend li").count() == 3
    ends = {}
    for number in range(3):
        line = place.locator(f"polyline.line{number}")
        drawn = line.evaluate("one => (({right, bottom, top}) => [right, top, bottom])("
                              "one.getBoundingClientRect())")  # fmt: skip
        assert drawn[0] == pytest.approx(box["x"] + box["width"], abs=2)
        assert drawn[1] < drawn[2]  # it is a line, and not a point
        ends[number] = line.evaluate("one => one.points[one.points.length - 1].y")
    told = place.get_attribute("aria-label") or ""
    shares = [100 - 100 * int(a) / int(b) for a, b in re.findall(r"(\d+) of (\d+)", told)]
    assert [ends[n] for n in range(3)] == pytest.approx(shares, abs=0.01)
    days = place.locator(".x").evaluate_all("all => all.map(one => one.getBoundingClientRect())")
    assert all(one["right"] < other["left"] for one, other in pairwise(days))
    page.locator("#coverage summary").click()
    rows = page.locator("#coverage tbody tr").count()
    assert rows == int(re.findall(r"of (\d+)", told)[0])
