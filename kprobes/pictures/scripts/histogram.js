"use strict";
// How often values were which. data: {series: [{label, unit, hex, from: [], to: [], counts: [], stats: [[name, number]], missing}]}:
// a bar has the values from `from` up to, not including, `to`; missing: hits whose value could not be read.
kp.views.histogram = (place, data) => {
  let chosen = 0, logarithmic = false, plot = null, cursor = 0;
  const measure = document.createElement("canvas").getContext("2d");
  const short = (label) => { const cut = label.lastIndexOf(": "); return kp.brief(label.slice(0, cut)) + label.slice(cut); };
  const picker = kp.choice("Values", data.series.map((each) => short(each.label)), (n) => { chosen = n; cursor = 0; fill(); draw(); });
  const log = kp.toggle("Logarithmic", "Numbers of hits by their logarithm (l)", (on) => { logarithmic = on; draw(); });
  const chart = kp.el("div", {className: "panel", tabIndex: 0, role: "application", ariaLabel: "Histogram. Arrow keys move among bars."});
  const details = kp.el("div", {className: "details", role: "status", ariaLive: "polite"}), stats = kp.el("div"), rows = kp.el("div");
  place.append(kp.el("div", {className: "tools"}, picker, log), stats, chart, details, rows);
  const style = kp.el("style", {}, ".u-wrap{margin:auto}.uplot{font-family:inherit}.stats{display:flex;flex-wrap:wrap;gap:4px 22px;margin:2px 0 10px;padding:0;list-style:none}.stats b{font-variant-numeric:tabular-nums}.stats span{color:var(--muted)}");
  document.head.append(style);

  const series = () => data.series[chosen];
  const shown = (value, of = series()) => of.hex ? "0x" + BigInt(Math.round(value)).toString(16) : of.unit === "ns" ? kp.amount(+value.toPrecision(4), "ns") : kp.number(value);
  const range = (n, of = series()) => {
    const from = of.from[n], to = of.to[n];
    return to - from <= 1 ? shown(from) : `${shown(from)} … ${of.unit === "ns" || to > 2 ** 52 ? shown(to) : shown(to - 1)}`;
  };
  const fill = () => {
    const of = series();
    if (!of) { stats.textContent = "no event has a number, and no call both an entry and a return"; return; }
    stats.replaceChildren(kp.el("ul", {className: "stats"}, ...of.stats.map(([name, value]) =>
      kp.el("li", {}, kp.el("span", {}, name + " "), kp.el("b", {}, name === "values" ? kp.number(value) : shown(value)))),
    ...(of.missing ? [kp.el("li", {}, kp.el("span", {}, "could not be read "), kp.el("b", {}, kp.number(of.missing)))] : [])));
    const whole = of.counts.reduce((a, b) => a + b, 0);
    rows.replaceChildren(kp.table([["value" + (of.unit && of.unit !== "ns" ? `, ${of.unit}` : ""), false, (n) => of.from[n], (n) => range(n)],
      ["hits", true, (n) => of.counts[n], (n) => kp.number(of.counts[n])], ["share", true, (n) => of.counts[n], (n) => kp.percent(of.counts[n], whole)]],
    of.counts.map((_, n) => n).filter((n) => of.counts[n]), 1));
    tell(-1);
  };
  const tell = (n) => {
    const of = series();
    details.textContent = n < 0 || n >= of.counts.length ? "Point at a bar for its numbers; drag to look nearer, click twice for all." : `${range(n)}: ${kp.number(of.counts[n])} hit${of.counts[n] === 1 ? "" : "s"}`;
  };
  // bars get wider by powers of two where a few values are much larger: then round values are marked, wherever in a bar
  const uneven = (of) => { const last = of.counts.length - 1; return last > 1 && of.to[last] - of.from[last] > 1.5 * (of.to[0] - of.from[0]); };
  const marked = new Map();
  const powers = (of, low, high, wide) => {
    const last = of.counts.length - 1, edge = (at) => { const n = Math.min(Math.max(Math.round(at), 0), last); return at > last ? of.to[last] : of.from[n]; };
    marked.clear();
    for (const value of kp.powers(edge(low), edge(high), Math.floor(wide / 80))) {
      const n = of.from.findLastIndex((from) => from <= value);
      if (n < 0 || value > of.to[n]) continue;
      const share = Math.log((value + 1) / (of.from[n] + 1)) / Math.log((of.to[n] + 1) / (of.from[n] + 1));
      marked.set(n - .5 + share, shown(value));
    }
    return [...marked.keys()];
  };
  const evenly = (low, high, count, wide) => {
    const of = series(), least = (high - low) / Math.max(1, Math.floor(wide / 96)), power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    const step = power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10), round = step * (of.to[0] - of.from[0]), out = [];
    for (let i = Math.max(0, Math.ceil(low)); i <= Math.min(high, count - 1); i++) if (of.from[i] % round === 0) out.push(i);
    return out.length ? out : [Math.max(0, Math.ceil(low))];
  };
  const draw = () => {
    const of = series();
    if (plot) { plot.destroy(); plot = null; }
    if (!of) return;
    const wide = place.clientWidth - 2, tall = Math.max(220, Math.min(380, innerHeight - 360));
    const muted = kp.color("--muted"), line = kp.color("--line"), accent = kp.color("--accent"), count = of.counts.length;
    const axis = {stroke: muted, grid: {stroke: line, width: 1}, ticks: {stroke: line}, font: "12px system-ui, sans-serif"};
    const bars = uPlot.paths.bars({size: [count > 1 ? .96 : .3, 120], align: 0});
    measure.font = "12px system-ui, sans-serif";
    const whole = short(of.label) + (of.unit && of.unit !== "ns" ? ` (${of.unit})` : ""), room = wide - 90;
    // the name stands above: without room, what is counted is shown
    const label = kp.width(measure, whole) <= room ? whole : kp.fit(measure, whole.slice(whole.lastIndexOf(": ") + 2), room);
    plot = new uPlot({
      width: wide, height: tall, legend: {show: false}, padding: [14, 18, 0, 0],
      cursor: {y: false, points: {show: false}, drag: {x: true, y: false}},
      scales: {x: {time: false, range: (_, low, high) => low === high || count === 1 ? [-1, 1] : [low - .7, high + .7]},
        y: logarithmic ? {distr: 3, range: (_, low, high) => [.5, Math.max(high * 1.5, 2)]} : {range: (_, low, high) => [0, high * 1.05 || 1]}},
      axes: [{...axis, label, labelFont: "12px system-ui, sans-serif", labelSize: 22, gap: 4,
        splits: (u, n, low, high) => uneven(of) ? powers(of, low, high, wide) : evenly(low, high, count, wide),
        values: (u, splits) => splits.map((n) => uneven(of) ? marked.get(n) : of.from[n] === undefined ? "" : shown(+of.from[n].toPrecision(3)))},
      {...axis, label: "hits", labelFont: "12px system-ui, sans-serif", labelSize: 20, size: wide < 500 ? 44 : 56,
        incrs: [1, 2, 5].flatMap((n) => Array.from({length: 16}, (_, power) => n * 10 ** power)).sort((a, b) => a - b),
        values: (u, splits) => splits.map((n) => n == null ? "" : n >= 1 || !n ? new Intl.NumberFormat("en-US", {notation: "compact"}).format(n) : "")}],
      series: [{}, {stroke: accent, fill: accent, width: 0, paths: bars, points: {show: false}}],
      hooks: {setCursor: [(u) => { if (u.cursor.idx != null) { cursor = u.cursor.idx; tell(cursor); } }]},
    }, [of.counts.map((_, n) => n), of.counts.map((n) => logarithmic && !n ? null : n)], chart);
    plot.root.style.padding = "0";
    plot.over.style.setProperty("--u", "0");
    plot.root.querySelectorAll(".u-select").forEach((each) => { each.style.background = "color-mix(in srgb, var(--accent) 18%, transparent)"; });
    place.dataset.drawn = count;
  };
  chart.addEventListener("mouseleave", () => tell(-1));
  const key = (event) => {
    if (event.key === "l") { log.click(); return true; }
    const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!way || !series()) return false;
    cursor = Math.min(Math.max(cursor + way, 0), series().counts.length - 1);
    tell(cursor);
    if (plot) plot.setCursor({left: plot.valToPos(cursor, "x"), top: 10}, false);
    return true;
  };
  fill();
  return {draw, key, keys: [["← →", "move among bars"], ["l", "logarithmic or not"]]};
};
