"use strict";
// Calls by task on a line of time. data: {unit, begin, end, names, texts, tasks: [name], task, depth, name, start, length,
// args, kind}: columns of slices by task, depth and start; start counts from begin; length -1: it has not returned;
// kind 1: an instant; args: a number of `texts`.
kp.views.timeline = (place, data) => {
  const ROW = 18, HEAD = 22, AXIS = 26, count = data.start.length, whole = Math.max(data.end - data.begin, 1);
  // rows: of each task, by depth: first and last slice
  const lanes = [];
  let y = 0;
  const byTask = new Map();
  for (let n = 0; n < count; n++) {
    const task = data.task[n];
    let lane = byTask.get(task);
    if (!lane) { byTask.set(task, lane = {task, rows: [], count: 0}); lanes.push(lane); }
    const depth = data.depth[n];
    (lane.rows[depth] = lane.rows[depth] || []).push(n);
    lane.count++;
  }
  lanes.forEach((lane) => {
    lane.rows = Array.from(lane.rows, (row) => row || []);
    lane.y = y;
    y += HEAD + lane.rows.length * ROW + 6;
  });
  const full = y;
  const length = (n) => data.length[n] < 0 ? whole - data.start[n] : data.length[n];

  let transform = d3.zoomIdentity, test = null, found = [], at = -1, picked = -1, wide = 0, high = 0;
  const input = kp.search((given) => { test = given; seek(); draw(); }, "Search calls");
  const said = kp.el("span", {className: "said", role: "status"});
  const step = (by) => { if (found.length) { at = (at + by + found.length) % found.length; show(found[at]); seen(); } };
  const button = (words, title, done) => kp.el("button", {type: "button", title, onclick: done}, words);
  const tools = kp.el("div", {className: "tools"}, input, button("‹", "Previous found (p)", () => step(-1)), button("›", "Next found (n)", () => step(1)),
    button("+", "Nearer (+)", () => scaleBy(2)), button("−", "Farther (-)", () => scaleBy(.5)), button("Show all", "Esc", () => move(d3.zoomIdentity)), said);
  const scroll = kp.el("div", {className: "scroll", tabIndex: -1}), spacer = kp.el("div");
  const canvas = kp.el("canvas", {tabIndex: 0, role: "application", ariaLabel: "Timeline of calls by task. Arrow keys move and zoom, n and p go to what was found, Tab leaves."});
  const details = kp.el("div", {className: "details", role: "status", ariaLive: "polite"});
  scroll.append(canvas, spacer);
  place.append(tools, kp.el("div", {className: "panel"}, scroll), details);
  const rest = "Drag to move, Ctrl and the wheel (or two fingers) to zoom; click a call for its arguments.";
  details.textContent = rest;

  // nanoseconds, or what the unit is, of a pixel and back
  const domain = () => {
    const per = whole / Math.max(wide, 1);
    return [-transform.x / transform.k * per, (wide - transform.x) / transform.k * per];
  };
  const zoom = d3.zoom().scaleExtent([1, Math.max(2, whole * 4)])
    .filter((event) => event.type === "wheel" ? event.ctrlKey || event.metaKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)
      : !event.button && (event.type !== "touchstart" || event.touches.length > 1 || transform.k > 1))
    .wheelDelta((event) => Math.abs(event.deltaX) > Math.abs(event.deltaY) ? 0 : -event.deltaY * (event.deltaMode ? .05 : .004))
    .on("zoom", (event) => { transform = event.transform; draw(); });
  const surface = d3.select(canvas).call(zoom).on("dblclick.zoom", null);
  const move = (to) => surface.call(zoom.transform, to);
  const scaleBy = (by) => surface.call(zoom.scaleBy, by);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) surface.call(zoom.translateBy, -event.deltaX / transform.k, 0);
  }, {passive: true});

  const laneOf = (n) => byTask.get(data.task[n]);
  const show = (n) => {
    picked = n;
    const size = Math.max(length(n) * 3, whole / Math.max(wide, 1) * .02, 1), k = Math.min(whole / size, whole * 4);
    const middle = (data.start[n] + length(n) / 2) / whole * wide;
    if (data.kind[n] === 0 && length(n) > 0) move(d3.zoomIdentity.translate(wide / 2 - middle * k, 0).scale(k));
    else move(d3.zoomIdentity.translate(wide / 2 - middle * transform.k, 0).scale(transform.k));
    const upper = laneOf(n).y + HEAD + data.depth[n] * ROW;
    if (upper < scroll.scrollTop || upper + ROW + AXIS > scroll.scrollTop + high) scroll.scrollTop = upper - high / 2;
    tell(n); draw();
  };
  const seek = () => {
    found = []; at = -1;
    if (test) {
      const named = data.names.map((name) => test(name)), texts = data.texts.map((text) => test(text));
      for (let n = 0; n < count; n++) if (named[data.name[n]] || texts[data.args[n]]) found.push(n);
      found.sort((a, b) => data.start[a] - data.start[b]);
      marks = new Uint8Array(count);
      for (const n of found) marks[n] = 1;
    } else marks = null;
    seen();
  };
  let marks = null;
  const seen = () => { said.textContent = !test ? "" : !found.length ? "nothing found" : at < 0 ? `${kp.number(found.length)} found` : `${kp.number(at + 1)} of ${kp.number(found.length)}`; };

  const lasted = (n) => data.kind[n] ? "" : data.length[n] < 0 ? "has not returned" : kp.amount(data.length[n], data.unit);
  const tell = (n) => kp.details(details, data.names[data.name[n]], [
    ["task", data.tasks[data.task[n]]], ["begins", `${kp.amount(data.start[n], data.unit)} after the first`], ["took", lasted(n)],
    ...data.texts[data.args[n]].split("\n").filter(Boolean).map((line) => {
      const cut = line.indexOf("=");
      return cut < 0 ? ["", line] : [line.slice(0, cut), line.slice(cut + 1)];
    })]);

  let boxes = [];
  const draw = () => {
    wide = place.clientWidth - 2;
    high = Math.min(full + AXIS, Math.max(220, innerHeight - 280));
    scroll.style.height = `${high}px`;
    spacer.style.height = `${Math.max(0, full + AXIS - high)}px`;
    zoom.extent([[0, 0], [wide, high]]).translateExtent([[0, -Infinity], [wide, Infinity]]);
    const g = kp.canvas(canvas, wide, high), dark = kp.isDark(), [from, to] = domain(), scale = wide / (to - from), y0 = scroll.scrollTop - AXIS;
    const ink = kp.color("--frame-ink"), muted = kp.color("--muted"), line = kp.color("--line"), panel = kp.color("--panel");
    const marked = kp.color("--mark"), accent = kp.color("--accent"), text = kp.color("--ink");
    const paints = data.names.map((name) => kp.any(name, dark));
    const ticks = kp.ticks(from, to, Math.max(2, Math.floor(wide / 130)), data.unit);
    g.fillStyle = line;
    for (const [value] of ticks) g.fillRect(Math.round((value - from) * scale), AXIS, 1, high);
    boxes = [];
    for (const lane of lanes) {
      const upper = lane.y - y0;
      if (upper > high || upper + HEAD + lane.rows.length * ROW < 0) continue;
      g.fillStyle = muted;
      g.font = "600 12px system-ui, sans-serif";
      g.fillText(kp.fit(g, `${data.tasks[lane.task]} · ${kp.number(lane.count)}`, wide - 12), 6, upper + HEAD / 2 + 1);
      g.font = kp.FONT;
      g.fillStyle = line;
      if (lane !== lanes[0]) g.fillRect(0, upper - 3, wide, 1);
      lane.rows.forEach((row, depth) => {
        const rowY = upper + HEAD + depth * ROW;
        if (rowY > high || rowY < -ROW) return;
        let low = 0, top = row.length;  // the first that may be seen: at one depth ends are in order, too
        while (low < top) {
          const middle = low + top >> 1;
          if (data.start[row[middle]] + length(row[middle]) < from) low = middle + 1; else top = middle;
        }
        let last = -1;
        for (let i = low; i < row.length; i++) {
          const n = row[i], x = (data.start[n] - from) * scale;
          if (x > wide) break;
          const w = length(n) * scale, hit = marks && marks[n];
          if (x + w < last + .5 && !hit && n !== picked) continue;  // under what is drawn already
          // what is narrower than two pixels fills whole ones: halves of several would be pale
          const begin = Math.max(x, -2), left = w < 2 ? Math.floor(begin) : begin;
          const size = Math.max(w < 2 ? Math.round(w) : Math.min(x + w, wide + 2) - left, 1);
          last = Math.floor(left + size);
          boxes.push([left, rowY, size, n]);
          g.globalAlpha = marks && !hit ? .3 : 1;
          g.fillStyle = hit ? marked : paints[data.name[n]];
          if (data.kind[n]) {  // an instant
            g.fillRect(x - .5, rowY + 2, 2, ROW - 4);
            g.beginPath(); g.arc(x + .5, rowY + ROW / 2, 3, 0, 7); g.fill();
          } else {
            g.fillRect(left, rowY + 1, Math.max(size - (size > 3 ? 1 : 0), 1), ROW - 2);
            if (data.length[n] < 0) { g.fillStyle = muted; g.fillRect(Math.min(x + w, wide) - 3, rowY + 1, 3, ROW - 2); }
          }
          const shown = size > 24 && !data.kind[n] ? kp.label(g, data.names[data.name[n]], size - 8) : "";
          if (shown) { g.fillStyle = hit ? (dark ? "#1b0412" : "#fff") : ink; g.fillText(shown, left + 4, rowY + ROW / 2 + 1); }
          g.globalAlpha = 1;
          if (n === picked) { g.strokeStyle = accent; g.lineWidth = 2; g.strokeRect(left + 1, rowY + 1, Math.max(size - 2, 2), ROW - 2); }
        }
      });
    }
    g.fillStyle = panel; g.fillRect(0, 0, wide, AXIS);
    g.fillStyle = line; g.fillRect(0, AXIS - 1, wide, 1);
    g.fillStyle = muted;
    for (const [value, words] of ticks) {
      const x = (value - from) * scale, w = kp.width(g, words);
      if (x - w / 2 > -1 && x + w / 2 < wide) g.fillText(words, x - w / 2, AXIS / 2);
      else if (x >= 0 && x < 4) g.fillText(words, 4, AXIS / 2);
    }
    if (!count) { g.fillStyle = text; g.fillText("nothing was recorded", 8, AXIS + ROW); }
    place.dataset.drawn = boxes.length;
  };

  const under = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1;
    if (y > AXIS) for (const [left, upper, w, n] of boxes)
      if (y >= upper && y < upper + ROW && x >= left - (data.kind[n] ? 4 : 1) && x <= left + Math.max(w, data.kind[n] ? 4 : 1)) best = n;
    return best;
  };
  canvas.addEventListener("mousemove", (event) => {
    const n = under(event);
    canvas.style.cursor = n >= 0 ? "pointer" : "grab";
    kp.point(event, n >= 0 ? data.names[data.name[n]] : "", n < 0 ? [] : [lasted(n), `at ${kp.amount(data.start[n], data.unit)}, ${data.tasks[data.task[n]]}`, data.texts[data.args[n]]]);
  });
  canvas.addEventListener("mouseleave", () => kp.point(null));
  canvas.addEventListener("click", (event) => { const n = under(event); if (n >= 0) { picked = n; tell(n); draw(); } });
  canvas.addEventListener("dblclick", (event) => { const n = under(event); if (n >= 0) show(n); });
  scroll.addEventListener("scroll", () => draw());

  const beside = (by) => {  // the next one of the row
    if (picked < 0) return;
    const row = laneOf(picked).rows[data.depth[picked]], to = row[row.indexOf(picked) + by];
    if (to !== undefined) { picked = to; tell(to); const [a, b] = domain(); if (data.start[to] < a || data.start[to] > b) show(to); draw(); }
  };
  const key = (event) => {
    const name = event.key;
    if (name === "+" || name === "=" || name === "w") scaleBy(1.5);
    else if (name === "-" || name === "s") scaleBy(1 / 1.5);
    else if (name === "a" || name === "ArrowLeft") surface.call(zoom.translateBy, wide / 8 / transform.k, 0);
    else if (name === "d" || name === "ArrowRight") surface.call(zoom.translateBy, -wide / 8 / transform.k, 0);
    else if (name === "ArrowUp") scroll.scrollTop -= ROW * 2;
    else if (name === "ArrowDown") scroll.scrollTop += ROW * 2;
    else if (name === "n") step(1);
    else if (name === "p") step(-1);
    else if (name === "," || name === ".") beside(name === "." ? 1 : -1);
    else if (name === "Escape") { input.value = ""; test = null; picked = -1; details.textContent = rest; seek(); move(d3.zoomIdentity); draw(); }
    else return false;
    return true;
  };
  return {draw, key, keys: [["/", "search names and arguments"], ["n, p", "the next found, the one before"], ["+, -", "nearer, farther"],
    ["← →", "move in time"], ["↑ ↓", "move among tasks"], [", .", "the call before, the next one"], ["Esc", "show all"]]};
};
