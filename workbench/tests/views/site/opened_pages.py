"""A tab of the browser, for pages of the history; and what of a page axe is to look at."""

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# Opens what is folded, whose tables are made then, and leaves two of the rows of a table or list,
# or of the frames of a flamegraph, that differ in their texts and places alone: axe takes seconds
# for hundreds, and says of each the same. A colour counts where there is text to be read on it.
UNFOLDED = """async () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  for (const list of document.querySelectorAll("tbody, ul, ol, #flame")) {
    const seen = {};
    for (const row of [...list.children]) {
      const alike = [row, ...row.querySelectorAll("*")].map(one => {
        const text = one.textContent.trim() !== "", style = one.getAttribute("style") ?? "";
        return `${one.tagName} ${one.getAttribute("class")} ${one.getAttributeNames()} ${text} ` +
               (text ? style.replace(/\\b(left|top|width): ?[^;]*;?/g, "") : "");
      }).join();
      seen[alike] = (seen[alike] || 0) + 1;
      if (seen[alike] > 2) row.remove();
    }
  }
}"""


class Opened:
    """Loads pages, offline, into one tab, since opening another takes longer than loading. A test
    that has a page store something, which later loads would find, loads it into a tab apart. What
    pages say, or ask beyond their files, is in `said`."""

    def __init__(self, browser: "Browser", urls: dict[str, str]) -> None:
        self.browser, self.urls = browser, urls
        self.said: list[str] = []
        self._loads = count()
        self._tab = self._new()
        self._apart: list[Any] = []

    def __call__(
        self, kind: str, viewport: Any = WIDE, color_scheme: Any = "light", apart: bool = False
    ) -> "Page":
        tab = self._new() if apart else self._tab
        if apart:
            self._apart.append(tab)
        tab.mouse.move(0, 0)
        tab.set_viewport_size(viewport)
        tab.emulate_media(color_scheme=color_scheme)
        # Never the address of before: a page that is loaded again may be given back its state.
        tab.goto(f"{self.urls[kind]}?{next(self._loads)}")
        return tab

    def settle(self) -> None:
        """Close the tabs apart, and hear all that was said until now."""
        while self._apart:
            self._apart.pop().context.close()
        self._tab.wait_for_load_state()
        self._tab.evaluate("0")

    def _new(self) -> "Page":
        tab = self.browser.new_context(offline=True).new_page()
        tab.on("console", lambda message: self.said.append(f"{tab.url}: {message.text}"))
        tab.on("pageerror", lambda error: self.said.append(f"{tab.url}: {error}"))
        tab.on("request", self._heard)
        tab.on("requestfailed", lambda request: self.said.append(f"failed {request.url}"))
        return tab

    def _heard(self, request: Any) -> None:
        if not request.url.startswith("file://"):
            self.said.append(request.url)
