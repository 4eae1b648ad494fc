// Light or dark: the system's choice until the button was used, then the reader's. It runs in the
// head, before anything is drawn, so that no page flashes in the other one.
(() => {
  "use strict";
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = (write) => {
    // Some browsers keep nothing for pages from files.
    try {
      if (write) localStorage.setItem("theme", write);
      return localStorage.getItem("theme");
    } catch {
      return write;
    }
  };
  const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const told = () => dispatchEvent(new Event("theme"));
  const chosen = stored();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  dark.addEventListener("change", told);
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => { button.textContent = now() === "dark" ? "Light" : "Dark"; };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = now() === "dark" ? "light" : "dark";
      stored(root.dataset.theme);
      told();
    });
    addEventListener("theme", label);
    label();
  });
})();
