"""The page in a real browser, from a file, with the network off."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlox_opt.sampling.samples import Samples
from rlox_opt.views import details, html
from rlox_opt.views.model import Document
from rlox_opt.views.report_folder import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FRAMES = "#flame div"
LOADS = count()


@pytest.fixture(scope="module")
def url(
    tmp_path_factory: pytest.TempPathFactory, report: dict[str, Any], samples: dict[str, Samples]
) -> str:
    folder = tmp_path_factory.mktemp("page")
    write(folder, report, samples)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> Iterator["Page"]:
    """The tab, offline, that all documents are loaded into: another takes longer than loading.
    An error, a warning or a request is in `said`."""
    tab = browser.new_context(offline=True).new_page()
    tab.said, tab.own = [], ""  # type: ignore[attr-defined]
    tab.on("console", lambda message: tab.said.append(message.text))  # type: ignore[attr-defined]
    tab.on("pageerror", lambda error: tab.said.append(str(error)))  # type: ignore[attr-defined]
    tab.on("request", lambda r: tab.said.append(r.url) if r.url != tab.own else None)  # type: ignore[attr-defined]
    yield tab
    tab.context.close()


def load(tab: "Page", url: str, wide: int = 1280, scheme: Any = "light") -> "Page":
    """The tab with the document, in a window so wide."""
    tab.mouse.move(0, 0)
    tab.set_viewport_size({"width": wide, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    # Never the address of before: a document that is loaded again may be given back its state.
    tab.own = f"{url}?{next(LOADS)}"  # type: ignore[attr-defined]
    tab.said.clear()  # type: ignore[attr-defined]
    tab.goto(tab.own)  # type: ignore[attr-defined]
    return tab


@pytest.fixture
def page(tab: "Page", url: str) -> Iterator["Page"]:
    page = load(tab, url)
    yield page
    assert page.said == []  # type: ignore[attr-defined]


def width(page: "Page", label: str) -> float:
    box = page.locator(FRAMES, has_text=label).first.bounding_box()
    assert box is not None
    return box["width"]


def test_bars_are_as_wide_as_their_shares_and_whiskers_hold_their_ends(
    page: "Page", report: dict[str, Any]
) -> None:
    measured = page.eval_on_selector_all(
        ".bar[data-layer]",
        """bars => bars.map(bar => {
          const [track, fill, whisker] = [".track", ".track i", ".track b"].map(
            what => bar.querySelector(what)?.getBoundingClientRect());
          return [bar.dataset.layer, fill.width, whisker && whisker.left - track.left,
                  whisker && whisker.right - track.left];
        })""",
    )
    layers = {layer["name"]: layer for layer in report["layers"] if layer["share"]}
    widest = max(layers.values(), key=lambda layer: layer["share"])
    scale = next(fill for name, fill, *_ in measured if name == widest["name"]) / widest["share"]
    assert len(measured) == len(layers)
    assert scale > 500  # pixels of the whole
    for name, fill, low, high in measured:
        assert fill == pytest.approx(scale * layers[name]["share"], abs=1), name
        if low is not None:
            assert low == pytest.approx(scale * layers[name]["ci95"][0], abs=1.5), name
            # A whisker's two ends have a thickness below which it does not go.
            assert high == pytest.approx(scale * layers[name]["ci95"][1], abs=3.5), name


def test_frames_are_as_wide_as_their_share_of_training(
    page: "Page", report: dict[str, Any]
) -> None:
    phase = next(phase for phase in report["phases"] if phase["name"] == "gradient_update")
    ratio = width(page, "gradient_update") / width(page, "training")
    assert ratio == pytest.approx(phase["share"], abs=0.002)


def test_a_click_zooms_and_reset_goes_back(page: "Page") -> None:
    whole, before = width(page, "training"), width(page, "backward")
    page.locator(FRAMES, has_text="backward").first.click()
    assert width(page, "backward") == pytest.approx(whole, abs=2)
    assert before < 0.9 * whole
    assert "phase backward" in page.inner_text("#flame-said")
    assert not page.locator(FRAMES, has_text="policy_forward").count()
    page.click("#flame-reset")
    assert width(page, "backward") == pytest.approx(before, abs=1)
    assert page.is_disabled("#flame-reset")


def test_the_keyboard_walks_zooms_and_goes_back(page: "Page") -> None:
    page.locator("#flame-search").focus()
    page.keyboard.press("Tab")  # reset is disabled, so the graph is next
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused).startswith("phase training, 100.0 % of training")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused).startswith("phase gradient_update")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith("phase policy_forward")
    assert page.is_visible("#tip")
    page.keyboard.press("Enter")
    assert width(page, "policy_forward") == pytest.approx(width(page, "training"), abs=2)
    assert page.evaluate(focused).startswith("phase policy_forward")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused).startswith("phase training")
    page.keyboard.press("Escape")
    assert width(page, "policy_forward") < width(page, "training") * 0.9
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "flame-search"


def test_search_marks_what_matches_and_counts_its_time_once(
    page: "Page", report: dict[str, Any]
) -> None:
    page.fill("#flame-search", "GRADIENT_update")
    assert page.locator(f"{FRAMES}.hit").all_inner_texts() == ["gradient_update"]
    share = next(p["share"] for p in report["phases"] if p["name"] == "gradient_update")
    assert f"matches {100 * share:.1f} % of training" in page.inner_text("#flame-said")
    page.fill("#flame-search", "torch")  # matches frames below frames that match
    said = page.inner_text("#flame-said")
    assert float(said.split("matches ")[1].split(" %")[0]) <= 100
    assert page.locator(f"{FRAMES}.hit").count() > 3
    page.fill("#flame-search", "no such frame")
    assert "matches 0.00 % of training" in page.inner_text("#flame-said")
    page.locator("#flame-search").press("Escape")
    assert page.inner_text("#flame-said") == ""


def test_the_tooltip_tells_share_seconds_and_layer(page: "Page") -> None:
    page.locator(FRAMES, has_text="backward").first.hover()
    tip = page.inner_text("#tip")
    assert "% of training" in tip
    assert " ms" in tip
    assert "PyTorch training: backward" in tip


def test_the_tools_stacks_can_be_switched(page: "Page") -> None:
    assert page.input_value("#flame-tool") == "perf"  # the layers' source comes first
    before = page.locator(FRAMES).all_inner_texts()
    page.select_option("#flame-tool", "py-spy")
    assert page.locator(FRAMES).count()
    assert {"training", "gradient_update"} <= set(page.locator(FRAMES).all_inner_texts())
    page.select_option("#flame-tool", "perf")
    assert page.locator(FRAMES).all_inner_texts() == before


def test_phases_fold(page: "Page") -> None:
    inner = page.locator("#phases .leaf", has_text="backward")
    assert inner.is_visible()
    page.locator("#phases summary", has_text="gradient_update").click()
    assert not inner.is_visible()


def test_dark_is_dark_and_text_is_legible_in_both(tab: "Page", url: str) -> None:
    contrast = """() => {
      const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
          .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const back = light(getComputedStyle(document.body).backgroundColor);
      return [back, ...["h1", "section > p", "nav a", "th"].map(what => {
        const text = light(getComputedStyle(document.querySelector(what)).color);
        return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
      })];
    }"""
    backs = {}
    for scheme in ("light", "dark"):
        page = load(tab, url, scheme=scheme)
        backs[scheme], *ratios = page.evaluate(contrast)
        assert min(ratios) >= 4.5, (scheme, ratios)  # WCAG's AA
    assert backs["dark"] < 0.05 < 0.8 < backs["light"]


@pytest.mark.parametrize("wide", [320, 400, 1280])
def test_the_page_never_scrolls_sideways(tab: "Page", url: str, wide: int) -> None:
    page = load(tab, url, wide)
    assert page.evaluate("document.documentElement.scrollWidth") <= wide


@pytest.mark.parametrize("wide", [320, 1000])
def test_a_kernels_long_name_leaves_its_time_in_sight(
    tab: "Page", tmp_path: Path, wide: int
) -> None:
    kernel = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma"
    found = {
        "waited": [{"waits": "log", "launched": "forward", "name": kernel * 2, "seconds": 2.2}],
        "phases": [{"phase": "log", "waits": 2.2, "kernels": 0.0}],
    }
    text = html.page(Document("Profile", "program.py", [], [], details.on_device(found), []))
    (tmp_path / "device.html").write_text(text)
    url = (tmp_path / "device.html").as_uri()
    page = load(tab, url, wide)
    box = page.get_by_role("cell", name="2.20 s").first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= wide


def test_a_page_without_samples_raises_no_error(tab: "Page", tmp_path: Path) -> None:
    write(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1"})
    page = load(tab, (tmp_path / "report.html").as_uri())
    assert page.said == []  # type: ignore[attr-defined]
    assert page.is_visible("text=This report is incomplete")
