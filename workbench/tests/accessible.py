"""What axe-core complains of in a page: contrast, labels, names, order of headings, and whatever
else it looks at."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

# Without "preload": style sheets would be asked for again, which a page's policy may forbid. What
# passes is not described, which takes a fifth of the time.
_OPTIONS = {"preload": False, "resultTypes": ["violations"]}


def complaints(page: "Page") -> list[Any]:
    """In light and in dark, where nothing but colours is another: scheme, rule, what it asks for,
    and which nodes fail it, and why."""
    found = []
    for scheme, only in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for of in axe.Axe().run(page, options=_OPTIONS | only).response["violations"]:
            nodes = [(node["target"], node["failureSummary"]) for node in of["nodes"]]
            found.append((scheme, of["id"], of["help"], nodes))
    return found
