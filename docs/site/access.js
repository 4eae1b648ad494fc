// What a reader with a keyboard or a screen reader needs beyond what the theme does: each block of code
// names its own group of buttons, and a table that is wider than the page can be scrolled by keys.
function accessible() {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    const all = [...document.querySelectorAll(".md-code__nav")];
    nav.setAttribute("aria-label", `Code ${all.indexOf(nav) + 1}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((table) => {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  });
}
new MutationObserver(accessible).observe(document.body, { childList: true, subtree: true });
accessible();
