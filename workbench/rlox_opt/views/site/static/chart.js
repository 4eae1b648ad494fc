// What all charts share: colours of the theme, the axis of commits, the slider that walks along it,
// the values as a table, and the controls. Charts count along the recorded commits, evenly spaced.
window.chart = (() => {
  "use strict";
  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const commits = window.rlox.commits;
  const root = document.currentScript.getAttribute("src").replace("static/chart.js", "");
  const HEIGHT = 270, LABEL = 74; // pixels: of a chart, of a tick with its hash and day

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  function commitAxis() {
    return {
      stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false },
      space: LABEL, size: 46, font: "12px system-ui, sans-serif",
      incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
      values: (_, splits) => splits.map((i, n) => {
        if (!commits[i]) return "";
        const day = commits[i][1], same = n > 0 && commits[splits[n - 1]]?.[1] === day;
        return same ? commits[i][0] : `${commits[i][0]}\n${day}`;
      }),
    };
  }

  function valueAxis(label, values) {
    return {
      label, values, stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false },
      size: 62, labelSize: 22, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    };
  }

  // A chart in `place`, drawn anew when its width or the theme changes. `tell(index)` gives what is
  // said of the index-th x, as nodes.
  function draw(place, options, data, tell) {
    const x = data[0], ended = new AbortController(), { signal } = ended;
    const plot = new uPlot({
      width: place.clientWidth, height: HEIGHT, legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: true }, points: { size: 7 } },
      ...options,
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] }, ...options.scales },
      hooks: { ...options.hooks, setCursor: [(u) => u.cursor.idx != null && said(u.cursor.idx)], destroy: [() => ended.abort()] },
    }, data, place);

    const walk = place.parentElement.querySelector(".walk");
    const slider = walk.querySelector("input"), output = walk.querySelector("output");
    walk.hidden = false;
    Object.assign(slider, { min: 0, max: x.length - 1, value: x.length - 1 });
    let shown = null;
    function said(index) {
      if (index === shown) return;
      shown = index;
      const [hash, day, subject, page] = commits[x[index]];
      slider.value = index;
      slider.setAttribute("aria-valuetext", `${hash}, ${subject}`);
      output.replaceChildren(
        element("a", { href: root + page, textContent: hash }), ` ${subject} `,
        element("span", { className: "soft", textContent: day }), element("br"), ...tell(index),
      );
    }
    slider.addEventListener("input", () => {
      const index = Number(slider.value);
      plot.setCursor({ left: plot.valToPos(x[index], "x"), top: 0 });
      said(index);
    }, { signal });
    said(x.length - 1);
    const resized = new ResizeObserver(() => {
      if (place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height: HEIGHT });
    });
    resized.observe(place);
    signal.addEventListener("abort", () => resized.disconnect());
    addEventListener("theme", () => plot.redraw(false, true), { signal });
    return plot;
  }

  // The table below a chart, made when it is opened: `rows` gives [commit's x, cells].
  function tabulate(details, head, rows) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const body = rows().map(([x, ...cells]) => {
        const [hash, day, subject, page] = commits[x];
        const link = element("a", { href: root + page, textContent: hash });
        const first = element("th", { scope: "row", className: "word" }, link, ` ${day} ${subject}`);
        return element("tr", {}, first, ...cells.map((text, n) => {
          const cell = element("td", { textContent: text });
          cell.dataset.label = head[n];
          return cell;
        }));
      });
      const top = element("tr", {}, ...["Commit", ...head].map((text, n) => element("th", { scope: "col", textContent: text, className: n ? "" : "word" })));
      const caption = element("caption", { className: "aloud", textContent: details.querySelector("summary").textContent });
      const scroll = element("div", { className: "scroll wide", tabIndex: 0 }, element("table", {}, caption, element("thead", {}, top), element("tbody", {}, ...body)));
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", caption.textContent);
      details.append(scroll);
    });
  }

  // Draws the page's charts, `make()`, now and whenever a control is changed.
  function controlled(make) {
    let plots = [];
    const all = () => {
      for (const plot of plots) plot.destroy();
      plots = make();
      performance.mark("drawn"); // asv_bench/publish_times.py waits for it
    };
    const controls = document.getElementById("controls");
    controls.hidden = !controls.querySelector("input, select");
    controls.addEventListener("change", all);
    all();
  }

  const digits = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  function scaled(value, steps) {
    for (const [unit, size] of steps) if (Math.abs(value) >= size) return `${digits(value / size)} ${unit}`;
    const [unit, size] = steps.at(-1);
    return `${digits(value / size)} ${unit}`;
  }
  const UNITS = {
    seconds: (v) => scaled(v, [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]]),
    bytes: (v) => scaled(v, [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]]),
    "steps/second": (v) => `${digits(v)} /s`,
  };
  const amount = (value, unit) => (value == null ? "–" : value === 0 ? "0" : (UNITS[unit] ?? digits)(value));
  const ratio = (value) => (value == null ? "–" : `${value.toFixed(Math.abs(value - 1) < 0.1 ? 3 : 2)}×`);

  return { colour, element, commitAxis, valueAxis, draw, tabulate, controlled, amount, ratio };
})();
