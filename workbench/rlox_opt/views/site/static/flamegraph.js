// The flamegraph: phases outermost, then stacks, widths in seconds of the plain run, coloured by
// layer. Of a difference (`of` says what its shares are of), nodes have a share before and one after:
// widths are the mean of both, so that what is gone is seen as well, and colours the change. Only
// frames wide enough to be seen at the present zoom are in the document.
(() => {
  "use strict";
  const trees = JSON.parse(document.getElementById("flame-data").textContent);
  const by = (id) => document.getElementById(id);
  const graph = by("flame"), tip = by("tip"), said = by("flame-said");
  const query = by("flame-search"), tool = by("flame-tool"), reset = by("flame-reset");
  const ROW = 20;
  let of = null, nodes = [], most = 0.01, focus = null, current = null, cells = new Map();

  const percent = (s) => `${((100 * s) / nodes[0].s).toFixed(s / nodes[0].s < 0.01 ? 2 : 1)} %`;
  const time = (s) => (s >= 1 ? `${s.toFixed(2)} s` : s >= 1e-3 ? `${(s * 1e3).toFixed(1)} ms` : `${(s * 1e6).toFixed(0)} µs`);
  const extent = (s) => (of ? `${percent(s)} of ${of}` : `${percent(s)} of training, ${time(s)}`);
  const points = (share) => `${(100 * share).toFixed(2)} %`;
  const signed = (share) => `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toFixed(2)} points`;
  const within = (node, outer) => node.index >= outer.index && node.index < outer.end;

  function read(tree) {
    const open = [];
    of = tree.of;
    nodes = tree.nodes.map(([depth, name, ...rest], index) => {
      const [label, module, phase] = tree.names[name];
      const [layer, s, part] = of ? [null, (rest[0] + rest[1]) / 2, 1] : rest;
      const parent = depth ? open[depth - 1] : null;
      const node = { index, end: index + 1, depth, label, module, phase, s, parent, ...(of ? { before: rest[0], after: rest[1] } : { layer: tree.layers[layer], part }), children: [], x: 0, next: 0 };
      if (parent) {
        node.x = node.next = parent.next;
        parent.next += s;
        parent.children.push(node);
      }
      open.length = depth;
      open[depth] = node;
      for (const outer of open) outer.end = index + 1;
      return node;
    });
    most = Math.max(0.01, ...nodes.slice(1).map((node) => Math.abs(node.after - node.before) || 0));
    focus = current = nodes[0];
    search();
  }

  function colour(node) {
    if (!of) return `var(--${node.phase ? "phase" : node.layer})`;
    const change = node.after - node.before, part = Math.min(1, Math.abs(change) / most);
    return `color-mix(in srgb, var(--${change > 0 ? "worse" : "better"}) ${Math.round(100 * part)}%, var(--phase))`;
  }

  function describe(node) {
    if (of) {
      const change = `before ${points(node.before)}, after ${points(node.after)} of ${of}: ${signed(node.after - node.before)}`;
      return [node.phase ? `phase ${node.label}` : node.label, node.module, change].filter(Boolean);
    }
    const layer = trees.titles[node.layer] || node.layer;
    const mostly = node.part > 0.995 ? layer : `${layer} (${Math.round(100 * node.part)} % of it)`;
    const what = node.phase ? `phase ${node.label}` : node.label;
    return [what, node.module, extent(node.s), mostly].filter(Boolean);
  }

  function cell(node) {
    const div = document.createElement("div");
    const above = within(focus, node) && node !== focus;
    const left = above ? 0 : (node.x - focus.x) / focus.s, width = above ? 1 : node.s / focus.s;
    div.style.left = `${100 * left}%`;
    div.style.width = `${100 * width}%`;
    div.style.top = `${ROW * node.depth}px`;
    div.style.setProperty("--c", colour(node));
    div.textContent = width * graph.clientWidth > 24 ? node.label : "";
    div.className = [node.phase && "phase", above && "above", node.hit && "hit", width * graph.clientWidth < 9 && "thin"].filter(Boolean).join(" ");
    div.tabIndex = node === current ? 0 : -1;
    div.setAttribute("role", "treeitem");
    div.setAttribute("aria-level", node.depth + 1);
    div.setAttribute("aria-selected", node === focus);
    div.setAttribute("aria-label", describe(node).join(", "));
    div.node = node;
    return div;
  }

  function draw(keepFocus) {
    const smallest = (1.5 * focus.s) / Math.max(300, graph.clientWidth);
    const shown = nodes.filter((node) => within(focus, node) || (within(node, focus) && node.s >= smallest));
    cells = new Map(shown.map((node) => [node, cell(node)]));
    graph.replaceChildren(...cells.values());
    graph.style.height = `${ROW * (1 + Math.max(...shown.map((node) => node.depth)))}px`;
    reset.disabled = focus === nodes[0] && query.value === "";
    if (keepFocus) cells.get(current).focus({ preventScroll: true });
  }

  function zoom(node, keepFocus) {
    focus = current = node;
    tip.hidden = true;
    draw(keepFocus);
    tell();
  }

  function search() {
    const wanted = query.value.trim().toLowerCase();
    let frames = 0, seconds = 0, covered = 0;
    for (const node of nodes) {
      node.hit = wanted !== "" && `${node.label} ${node.module}`.toLowerCase().includes(wanted);
      if (!node.hit) continue;
      frames += 1;
      // A match below a match is already in its time.
      if (node.index >= covered) [seconds, covered] = [seconds + node.s, node.end];
    }
    graph.classList.toggle("searching", wanted !== "");
    draw(false);
    tell(wanted && `“${query.value.trim()}” matches ${extent(seconds)}, in ${frames} ${frames === 1 ? "frame" : "frames"}.`);
  }

  function tell(text) {
    said.textContent = text || (focus === nodes[0] ? "" : `Zoomed: ${describe(focus).join(" · ")}`);
  }

  function point(node, x, y) {
    tip.textContent = describe(node).join("\n");
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 22 + box.height > innerHeight ? Math.max(8, y - box.height - 10) : y + 22}px`;
  }

  function move(node) {
    if (!node || !cells.has(node)) return;
    cells.get(current)?.setAttribute("tabindex", "-1");
    current = node;
    const div = cells.get(node);
    div.tabIndex = 0;
    div.focus();
    const box = div.getBoundingClientRect();
    point(node, Math.max(0, box.left), box.top);
  }

  graph.addEventListener("click", (event) => event.target.node && zoom(event.target.node, true));
  graph.addEventListener("pointermove", (event) => {
    if (event.target.node) point(event.target.node, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  graph.addEventListener("pointerleave", () => { tip.hidden = true; });
  graph.addEventListener("focusout", () => { tip.hidden = true; });
  graph.addEventListener("keydown", (event) => {
    const beside = (step) => current.parent && current.parent.children[current.parent.children.indexOf(current) + step];
    const act = {
      ArrowDown: () => move(within(focus, current) && current !== focus ? current.children.find((child) => within(focus, child)) : current.children[0]),
      ArrowUp: () => move(current.parent),
      ArrowLeft: () => move(beside(-1)),
      ArrowRight: () => move(beside(1)),
      Home: () => move(nodes[0]),
      Enter: () => zoom(current, true),
      " ": () => zoom(current, true),
      Escape: () => zoom(nodes[0], true),
      "/": () => query.focus(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  reset.addEventListener("click", () => { query.value = ""; focus = current = nodes[0]; search(); });
  query.addEventListener("input", search);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { query.value = ""; search(); }
    if (event.key === "Enter") {
      const hit = nodes.find((node) => node.hit);
      if (hit) zoom(hit, true);
    }
  });
  tool.addEventListener("change", () => read(trees.tools[tool.value]));
  let width = graph.clientWidth;
  addEventListener("resize", () => {
    if (graph.clientWidth !== width) { width = graph.clientWidth; draw(false); }
  });
  read(trees.tools[tool.value]);
})();
