"use strict";
// Who calls whom. data: {unit, names, own, weight, edges: [from, to, count, ...], left_out}: own and weight of each name: hits
// of its own, and with what it calls; edges by numbers of names.
kp.views.callgraph = (place, data) => {
  const HIGH = 38, MOST = 22, FEW = 24, READABLE = .8;
  let test = null, picked = -1, drawn = "", bounds, at = d3.zoomIdentity;
  // a graph of few functions can be read at once: the heaviest ones, which come first
  const sizes = [FEW, 2 * FEW, data.names.length].filter((n, i, all) => i === 2 || n < data.names.length - 4), total = data.names.length + data.left_out;
  let most = sizes[0];
  const picker = kp.choice("How many functions", sizes.map((n) => n === total ? `all ${kp.number(n)} functions` : `${n} heaviest of ${kp.number(total)} functions`),
    (n) => { most = sizes[n]; drawn = ""; draw(); });
  const said = kp.el("span", {className: "said", role: "status"});
  const input = kp.search((found) => { test = found; mark(); }, "Search functions");
  const fits = kp.el("button", {type: "button", title: "Show all (Esc)", onclick: () => fitAll()}, "Show all");
  const near = (by) => surface.call(zoom.scaleBy, by);
  const tools = kp.el("div", {className: "tools"}, ...(sizes.length > 1 || data.left_out ? [picker] : []), input, kp.el("button", {type: "button", title: "Nearer (+)", onclick: () => near(1.4)}, "+"),
    kp.el("button", {type: "button", title: "Farther (-)", onclick: () => near(1 / 1.4)}, "−"), fits, said);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), details = kp.el("div", {className: "details", role: "status", ariaLive: "polite"});
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "Call graph");
  svg.style.display = "block";
  svg.style.touchAction = "pan-y";
  place.append(tools, kp.el("div", {className: "panel"}, svg), details);
  const rest = "Drag to move, Ctrl and the wheel (or two fingers) to zoom; click a function for its callers. Redder: more of its own.";
  const zoom = d3.zoom().scaleExtent([.05, 4]).filter((event) => event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button)
    .on("zoom", (event) => { at = event.transform; svg.firstChild && svg.querySelector("g").setAttribute("transform", event.transform); });
  const surface = d3.select(svg).call(zoom).on("dblclick.zoom", null);
  const made = (tag, props, ...inner) => {
    const each = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(props)) each.setAttribute(name, value);
    each.append(...inner);
    return each;
  };
  const measure = document.createElement("canvas").getContext("2d");
  measure.font = kp.FONT;
  const nodes = [], lines = [];
  let whole = Math.max(...data.own, 1), sum = data.own.reduce((a, b) => a + b, 0) || 1;

  const edges = [];
  for (let i = 0; i < data.edges.length; i += 3) edges.push(data.edges.slice(i, i + 3));
  const lay = () => {
    const graph = new dagre.Graph();
    graph.setGraph({rankdir: place.clientWidth < 640 ? "TB" : "LR", nodesep: 14, ranksep: 64, marginx: 12, marginy: 12});
    graph.setDefaultEdgeLabel(() => ({}));
    data.names.slice(0, most).forEach((name, n) => {
      const text = kp.label(measure, name, 190), numbers = kp.amount(data.own[n], data.unit);
      graph.setNode(String(n), {width: Math.max(measure.measureText(text).width, measure.measureText(numbers).width) + MOST, height: HIGH, text, numbers});
    });
    for (const [from, to, count] of edges) if (from !== to && from < most && to < most) graph.setEdge(String(from), String(to), {count});
    dagre.layout(graph);
    return graph;
  };
  const build = () => {
    const graph = lay(), group = made("g", {}), dark = kp.isDark(), muted = kp.color("--muted"), heaviest = Math.max(...edges.map((each) => each[2]), 1);
    nodes.length = lines.length = 0;
    svg.replaceChildren(made("defs", {}, made("marker", {id: "tip-of-edge", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"},
      made("path", {d: "M0 0 8 4 0 8z", fill: muted}))), group);
    for (const edge of graph.edges()) {
      const {points, count} = graph.edge(edge), strength = Math.log(count + 1) / Math.log(heaviest + 1);
      const d = points.length < 3 ? `M${points.map((p) => `${p.x} ${p.y}`).join("L")}`
        : `M${points[0].x} ${points[0].y}` + points.slice(1, -1).map((p, i) => {
          const next = i === points.length - 3 ? points[points.length - 1] : {x: (p.x + points[i + 2].x) / 2, y: (p.y + points[i + 2].y) / 2};
          return `Q${p.x} ${p.y} ${next.x} ${next.y}`;
        }).join("");
      const line = made("path", {d, fill: "none", stroke: muted, "stroke-width": .8 + 3.2 * strength, "stroke-opacity": .75, "marker-end": "url(#tip-of-edge)"});
      line.addEventListener("mousemove", (event) => kp.point(event, `${data.names[edge.v]} → ${data.names[edge.w]}`, [kp.amount(count, "calls")]));
      line.addEventListener("mouseleave", () => kp.point(null));
      lines.push([+edge.v, +edge.w, line]);
      group.append(line);
    }
    for (const name of graph.nodes()) {
      const n = +name, {x, y, width, height, text, numbers} = graph.node(name), strength = Math.sqrt(data.own[n] / whole);
      const paint = dark ? `hsl(${40 - 32 * strength} ${12 + 46 * strength}% ${24 + 12 * strength}%)` : `hsl(${46 - 34 * strength} ${40 + 48 * strength}% ${95 - 24 * strength}%)`;
      const box = made("g", {tabindex: "0", role: "button", "aria-label": `${data.names[n]}, ${numbers}`, transform: `translate(${x - width / 2} ${y - height / 2})`, style: "cursor:pointer"},
        made("rect", {width, height, rx: 6, fill: paint, stroke: kp.color("--line")}),
        made("text", {x: width / 2, y: 15, "text-anchor": "middle"}, text),
        made("text", {x: width / 2, y: 30, "text-anchor": "middle", style: "opacity:.8;font-size:11px"}, numbers));
      box.addEventListener("click", () => pick(n));
      box.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { pick(n); event.preventDefault(); event.stopPropagation(); } });
      box.addEventListener("mousemove", (event) => kp.point(event, data.names[n], [numbers + ` of its own, ${kp.percent(data.own[n], sum)}`, `${kp.amount(data.weight[n], data.unit)} with what it calls`, ...self(n)]));
      box.addEventListener("mouseleave", () => kp.point(null));
      nodes[n] = box;
      group.append(box);
    }
    bounds = graph.graph();
    // where a reader begins: the function with the most of its own
    const first = data.own.slice(0, most).reduce((best, own, n) => own > data.own[best] ? n : best, 0);
    start = data.names.length ? graph.node(String(first)) : {x: 0, y: 0};
    place.dataset.drawn = Math.min(most, data.names.length);
    mark();
  };
  const self = (n) => edges.filter(([from, to]) => from === n && to === n).map(([, , count]) => `calls itself ${kp.number(count)} times`);
  let start;
  // least: the scale below which it does not go, but shows a part
  const fitAll = (least = 0) => {
    picked = -1; mark();
    details.textContent = rest;
    const wide = place.clientWidth - 2, high = svg.clientHeight, w = bounds.width || 1, h = bounds.height || 1;
    const k = Math.max(Math.min(wide / w, high / h, 1), least);
    const shift = (room, size, middle) => size * k <= room ? (room - size * k) / 2 : Math.min(0, Math.max(room - size * k, room / 2 - middle * k));
    surface.call(zoom.transform, d3.zoomIdentity.translate(shift(wide, w, start.x), shift(high, h, start.y)).scale(k));
  };
  const pick = (n) => {
    picked = n;
    const by = (way) => edges.filter((each) => each[1 - way] === n && each[way] !== n).sort((a, b) => b[2] - a[2]).slice(0, 12).map((each) => `${kp.brief(data.names[each[way]])} (${kp.number(each[2])})`).join(", ");
    kp.details(details, data.names[n], [["of its own", kp.amount(data.own[n], data.unit)], ["with what it calls", kp.amount(data.weight[n], data.unit)], ["called by", by(0)], ["calls", by(1)], ["itself", self(n).join("")]]);
    mark();
  };
  const mark = () => {
    let count = 0;
    const near = new Set([picked, ...edges.filter((each) => each[0] === picked || each[1] === picked).flatMap((each) => each.slice(0, 2))]);
    nodes.forEach((box, n) => {
      const hit = test && test(data.names[n]);
      count += hit ? 1 : 0;
      box.style.opacity = (test && !hit) || (picked >= 0 && !near.has(n)) ? .28 : 1;
      box.firstChild.style.stroke = hit ? kp.color("--mark") : n === picked ? kp.color("--accent") : kp.color("--line");
      box.firstChild.style.strokeWidth = hit || n === picked ? 2.5 : 1;
    });
    lines.forEach(([from, to, line]) => { line.style.opacity = picked < 0 ? (test ? .4 : 1) : from === picked || to === picked ? 1 : .12; });
    const others = test ? data.names.slice(most).filter(test).length : 0;
    said.textContent = !test ? "" : `${count || "nothing"} found${others ? `, ${others} among functions that are not shown` : ""}`;
  };
  const draw = () => {
    const wide = place.clientWidth - 2, high = Math.max(280, innerHeight - 290), now = `${wide} ${high} ${kp.isDark()}`;
    if (now === drawn) return;
    drawn = now;
    svg.setAttribute("width", wide); svg.setAttribute("height", high);
    build(); fitAll(READABLE);
  };
  const key = (event) => {
    const way = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]}[event.key];
    if (way) surface.call(zoom.translateBy, way[0] / at.k, way[1] / at.k);
    else if (event.key === "+" || event.key === "=") near(1.4);
    else if (event.key === "-") near(1 / 1.4);
    else if (event.key === "Escape") { input.value = ""; test = null; fitAll(); }
    else return false;
    return true;
  };
  return {draw, key, keys: [["/", "search functions"], ["Tab, Enter", "to a function, its callers"], ["arrows", "move"], ["+, -", "nearer, farther"], ["Esc", "show all"]]};
};
