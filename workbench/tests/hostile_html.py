"""Markup that somebody could put into a page to run or load something, and its effect."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# A PNG of one pixel.
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002"
    "000001e221bc330000000049454e44ae426082"
)
# Each says in the title what it has done.
_PAYLOAD = """
<script>document.title += " !script"</script>
<script src="data:text/javascript,document.title += ' !from-data'"></script>
<img src="nothing" onerror="document.title += ' !onerror'">
<svg onload="document.title += ' !svg'"></svg>
<iframe srcdoc="<script>top.document.title += ' !iframe'</script>"></iframe>
<style>body { --harmed: from-style }</style>
<link rel="stylesheet" href="data:text/css,body { --linked: from-sheet }">
<base href="file:///elsewhere/">
<img class="pixel" src="PIXEL">
<img class="pixel" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">
<img src="SERVER/image.png">
<b id="handler" onclick="document.title += ' !onclick'">click</b>
<a id="link" href="javascript:void(document.title += ' !link')">click</a>
<form action="SERVER/form"><button id="form">send</button></form>
"""
_HARM = """() => [
  ...(() => {
    try {
      document.createElement("b").innerHTML = "<i>";
      return ["!text-as-html"];
    } catch {
      return [];
    }
  })(),
  ...document.title.match(/![a-z-]+/g) ?? [],
  getComputedStyle(document.body).getPropertyValue("--harmed"),
  getComputedStyle(document.body).getPropertyValue("--linked"),
  document.baseURI === location.href ? "" : "!base",
  ...[...document.querySelectorAll(".pixel")].map((image) => image.naturalWidth ? "!image" : ""),
].filter(Boolean)"""

_FORM = "/form?"  # what its form asks for; it leaves the page


def harm(browser: "Browser", path: Path, waited_for: Sequence[str] = ()) -> list[str]:
    """The effects of hostile markup in a page, and its requests to a server; empty if the page is
    protected. The file is changed. Those that are `waited_for` have a minute, others a moment."""
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

        def log_message(self, *_: object) -> None: ...

    (path.parent / "pixel.png").write_bytes(_PIXEL)
    text = path.read_text(encoding="utf-8")
    assert "</main>" in text
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        payload = _PAYLOAD.replace("PIXEL", (path.parent / "pixel.png").as_uri())
        payload = payload.replace("SERVER", address)
        path.write_text(text.replace("</main>", f"{payload}</main>"), encoding="utf-8")
        page = browser.new_page()
        page.goto(path.as_uri())
        page.evaluate(f"fetch('{address}/data', {{mode: 'no-cors'}}).catch(() => 0)")
        for what in ("#handler", "#link"):
            page.locator(what).click()
        before = [of for of in waited_for if of != _FORM]
        found = _come(page, lambda: [*page.evaluate(_HARM), *asked], before)
        page.locator("#form").click(no_wait_after=True)
        _come(page, lambda: [*asked], {*waited_for} & {_FORM})
        page.close()
        server.shutdown()
    return [of for of in found if not of.startswith("/")] + asked


def _come(page: "Page", there: Callable[[], list[str]], waited_for: Iterable[str]) -> list[str]:
    """What is there after a moment, or once all that is waited for has come."""
    missing, deadline = Counter(waited_for), time.monotonic() + 60
    while True:
        page.wait_for_timeout(50)
        found = there()
        if not missing - Counter(found) or time.monotonic() > deadline:
            return found
