"""The page as text: well-formed, self-contained, escaped."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.views import html

VOID = {"meta", "input", "wbr", "br", "hr", "img", "link"}
EVIL = '</script><img src=x onerror="alert(1)">&'


class Page(HTMLParser):
    """Collects a page's elements; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def text(report: dict[str, Any], samples: dict[str, Samples]) -> str:
    return html.render(report, samples)


def test_the_page_is_well_formed_and_its_links_lead_somewhere(text: str) -> None:
    page = Page(text)
    ids = [attrs["id"] for _, attrs in page.found if attrs.get("id")]
    assert len(ids) == len(set(ids))
    targets = {attrs["href"] for tag, attrs in page.found if tag == "a"}
    assert targets <= {f"#{id_}" for id_ in ids}


def test_the_page_asks_for_nothing_from_outside(text: str) -> None:
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)
    page = Page(text)
    assert not {tag for tag, _ in page.found} & {"link", "img", "iframe", "object", "base"}
    assert not [attrs for _, attrs in page.found if "src" in attrs]
    assert "default-src 'none'" in text


def test_the_policy_allows_the_pages_own_script_and_style_alone(text: str) -> None:
    page = Page(text)
    policy = next(attrs["content"] for tag, attrs in page.found if "http-equiv" in attrs)
    allowed = re.findall(r"'sha256-([^']+)'", policy or "")
    script, style = (
        re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S) for tag in ("script", "style")
    )
    assert (len(script), len(style)) == (1, 1)
    digests = [sha256(one.encode()).digest() for one in (*script, *style)]
    assert allowed == [b64encode(digest).decode() for digest in digests]


def test_every_layer_that_was_seen_has_a_bar_with_its_share_and_time(
    text: str, report: dict[str, Any]
) -> None:
    bars = {
        attrs["data-layer"]: float(attrs["data-share"] or 0)
        for _, attrs in Page(text).found
        if "data-layer" in attrs
    }
    assert bars == {
        layer["name"]: pytest.approx(layer["share"], abs=1e-6)
        for layer in report["layers"]
        if layer["share"]
    }


def test_all_text_of_the_run_is_escaped(report: dict[str, Any]) -> None:
    evil = report | {
        "env_id": EVIL,
        "incomplete": [EVIL],
        "settings": {"policy": EVIL},
        "machine": {"cpu": EVIL},
        "tools": {EVIL: {"reason": EVIL, "remedy": EVIL}},
        "phases": [{"name": EVIL.replace("/", ""), "seconds": 1.0, "share": 0.5, "calls": 1}],
        "micro": [{"group": EVIL, "name": EVIL, "us": 1.0}],
        "crossings": [{"name": EVIL, "kind": EVIL, "per_iteration": 1, "bytes": 1, "us": 1.0}],
    }
    stack = Sample((Frame(EVIL, EVIL),), EVIL.replace("/", ""), "rust", 0.01, MAIN_THREAD)
    text = html.render(evil, {EVIL: Samples(EVIL, [stack])})
    page = Page(text)
    assert not [tag for tag, _ in page.found if tag == "img"]
    assert [attrs for _, attrs in page.found if "onerror" in attrs] == []
    data = text.split('id="flame-data">')[1].split("</script>")[0]
    assert EVIL in json.loads(data)["tools"]


@pytest.fixture(scope="module")
def few(samples: dict[str, Samples]) -> dict[str, Samples]:
    """A part of the samples: what else is on the page does not depend on their number."""
    return {tool: replace(found, samples=found.samples[:200]) for tool, found in samples.items()}


@pytest.mark.parametrize(
    "missing",
    ["layers", "phases", "tools", "micro", "crossings", "bottlenecks", "cards", "machine"],
)
def test_a_report_without_a_part_is_still_a_page(
    report: dict[str, Any], few: dict[str, Samples], missing: str
) -> None:
    without = {key: value for key, value in report.items() if key != missing}
    text = html.render(without, few)
    assert "<h1>" in text
    Page(text)
    assert "<h1>" in html.render(without | {missing: type(report[missing])()}, {})


def test_an_empty_report_is_a_page_that_says_so() -> None:
    text = html.render({}, {})
    Page(text)
    assert "This report is incomplete" in text
    assert "no stacks to draw" in text
