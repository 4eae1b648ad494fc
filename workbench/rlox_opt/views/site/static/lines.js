// The charts of a benchmark: a line for each feature set and machine, with intervals around ratios,
// and a numbered mark at each level change.
(() => {
  "use strict";
  const { colour, commitAxis, valueAxis, draw, tabulate, controlled, amount, ratio, element } = window.chart;
  const charts = window.rlox.benchmark;
  const DASHES = [[], [6, 4], [2, 3], [10, 3], [10, 3, 2, 3], [5, 2, 2, 2]];
  const LEAST = 0.04; // of the middle: the span of an axis, so that noise does not look large
  const COUNTED = new Set(["instructions", "allocations"]);
  const places = (step) => Math.max(1, Math.min(4, Math.ceil(-Math.log10(step) - 1e-9)));

  // The values of a line at each x of the chart, null where it has none.
  function aligned(x, line, key) {
    const at = new Map(line.x.map((index, n) => [index, line[key][n]]));
    return x.map((index) => at.get(index) ?? null);
  }

  // That of the values, and of the `ends` of their intervals as far as it does not become three times
  // as large: one interval of few restarts would flatten all that the chart is to show.
  function range(low, high, ends) {
    const span = Math.max(high - low, (LEAST * Math.abs(low + high)) / 2), positive = low >= 0;
    low = Math.max(low - span, Math.min(low, ...ends));
    high = Math.min(high + span, Math.max(high, ...ends));
    const middle = (low + high) / 2, half = Math.max((high - low) / 2, (LEAST * Math.abs(middle)) / 2) * 1.12 || 1;
    return [Math.max(positive ? 0 : -Infinity, middle - half), middle + half];
  }

  function marks(chart) {
    return (u) => {
      const { ctx, bbox } = u, pixel = devicePixelRatio;
      ctx.save();
      ctx.font = `600 ${11 * pixel}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      for (const mark of chart.marks) {
        const x = u.valToPos(mark.x, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        const ink = colour(mark.kind);
        Object.assign(ctx, { strokeStyle: ink, fillStyle: ink, lineWidth: 1.5 * pixel });
        ctx.setLineDash(mark.alarm ? [4 * pixel, 3 * pixel] : []);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top + 17 * pixel);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        const label = mark.first === mark.last ? `${mark.first}` : `${mark.first}–${mark.last}`;
        const width = Math.max(16 * pixel, ctx.measureText(label).width + 8 * pixel);
        ctx.beginPath();
        ctx.roundRect(x - width / 2, bbox.top, width, 16 * pixel, 8 * pixel);
        ctx.fill();
        ctx.fillStyle = colour("bg");
        ctx.fillText(label, x, bbox.top + 8.5 * pixel);
      }
      ctx.restore();
    };
  }

  function make(place, chart, show, last) {
    const compared = show === "ratio" && chart.lines.some((line) => line.ratio.some((value) => value != null));
    const key = compared ? "ratio" : "value";
    const least = last ? window.rlox.commits.length - last : 0;
    let x = [...new Set(chart.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    if (x.some((index) => index >= least)) x = x.filter((index) => index >= least);
    const data = [x], series = [{}], bands = [], ends = [];
    for (const line of chart.lines) {
      const ink = `line${line.colour % 4}`;
      const stroke = () => colour(ink);
      data.push(aligned(x, line, key));
      series.push({ stroke, width: 2, dash: DASHES[line.dash % DASHES.length], spanGaps: true, points: { size: 5, fill: stroke } });
      if (!compared || line.high.every((value) => value == null)) continue;
      const edges = [aligned(x, line, "high"), aligned(x, line, "low")];
      data.push(...edges);
      ends.push(...edges.flat().filter((value) => value != null));
      const edge = { stroke: "transparent", width: 0, auto: false, spanGaps: true, points: { show: false } };
      series.push(edge, { ...edge });
      bands.push({ series: [series.length - 2, series.length - 1], fill: () => colour(`${ink}-band`) });
    }
    const figure = (value) => (compared ? ratio(value) : amount(value, chart.unit));
    const label = compared ? `ratio to the ${chart.ratio}` : { seconds: "time of a call", bytes: "memory", "steps/second": "steps a second" }[chart.unit] ?? chart.unit;
    const axis = valueAxis(label, (_, splits, __, ___, step) => splits.map(compared ? (v) => `${v.toFixed(places(step))}×` : figure));
    if (!compared && COUNTED.has(chart.unit)) axis.incrs = [1, 2, 5].flatMap((n) => Array.from({ length: 12 }, (_, e) => n * 10 ** e)).sort((a, b) => a - b);
    return draw(place, {
      series, bands, axes: [commitAxis(), axis], scales: { y: { range: (_, low, high) => range(low, high, ends) } }, hooks: { draw: [marks(chart)] },
    }, data, (index) => told(chart, x[index]));
  }

  function told(chart, x) {
    return chart.lines.flatMap((line) => {
      const n = line.x.indexOf(x);
      if (n < 0) return [];
      const text = [`${line.label}: ${amount(line.value[n], chart.unit)}`];
      if (line.ratio[n] != null) text.push(`, ${between(line, n)} of the ${chart.ratio}`);
      return [element("span", { textContent: text.join("") }), element("br")];
    });
  }

  function between(line, n) {
    const ends = line.low[n] == null ? "" : ` (${line.low[n].toFixed(3)}–${line.high[n].toFixed(3)})`;
    return `${ratio(line.ratio[n])}${ends}`;
  }

  function rows(chart) {
    const x = [...new Set(chart.lines.flatMap((line) => line.x))].sort((a, b) => b - a);
    return x.map((index) => [index, ...chart.lines.flatMap((line) => {
      const n = line.x.indexOf(index);
      return n < 0 ? ["–", "–"] : [amount(line.value[n], chart.unit), line.ratio[n] == null ? "–" : between(line, n)];
    })]);
  }

  for (const details of document.querySelectorAll("details.values")) {
    const chart = charts[details.dataset.chart];
    tabulate(details, chart.lines.flatMap((line) => [line.label, "against the control"]), () => rows(chart));
  }
  controlled(() => {
    const show = document.querySelector("input[name=show]:checked")?.value ?? "value";
    const last = Number(document.getElementById("range")?.value ?? 0);
    return [...document.querySelectorAll(".plot")].map((place) => make(place, charts[place.dataset.chart], show, last));
  });
})();
