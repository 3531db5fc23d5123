"use strict";
// How long calls took, over time. data: {unit, begin, end, per, functions: [{name, cells: [x, y, count, ...]}], columns}: a
// cell is column x of `columns` between begin and end; y is a power of 2 ** (1 / per) of the unit.
kp.views.heat = (place, data) => {
  const LEFT = 74, BOTTOM = 42, TOP = 8;
  let chosen = 0, cells = new Map(), low = 0, high = 1, most = 1, cursor = null, geometry;
  const all = {name: "all functions", cells: data.functions.flatMap((each) => each.cells)};
  const options = data.functions.length > 1 ? [all, ...data.functions] : data.functions;
  const picker = kp.choice("Function", options.map((each) => kp.brief(each.name)), (n) => { chosen = n; gather(); draw(); });
  const bar = kp.el("canvas", {ariaHidden: "true"}), scale = kp.el("span", {className: "said"});
  const canvas = kp.el("canvas", {tabIndex: 0, role: "application", ariaLabel: "Heat map of how long calls took over time. Arrow keys move among cells."});
  const details = kp.el("div", {className: "details", role: "status", ariaLive: "polite"});
  place.append(kp.el("div", {className: "tools"}, picker, bar, scale), kp.el("p", {className: "said"}, "How long calls took, by when they began:"), kp.el("div", {className: "panel"}, canvas), details);

  const gather = () => {
    cells = new Map(); low = Infinity; high = -Infinity; most = 0; cursor = null;
    const given = (options[chosen] || all).cells;
    for (let i = 0; i < given.length; i += 3) {
      const at = given[i] + given[i + 1] * 65536, count = (cells.get(at) || 0) + given[i + 2];
      cells.set(at, count);
      low = Math.min(low, given[i + 1]); high = Math.max(high, given[i + 1]); most = Math.max(most, count);
    }
    if (!cells.size) { low = 0; high = 1; }
    details.textContent = cells.size ? "Point at a cell for its numbers." : "";
  };
  const value = (y) => y <= 0 ? 0 : 2 ** ((y - 1) / data.per);
  // few calls: dark, but not as dark as a dark page
  let tones = [];
  const mix = () => { const least = kp.isDark() ? .3 : .06; tones = Array.from({length: 65}, (_, n) => d3.interpolateViridis(least + (.97 - least) * n / 64)); };
  const tone = (share) => tones[Math.round(64 * share)];
  const shade = (count) => tone(most <= 1 ? .7 : Math.log(count) / Math.log(most));
  const draw = () => {
    mix();
    const wide = place.clientWidth - 2, tall = Math.max(260, Math.min(460, innerHeight - 300));
    const g = kp.canvas(canvas, wide, tall), muted = kp.color("--muted"), line = kp.color("--line"), left = wide < 500 ? 60 : LEFT;
    const w = wide - left - 12, h = tall - TOP - BOTTOM, count = high - low + 1, cw = w / data.columns, ch = h / count;
    geometry = {left, w, h, cw, ch};
    g.fillStyle = muted;
    const marks = kp.powers(value(low), value(high + 1), Math.floor(h / 30)).map((each) => [1 + Math.log2(each) * data.per, each]);
    for (const [y, each] of [...low <= 0 ? [[0, 0]] : [], ...marks.length ? marks : [[low, +value(low).toPrecision(2)]]]) {
      const at = TOP + h - (y - low) * ch, words = kp.amount(each, data.unit);
      g.fillStyle = line; g.fillRect(left, Math.round(at), w, 1);
      g.fillStyle = muted; g.textAlign = "right"; g.fillText(kp.fit(g, words, left - 8), left - 6, Math.min(Math.max(at, 8), tall - BOTTOM));
    }
    g.textAlign = "center";
    for (const [at, words] of kp.ticks(0, data.end - data.begin, Math.max(2, Math.floor(w / 120)), data.unit)) {
      const x = left + at / (data.end - data.begin || 1) * w;
      g.fillStyle = line; g.fillRect(Math.round(x), TOP, 1, h + 4);
      g.fillStyle = muted; g.fillText(words, Math.min(Math.max(x, left + 14), wide - 24), TOP + h + 14);
    }
    g.fillText(`when a call began (${data.unit === "ns" ? "time" : data.unit} after the first)`, left + w / 2, tall - 10);
    g.textAlign = "left";
    for (const [at, n] of cells) {
      const x = at % 65536, y = Math.floor(at / 65536);
      g.fillStyle = shade(n);
      g.fillRect(left + x * cw, TOP + h - (y - low + 1) * ch, Math.max(cw - (cw > 4 ? .5 : 0), 1), Math.max(ch - (ch > 4 ? .5 : 0), 1));
    }
    if (cursor) { g.strokeStyle = kp.color("--mark"); g.lineWidth = 2; g.strokeRect(left + cursor[0] * cw, TOP + h - (cursor[1] - low + 1) * ch, Math.max(cw, 3), ch); }
    const b = kp.canvas(bar, 120, 14);
    for (let x = 0; x < 120; x++) { b.fillStyle = tone(x / 119); b.fillRect(x, 1, 1, 12); }
    scale.textContent = most <= 1 ? "1 call a cell" : `1 … ${kp.number(most)} calls a cell`;
    if (!cells.size) { g.fillStyle = muted; g.fillText("no call has both an entry and a return here", left + 8, TOP + 20); }
    place.dataset.drawn = cells.size;
  };
  const words = ([x, y]) => {
    const span = (data.end - data.begin) / data.columns, n = cells.get(x + y * 65536) || 0;
    return [`${kp.number(n)} call${n === 1 ? "" : "s"}`, `took ${kp.amount(+value(y).toPrecision(3), data.unit)} to ${kp.amount(+value(y + 1).toPrecision(3), data.unit)}`,
      `began ${kp.amount(Math.round(x * span), data.unit)} to ${kp.amount(Math.round((x + 1) * span), data.unit)} after the first`];
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect(), x = Math.floor((event.clientX - box.left - geometry.left) / geometry.cw), y = low + Math.floor((TOP + geometry.h - event.clientY + box.top) / geometry.ch);
    return x >= 0 && x < data.columns && y >= low && y <= high ? [x, y] : null;
  };
  canvas.addEventListener("mousemove", (event) => { const cell = under(event), [head, ...more] = cell ? words(cell) : [""]; kp.point(event, head, more); });
  canvas.addEventListener("mouseleave", () => kp.point(null));
  canvas.addEventListener("click", (event) => { cursor = under(event); if (cursor) details.textContent = words(cursor).join(", "); draw(); });
  const key = (event) => {
    const way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (!way) return false;
    cursor = cursor ? [Math.min(Math.max(cursor[0] + way[0], 0), data.columns - 1), Math.min(Math.max(cursor[1] + way[1], low), high)] : [0, low];
    details.textContent = words(cursor).join(", ");
    draw();
    return true;
  };
  gather();
  return {draw, key, keys: [["arrows", "move among cells"]]};
};
