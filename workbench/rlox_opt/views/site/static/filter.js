// The overview's rows: filtered by words and choices, sorted by one of their figures.
(() => {
  "use strict";
  const by = (id) => document.getElementById(id);
  const body = document.querySelector("#benchmarks tbody"), rows = [...body.rows];
  const words = by("filter"), order = by("order"), count = by("count");
  const choices = [...document.querySelectorAll("select[data-choice]")];

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits = wanted.every((word) => row.dataset.text.includes(word))
        && choices.every((choice) => !choice.value || row.dataset[choice.dataset.choice].split(" ").includes(choice.value));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
  }

  function sort() {
    const key = order.value, up = key === "text" ? 1 : -1;
    const of = (row) => (key === "text" ? row.dataset.text : Number(row.dataset[key] || -Infinity));
    rows.sort((a, b) => (of(a) < of(b) ? -up : of(a) > of(b) ? up : 0));
    body.append(...rows);
  }

  words.addEventListener("input", apply);
  for (const choice of choices) choice.addEventListener("change", apply);
  order.addEventListener("change", sort);
  by("controls").hidden = false;
  // A page that is gone back to has its choices again.
  addEventListener("pageshow", () => { sort(); apply(); });
})();
