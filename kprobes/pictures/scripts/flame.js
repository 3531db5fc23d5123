"use strict";
// A flame graph. data: {trees: [{label, unit, names, name, depth, self, before?}]}: each tree's frames from the root's
// children on, callers before what they call; self: weight without what is called; before: the same of another recording.
kp.views.flame = (place, data) => {
  const ROW = 20, trees = data.trees;
  let chosen = 0, reversed = false, flipped = false, byBefore = false, test = null;
  let tree, focus = 0, top = 0, trail = [];

  const input = kp.search((found) => { test = found; mark(); draw(); }, "Search frames");
  const said = kp.el("span", {className: "said", role: "status"});
  const picker = kp.choice("What is counted", trees.map((each) => each.label), (n) => { chosen = n; build(); draw(); });
  const reverse = kp.toggle("Reverse", "Begin with the innermost functions (r)", (on) => { reversed = on; build(); draw(); });
  const flip = kp.toggle("Upside down", "The outermost function at the bottom (u)", (on) => { flipped = on; draw(); });
  const old = kp.toggle("Widths of before", "Widths are those of the recording before (b)", (on) => { byBefore = on; build(); draw(); });
  const reset = kp.el("button", {type: "button", title: "Show all (Esc)", onclick: () => zoom(0)}, "Show all");
  const legend = kp.el("ul", {className: "legend"});
  const scroll = kp.el("div", {className: "scroll", tabIndex: -1}), spacer = kp.el("div");
  const canvas = kp.el("canvas", {tabIndex: 0, role: "application"});
  const details = kp.el("div", {className: "details", role: "status", ariaLive: "polite"});
  const rows = kp.el("div");
  scroll.append(canvas, spacer);
  place.append(kp.el("div", {className: "tools"}, ...(trees.length > 1 ? [picker] : []), input, reverse, flip,
    ...(trees.some((each) => each.before) ? [old] : []), reset, said), legend, kp.el("div", {className: "panel"}, scroll), details, rows);

  // Columns of a tree, the root included: parent, end (behind its last descendant), total and before of it and below.
  const columns = (given) => {
    const count = given.name.length + 1, compares = Boolean(given.before);
    const out = {unit: given.unit, compares, count, names: given.names, name: new Int32Array(count), depth: new Int32Array(count),
      parent: new Int32Array(count), end: new Int32Array(count), self: new Float64Array(count), total: new Float64Array(count),
      was: new Float64Array(count), wasTotal: new Float64Array(count), x: new Float64Array(count), deepest: 0};
    out.name[0] = -1;
    const open = [0];
    for (let n = 1; n < count; n++) {
      const depth = given.depth[n - 1] + 1;
      while (open.length > depth) out.end[open.pop()] = n;
      out.name[n] = given.name[n - 1];
      out.depth[n] = depth;
      out.parent[n] = open[open.length - 1];
      out.self[n] = out.total[n] = given.self[n - 1];
      out.was[n] = out.wasTotal[n] = compares ? given.before[n - 1] : 0;
      out.deepest = Math.max(out.deepest, depth);
      open.push(n);
    }
    while (open.length) out.end[open.pop()] = count;
    for (let n = count - 1; n > 0; n--) {
      out.total[out.parent[n]] += out.total[n];
      out.wasTotal[out.parent[n]] += out.wasTotal[n];
    }
    const weight = byBefore && compares ? out.wasTotal : out.total, next = new Float64Array(count);
    out.weight = weight;
    for (let n = 1; n < count; n++) {
      const parent = out.parent[n];
      out.x[n] = out.x[parent] + next[parent];
      next[parent] += weight[n];
    }
    return out;
  };

  // The same stacks, innermost first.
  const backwards = (given) => {
    const all = columns(given), inner = [new Map()], name = [-1], self = [0], was = [0];
    for (let n = 1; n < all.count; n++) {
      if (!all.self[n] && !all.was[n]) continue;
      let at = 0;
      for (let frame = n; frame > 0; frame = all.parent[frame]) {
        let to = inner[at].get(all.name[frame]);
        if (to === undefined) {
          to = name.push(all.name[frame]) - 1;
          inner[at].set(all.name[frame], to);
          inner.push(new Map()); self.push(0); was.push(0);
        }
        at = to;
      }
      self[at] += all.self[n]; was[at] += all.was[n];
    }
    const out = {...given, name: [], depth: [], self: [], before: given.before && []}, todo = [[0, -1]];
    while (todo.length) {
      const [at, depth] = todo.pop();
      if (at) { out.name.push(name[at]); out.depth.push(depth); out.self.push(self[at]); if (out.before) out.before.push(was[at]); }
      for (const to of [...inner[at].values()].reverse()) todo.push([to, depth + 1]);
    }
    return out;
  };

  const label = (n) => n ? tree.names[tree.name[n]] : "all";
  const made = new Map();
  const build = () => {
    const which = `${chosen} ${reversed} ${byBefore}`;
    if (!made.has(which)) made.set(which, columns(reversed ? backwards(trees[chosen]) : trees[chosen]));
    tree = made.get(which);
    focus = top = 0; trail = [];
    canvas.setAttribute("aria-label", `Flame graph: ${trees[chosen].label}. Arrow keys move, Enter zooms, Escape shows all.`);
    legend.replaceChildren(...(tree.compares
      ? [["hsl(4 72% 62%)", "more than before"], ["hsl(212 66% 62%)", "less"], ["hsl(0 0% 75%)", "the same"]]
      : [["hsl(28 85% 74%)", "a function; width: " + tree.unit + " of it and what it calls"], ["var(--mark)", "found"]])
      .map(([paint, words]) => kp.el("li", {}, Object.assign(kp.el("i"), {style: `background:${paint}`}), words)));
    mark(); functions(); tell();
  };

  // Functions by name: a table for who reads, and where canvases are not seen.
  const functions = () => {
    const found = new Map(), open = new Map();
    const leave = [];
    for (let n = 1; n < tree.count; n++) {
      while (leave.length && tree.end[leave[leave.length - 1]] <= n) {
        const name = tree.name[leave.pop()];
        open.set(name, open.get(name) - 1);
      }
      const name = tree.name[n];
      let row = found.get(name);
      if (!row) found.set(name, row = {name: tree.names[name], self: 0, total: 0, was: 0});
      row.self += tree.self[n];
      if (!open.get(name)) { row.total += tree.total[n]; row.was += tree.wasTotal[n]; }
      open.set(name, (open.get(name) || 0) + 1);
      leave.push(n);
    }
    const whole = tree.total[0], unit = tree.unit;
    const heads = [["function", false, (row) => row.name, (row) => kp.brief(row.name, 90)],
      ["self", true, (row) => row.self, (row) => kp.amount(row.self, unit === "ns" ? unit : "")],
      ["with callees", true, (row) => row.total, (row) => kp.amount(row.total, unit === "ns" ? unit : "")],
      ["share", true, (row) => row.total, (row) => kp.percent(row.total, whole)]];
    if (tree.compares) heads.push(["before", true, (row) => row.was, (row) => kp.amount(row.was, unit === "ns" ? unit : "")],
      ["change", true, (row) => Math.abs(row.total - row.was), (row) => (row.total >= row.was ? "+" : "−") + kp.amount(Math.abs(row.total - row.was), unit === "ns" ? unit : "")]);
    rows.replaceChildren(kp.table(heads, [...found.values()], reversed ? 2 : tree.compares ? 5 : 1,
      (row) => { input.value = row.name; input.dispatchEvent(new Event("input")); scroll.scrollIntoView({block: "nearest"}); }));
  };

  let hits = null;
  const mark = () => {
    hits = null;
    said.textContent = "";
    if (!test) return;
    const named = tree.names.map((name) => test(name));
    hits = new Uint8Array(tree.count);
    let weight = 0, count = 0;
    for (let n = 1, until = 0; n < tree.count; n++) {
      if (!named[tree.name[n]]) continue;
      hits[n] = 1; count++;
      if (n >= until) { weight += tree.weight[n]; until = tree.end[n]; }
    }
    said.textContent = count ? `${kp.number(count)} frame${count === 1 ? "" : "s"}, ${kp.percent(weight, tree.weight[0])} of ${tree.unit}` : "nothing found";
  };

  const change = (n) => {  // of its share of all, from -1 to 1
    const now = tree.total[n] / (tree.total[0] || 1), was = tree.wasTotal[n] / (tree.wasTotal[0] || 1);
    return now + was ? (now - was) / Math.max(now, was) : 0;
  };
  const paint = (n, dark) => {
    if (!n) return dark ? "#3a4249" : "#d9dee3";
    if (!tree.compares) return kp.warm(label(n), dark);
    const by = change(n), strength = Math.min(1, Math.abs(by) * 1.15);
    if (strength < .02) return dark ? "hsl(210 4% 34%)" : "hsl(210 6% 86%)";
    const hue = by > 0 ? 4 : 212;
    return dark ? `hsl(${hue} ${10 + 46 * strength}% ${34 + 4 * strength}%)` : `hsl(${hue} ${20 + 62 * strength}% ${88 - 20 * strength}%)`;
  };

  let boxes = [], wide = 0, high = 0;
  const draw = () => {
    if (!tree) build();
    wide = place.clientWidth - 2;
    const whole = (tree.deepest + 1) * ROW + 2, most = Math.max(180, innerHeight - 300);
    high = Math.min(whole, most);
    scroll.style.height = `${high}px`;
    spacer.style.height = `${Math.max(0, whole - high)}px`;
    const g = kp.canvas(canvas, wide, high), dark = kp.isDark();
    const ink = kp.color("--frame-ink"), marked = kp.color("--mark"), accent = kp.color("--accent"), muted = kp.color("--muted");
    const from = tree.x[top], span = tree.weight[top] || 1, scale = wide / span, y0 = scroll.scrollTop;
    boxes = [];
    const y = (depth) => flipped ? whole - (depth + 1) * ROW - y0 : depth * ROW - y0;
    const box = (n, x, w) => {
      const at = y(tree.depth[n]), above = n !== top && n < top;
      if (at < -ROW || at > high) return;
      boxes.push([x, at, w, n]);
      g.globalAlpha = above ? .55 : hits && !hits[n] ? .35 : 1;
      g.fillStyle = hits && hits[n] ? marked : paint(n, dark);
      g.fillRect(x, at + 1, Math.max(w - (w > 3 ? 1 : 0), .5), ROW - 1);
      g.globalAlpha = above ? .8 : 1;
      const text = w > 22 ? kp.label(g, label(n), w - 9) : "";
      if (text) { g.fillStyle = hits && hits[n] ? (dark ? "#1b0412" : "#fff") : ink; g.fillText(text, x + 4, at + ROW / 2 + 1); }
      g.globalAlpha = 1;
      if (n === focus && document.activeElement === canvas) { g.strokeStyle = accent; g.lineWidth = 2; g.strokeRect(x + 1, at + 2, Math.max(w - 3, 1), ROW - 3); }
    };
    for (let n = top; n; n = tree.parent[n]) if (n !== top) box(n, 0, wide);
    if (top) box(0, 0, wide);
    const last = new Float64Array(tree.deepest + 1).fill(-1);  // what is narrower than half a pixel is drawn once
    for (let n = top; n < tree.end[top];) {
      const x = (tree.x[n] - from) * scale, w = tree.weight[n] * scale;
      if (w < .5 && Math.floor(x * 2) <= last[tree.depth[n]]) { n = tree.end[n]; continue; }
      last[tree.depth[n]] = Math.floor(x * 2);
      if (w > 0) box(n, x, w);
      if (w < .25) n = tree.end[n]; else n++;
    }
    if (!tree.total[0] && !tree.wasTotal[0]) { g.fillStyle = muted; g.fillText("nothing was recorded", 8, ROW * 1.5); }
    place.dataset.drawn = boxes.length;
  };

  const lines = (n) => [
    `${kp.amount(tree.total[n], tree.unit)}, ${kp.percent(tree.total[n], tree.total[0])} of all`,
    tree.self[n] ? `of its own: ${kp.amount(tree.self[n], tree.unit)}` : "",
    tree.compares ? `before: ${kp.amount(tree.wasTotal[n], tree.unit)}, ${kp.percent(tree.wasTotal[n], tree.wasTotal[0])}` : ""];
  const path = (n) => { const out = []; for (; n > 0; n = tree.parent[n]) out.push(label(n)); return out.reverse(); };
  const tell = () => {
    if (focus) kp.details(details, label(focus), [[tree.unit, lines(focus).filter(Boolean).join("; ")], [reversed ? "calls" : "called by", path(tree.parent[focus]).map((name) => kp.brief(name)).join(" › ")]]);
    else details.replaceChildren("Click a frame to zoom into it; pointing at one shows its numbers.");
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    for (let n = boxes.length - 1; n >= 0; n--) {
      const [left, upper, w] = boxes[n];
      if (y >= upper && y < upper + ROW && x >= left - 1 && x <= left + Math.max(w, 2)) return boxes[n][3];
    }
    return -1;
  };
  const zoom = (n) => { top = focus = n; tell(); draw(); };
  canvas.addEventListener("mousemove", (event) => {
    const n = at(event);
    canvas.style.cursor = n >= 0 ? "pointer" : "default";
    kp.point(event, n >= 0 ? label(n) : "", n >= 0 ? lines(n) : []);
  });
  canvas.addEventListener("mouseleave", () => kp.point(null));
  canvas.addEventListener("click", (event) => { const n = at(event); if (n >= 0) zoom(n); kp.point(null); });
  canvas.addEventListener("focus", () => draw());
  canvas.addEventListener("blur", () => draw());
  scroll.addEventListener("scroll", () => draw());

  const visible = () => {
    const y = flipped ? (tree.deepest - tree.depth[focus]) * ROW : tree.depth[focus] * ROW;
    if (y < scroll.scrollTop) scroll.scrollTop = y;
    else if (y + ROW > scroll.scrollTop + high) scroll.scrollTop = y + ROW - high;
  };
  const heaviest = (from, to, parent) => {
    let best = -1;
    for (let n = from; n < to; n = tree.end[n]) if (tree.parent[n] === parent && (best < 0 || tree.weight[n] > tree.weight[best])) best = n;
    return best;
  };
  const beside = (n, by) => {
    if (!n) return -1;
    const parent = tree.parent[n];
    if (by > 0) return tree.end[n] < tree.end[parent] ? tree.end[n] : -1;
    let before = -1;
    for (let each = parent + 1; each < n; each = tree.end[each]) before = each;
    return before;
  };
  const key = (event) => {
    const moves = {ArrowUp: flipped ? "in" : "out", ArrowDown: flipped ? "out" : "in", ArrowLeft: "left", ArrowRight: "right"};
    const way = moves[event.key];
    if (way) {
      const to = way === "out" ? (focus ? tree.parent[focus] : -1) : way === "in" ? heaviest(focus + 1, tree.end[focus], focus) : beside(focus, way === "right" ? 1 : -1);
      if (to >= 0) focus = to;
      canvas.focus({preventScroll: true});
      visible(); tell(); draw();
    } else if (event.key === "Enter" && event.target === canvas) zoom(focus);
    else if (event.key === "Escape") { input.value = ""; test = null; mark(); zoom(0); }
    else if (event.key === "r") reverse.click();
    else if (event.key === "u") flip.click();
    else if (event.key === "b" && tree.compares) old.click();
    else return false;
    return true;
  };
  return {draw, key, keys: [["/", "search: text, or /regular expression/"], ["arrows", "move among frames"], ["Enter", "zoom into a frame"],
    ["Esc", "show all"], ["r", "reverse: innermost functions first"], ["u", "upside down"], ["b", "widths of the recording before"]]};
};
