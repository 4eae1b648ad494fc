// The layers of training over commits, stacked: shares that add up to the whole, or, relative to the
// control, to what a step takes.
(() => {
  "use strict";
  const { colour, commitAxis, valueAxis, draw, tabulate, controlled, ratio, element } = window.chart;
  const charts = window.rlox.profiles;
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function make(place, chart, height) {
    const relative = height === "cost" && chart.cost.some((value) => value != null);
    const scale = (n) => (relative ? chart.cost[n] : 1);
    // The outermost first: each is painted over by those below it.
    const sums = [];
    let below = chart.x.map(() => 0);
    for (const layer of chart.layers) {
      below = below.map((sum, n) => (scale(n) == null ? null : sum + layer.share[n] * scale(n)));
      sums.unshift(below);
    }
    const layers = [...chart.layers].reverse();
    const series = [{}, ...layers.map((layer) => ({
      stroke: () => colour("bg"), width: 1, fill: () => colour(layer.name), spanGaps: true, points: { show: false },
    }))];
    const label = relative ? "control's time a step" : "share of training";
    const axis = valueAxis(label, (_, splits) => splits.map((v) => (relative ? ratio(v) : `${Math.round(100 * v)} %`)));
    const top = (_, __, high) => [0, relative ? 1.05 * Math.max(1, high) : 1];
    return draw(place, {
      series, axes: [commitAxis(), axis], scales: { y: { range: top } }, cursor: { y: false, points: { show: false } },
    }, [chart.x, ...sums], (index) => [told(chart, index)]);
  }

  function told(chart, n) {
    const parts = chart.layers.filter((layer) => layer.share[n]).map((layer) => `${layer.title} ${percent(layer.share[n])}`);
    const step = chart.cost[n] == null ? "" : `; a step takes ${ratio(chart.cost[n])} of the control's time`;
    return element("span", { textContent: parts.join(", ") + step });
  }

  for (const details of document.querySelectorAll("details.values")) {
    const chart = charts[details.dataset.chart];
    const head = [...chart.layers.map((layer) => layer.title), "A step"];
    tabulate(details, head, () => chart.x.map((x, n) => [x, ...chart.layers.map((layer) => percent(layer.share[n])), ratio(chart.cost[n])]).reverse());
  }
  controlled(() => {
    const height = document.querySelector("input[name=height]:checked")?.value ?? "share";
    const title = document.getElementById("titles")?.value;
    const groups = [...document.querySelectorAll("[data-title]")];
    for (const group of groups) group.hidden = Boolean(title) && group.dataset.title !== title;
    const places = groups.filter((group) => !group.hidden).map((group) => group.querySelector(".plot"));
    return places.map((place) => make(place, charts[place.dataset.chart], height));
  });
})();
