"use strict";
// What every page has: themes, tabs, pointing at things, keys, numbers with their units, labels that fit.
const kp = (() => {
  const views = {};     // name of a chart -> (element, data) => {draw(), key(event), keys: [[key, words]]}
  const shown = new Map();  // section -> what its chart is

  const el = (tag, props = {}, ...inner) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name in made && name !== "list") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...inner);
    return made;
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  // --- numbers

  const grouped = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
  const number = (value) => Math.abs(value) < 100 && value % 1 ? String(+value.toFixed(2)) : grouped.format(value);
  const SCALES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const amount = (value, unit) => {
    if (unit !== "ns") return `${number(value)}${unit ? " " + (value === 1 ? unit.replace(/s$/, "") : unit) : ""}`;
    if (!value) return "0 s";
    const [scale, name] = SCALES.find(([size]) => Math.abs(value) >= size) || SCALES[3];
    return `${+(value / scale).toPrecision(4)} ${name}`;
  };
  const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(part && part / whole < .001 ? 3 : 1)} %` : "-";
  const compact = new Intl.NumberFormat("en-US", {notation: "compact", maximumSignificantDigits: 3});
  // Ticks of an axis, in one unit for all of them.
  const ticks = (from, to, count, unit) => {
    const span = to - from || 1, raw = span / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    const step = Math.max(power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10),
                          unit === "ns" ? 0 : 1);
    const [scale, name] = unit === "ns" ? SCALES.find(([size]) => to >= size) || SCALES[3] : [1, ""];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)), out = [];
    for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + step * 1e-9; at += step)
      out.push([at, unit === "ns" ? `${(at / scale).toFixed(Math.min(digits, 9))} ${name}` : at >= 1e6 && step >= 1e4 ? compact.format(at) : grouped.format(at)]);
    return out;
  };
  // Round values from `low` to `high`, at most about `count`, for an axis by logarithm.
  const powers = (low, high, count) => {
    const first = Math.floor(Math.log10(Math.max(low, 1e-9))), last = Math.ceil(Math.log10(Math.max(high, 1e-9)));
    for (const [digits, by] of [[[1, 2, 5], 1], [[1, 3], 1], [[1], 1], [[1], 2], [[1], 3], [[1], 6]]) {
      const out = [];
      for (let power = first; power <= last; power += by)
        for (const digit of digits) if (digit * 10 ** power >= low && digit * 10 ** power <= high) out.push(digit * 10 ** power);
      if (out.length <= Math.max(count, 2)) return out;
    }
    return [];
  };

  // --- colours: the same name has the same one everywhere

  const hash = (text) => {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    h ^= h >>> 15; h = Math.imul(h, 2246822519); h ^= h >>> 13;
    return h >>> 0;
  };
  const warm = (name, dark) => {
    const h = hash(name);
    return dark ? `hsl(${8 + h % 42} ${42 + (h >> 8) % 14}% ${30 + (h >> 16) % 8}%)`
      : `hsl(${14 + h % 40} ${78 + (h >> 8) % 14}% ${70 + (h >> 16) % 9}%)`;
  };
  const any = (name, dark) => {
    const h = hash(name);
    return dark ? `hsl(${h % 360} ${30 + (h >> 9) % 14}% ${37 + (h >> 16) % 8}%)`
      : `hsl(${h % 360} ${52 + (h >> 9) % 18}% ${77 + (h >> 16) % 6}%)`;
  };

  // --- canvases

  const FONT = "12px system-ui, sans-serif";
  const canvas = (element, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
      element.style.width = `${width}px`;
      element.style.height = `${height}px`;
    }
    const g = element.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = FONT;
    g.textBaseline = "middle";
    return g;
  };
  const widths = new Map();
  const width = (g, text) => {
    let w = widths.get(text);
    if (w === undefined) {
      if (widths.size > 50000) widths.clear();
      w = g.measureText(text).width;
      widths.set(text, w);
    }
    return w;
  };
  // The text, or what fits of it and an ellipsis; "" where nothing would be read.
  const fit = (g, text, room) => {
    if (room < 16) return "";
    if (width(g, text) <= room) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = low + high + 1 >> 1;
      if (width(g, text.slice(0, middle) + "…") <= room) low = middle; else high = middle - 1;
    }
    return low > 1 ? text.slice(0, low) + "…" : "";
  };

  // --- names of C++ and Rust, which are longer than any box

  const GROUPS = {"<": ">", "(": ")", "[": "]", "{": "}"}, OPERATOR = /operator(?:<=>|->\*?|<<=?|>>=?|<=?|>=?|\(\)|\[\])/y;
  // What a group that begins at `at` ends behind. `->`, `operator<` and the like are no brackets.
  const behind = (name, at) => {
    const open = [];
    for (; at < name.length; at++) {
      OPERATOR.lastIndex = at;
      const found = OPERATOR.exec(name);
      if (found) { at += found[0].length - 1; continue; }
      const c = name[at];
      if (GROUPS[c]) open.push(GROUPS[c]);
      else if (c === open[open.length - 1] && !(c === ">" && name[at - 1] === "-")) { open.pop(); if (!open.length) return at + 1; }
    }
    return at;
  };
  const DEEPEST = 8;  // groups in each other that are looked at
  // A name without arguments of templates and functions, and without what it returns: `geo::Table<int>::find(int) const`
  // is geo::Table::find; `<geo::Table as geo::Find>::find` is Table::find; `{lambda(int)#1}` is {lambda}.
  const bare = (name, depth = 0) => {
    let out = "";
    if (depth === DEEPEST || /^[-+]\[/.test(name)) return name;  // of Objective-C: -[Shape area]
    name = name.replaceAll("(anonymous namespace)::", "");
    for (let at = 0; at < name.length;) {
      OPERATOR.lastIndex = at;
      const found = OPERATOR.exec(name), c = name[at];
      if (found) { out += found[0]; at += found[0].length; continue; }
      if (!GROUPS[c]) { out += c; at++; continue; }
      const end = behind(name, at), inner = name.slice(at + 1, end - 1);
      if (c === "{") out += `{${inner.match(/^[\w:]*(?: \w+$)?/)[0] || inner}}`;
      else if (c === "<" && (!out || / $/.test(out) && !/\boperator\S* $/.test(out))) out += bare(inner.split(" as ")[0].replace(/^[&*](?:mut |const )?/, ""), depth + 1).split("::").pop() || inner;
      else if (c === "(" && out && !/(^|\s)decltype ?$/.test(out)) {  // parameters; a scope may follow them
        if (/ $/.test(out) && !/\boperator\b/.test(out)) return name;  // void (*f(int))(char)
        if (!name.startsWith("::", end)) break;
      }
      at = end;
    }
    const operator = out.search(/\boperator\b/), from = (operator < 0 ? out.trimEnd() : out.slice(0, operator)).lastIndexOf(" ") + 1;
    return out.slice(from).replace(/::(?=::|$)/g, "").replace(/^::/, "").trim() || name;
  };
  const forms = new Map();
  // A name and its shorter forms, longest first.
  const shorter = (name) => {
    let found = forms.get(name);
    if (!found) {
      found = [name];
      if (/[<(:]/.test(name)) {
        const plain = bare(name), operator = plain.search(/\boperator\b/), scopes = plain.slice(0, operator < 0 ? plain.length : operator).split("::");
        const parts = operator < 0 ? scopes : [...scopes.slice(0, -1), plain.slice(operator)];
        for (const each of [plain, parts.slice(-2).join("::"), parts[parts.length - 1]])
          if (each && each.length < found[found.length - 1].length) found.push(each);
      }
      forms.set(name, found);
    }
    return found;
  };
  // The longest form of a function's name that fits; what fits of the shortest one where none does.
  const label = (g, name, room) => {
    const all = shorter(name);
    for (const each of all) if (width(g, each) <= room) return each;
    return fit(g, all[all.length - 1], room);
  };
  // A name of at most about so many characters, for lists.
  const brief = (name, most = 64) => {
    const all = shorter(name);
    const found = all.find((each) => each.length <= most) || all[all.length - 1];
    return found.length <= most ? found : `${found.slice(0, most - 1)}…`;
  };

  // --- pointing at things

  const tip = el("div", {id: "tip", hidden: true, role: "tooltip"});
  const point = (event, head, lines) => {
    if (!head) { tip.hidden = true; return; }
    // a name or text of any length, in a box that is seen at once: a click shows the whole one
    const all = lines.filter(Boolean).flatMap((line) => line.split("\n")), cut = (line) => line.length > 200 ? `${line.slice(0, 199)}…` : line;
    tip.replaceChildren(el("b", {}, brief(head, 160)), [...all.slice(0, 12).map(cut), ...(all.length > 12 ? ["…"] : [])].join("\n"));
    tip.hidden = false;
    tip.style.left = tip.style.top = "0";  // at an edge it would be measured as narrower
    const box = tip.getBoundingClientRect(), gap = 14;
    const x = Math.min(event.clientX + gap, innerWidth - box.width - 8);
    const above = event.clientY + gap + box.height > innerHeight - 8;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, above ? event.clientY - gap - box.height : event.clientY + gap)}px`;
  };

  // Details of one thing: a heading, and rows of (name, value).
  const details = (element, head, rows) => element.replaceChildren(
    ...(head ? [el("strong", {}, brief(head, 160)), el("dl", {}, ...rows.filter(([, value]) => value !== "" && value != null)
      .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])),
    ...(head.length > 160 ? [el("details", {}, el("summary", {}, "whole name"), el("code", {}, head))] : [])] : []));

  // A table whose head sorts. columns: [name, is a number, value of a row, its text]; picked: called with a row.
  const table = (columns, rows, sorted, picked) => {
    const body = el("tbody"), most = 200;
    let by = sorted, down = true;
    const heads = columns.map(([name, isNumber], n) => el("th", {className: isNumber ? "n" : "", scope: "col"},
      el("button", {type: "button", onclick: () => { down = by === n ? !down : isNumber; by = n; fill(); }}, name)));
    const fill = () => {
      const value = columns[by][2];
      const ordered = [...rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1));
      heads.forEach((head, n) => head.setAttribute("aria-sort", n === by ? (down ? "descending" : "ascending") : "none"));
      body.replaceChildren(...ordered.slice(0, most).map((row) => {
        const line = el("tr", {}, ...columns.map(([, isNumber, of, text]) => el("td", {className: isNumber ? "n" : "",
          title: isNumber ? "" : String(of(row))}, text ? text(row) : String(of(row)))));
        if (picked) {
          line.tabIndex = 0;
          line.style.cursor = "pointer";
          line.addEventListener("click", () => picked(row));
          line.addEventListener("keydown", (event) => { if (event.key === "Enter") { picked(row); event.preventDefault(); event.stopPropagation(); } });
        }
        return line;
      }), ...(rows.length > most ? [el("tr", {}, el("td", {className: "said", colSpan: columns.length}, `and ${number(rows.length - most)} more: sort, or search`))] : []));
    };
    fill();
    return el("div", {className: "panel wide"}, el("table", {className: "rows"},
      el("thead", {}, el("tr", {}, ...heads)), body));
  };

  // A search: text, or /a regular expression/. Calls found(test), test null where nothing is sought.
  const search = (found, words = "Search") => {
    const input = el("input", {type: "search", placeholder: `${words} (/)`, ariaLabel: words, spellcheck: false});
    let timer = 0;
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 120); });
    const run = () => {
      const text = input.value, written = text.match(/^\/(.+)\/(i?)$/);
      input.setCustomValidity("");
      if (!text) { found(null); return; }
      try {
        const pattern = written && new RegExp(written[1], written[2]);
        const low = text.toLowerCase();
        found(pattern ? (name) => pattern.test(name) : (name) => name.toLowerCase().includes(low));
      } catch (error) { input.setCustomValidity(error.message); input.reportValidity(); }
    };
    return input;
  };
  const choice = (words, options, picked) => {
    const made = el("select", {ariaLabel: words, title: words, onchange: () => picked(made.selectedIndex)},
      ...options.map((name) => el("option", {}, name)));
    return made;
  };
  const toggle = (words, title, picked) => {
    const made = el("button", {type: "button", title, ariaPressed: "false", onclick: () => {
      made.ariaPressed = made.ariaPressed === "true" ? "false" : "true";
      picked(made.ariaPressed === "true");
    }}, words);
    return made;
  };

  // --- tabs, themes, keys

  const redraw = () => shown.forEach((chart, section) => { if (!section.hidden) chart.draw(); });
  const show = (section) => {
    document.querySelectorAll("main > section").forEach((each) => {
      each.hidden = each !== section;
      const tab = document.getElementById(`tab-${each.id}`);
      if (tab) { tab.setAttribute("aria-selected", String(each === section)); tab.tabIndex = each === section ? 0 : -1; }
    });
    point(null);
    if (!section.dataset.chart) return;
    if (!shown.has(section)) {
      const data = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
      shown.set(section, views[section.dataset.chart](section.querySelector(".chart"), data));
    }
    shown.get(section).draw();
    // now that the page has its scroll bar, or none
    const tab = document.getElementById(`tab-${section.id}`);
    if (tab) tab.scrollIntoView({block: "nearest", inline: "nearest"});
  };
  const open = () => [...document.querySelectorAll("main > section")].find((each) => !each.hidden);

  const help = () => {
    const chart = shown.get(open());
    const rows = [["t", "light or dark"], ["1 … 9", "the other pictures"], ...(chart ? chart.keys || [] : [])];
    const box = el("dialog", {onclick: () => box.close(), onclose: () => box.remove()}, el("h2", {}, "Keys"),
      el("dl", {}, ...rows.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])),
      el("p", {}, el("button", {type: "button"}, "Close")));
    document.body.append(box);
    box.showModal();
  };
  const theme = () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("kprobes-theme", document.documentElement.dataset.theme); } catch { /* in a frame */ }
    redraw();
  };
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) { if (event.key === "Escape") event.target.blur(); return; }
    if (document.querySelector("dialog[open]")) return;
    const sections = [...document.querySelectorAll("main > section")], section = open();
    if (event.target.getAttribute("role") === "tab" && /^Arrow(Left|Right)$/.test(event.key)) {
      const to = sections[(sections.indexOf(section) + (event.key === "ArrowLeft" ? -1 : 1) + sections.length) % sections.length];
      show(to);
      document.getElementById(`tab-${to.id}`).focus();
    } else if (event.key === "?") help();
    else if (event.key === "t") theme();
    else if (event.key === "/" && section.querySelector("input[type=search]")) section.querySelector("input[type=search]").focus();
    else if (/^[1-9]$/.test(event.key) && sections.length > 1 && sections[event.key - 1]) show(sections[event.key - 1]);
    else if (!(shown.get(section) && shown.get(section).key && shown.get(section).key(event))) return;
    event.preventDefault();
  };

  const start = () => {
    try {
      const kept = localStorage.getItem("kprobes-theme");
      if (kept) document.documentElement.dataset.theme = kept;
    } catch { /* in a frame */ }
    const asked = new URLSearchParams(location.search).get("theme");
    if (asked) document.documentElement.dataset.theme = asked === "dark" ? "dark" : "light";
    document.body.append(tip);
    document.getElementById("theme").addEventListener("click", theme);
    document.addEventListener("keydown", keys);
    document.querySelectorAll('[role="tab"]').forEach((tab) => tab.addEventListener("click", () => {
      const section = document.getElementById(tab.getAttribute("aria-controls"));
      show(section);
      history.replaceState(null, "", `#${section.id}`);
    }));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    let due = 0;
    new ResizeObserver(() => { cancelAnimationFrame(due); due = requestAnimationFrame(redraw); }).observe(document.querySelector("main"));
    addEventListener("scroll", () => point(null), true);
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    show(named && named.matches("main > section") ? named : document.querySelector("main > section"));
    document.documentElement.dataset.ready = "yes";
  };

  return {views, el, color, isDark, number, amount, percent, ticks, powers, hash, warm, any, canvas, fit, width, shorter, label, brief, point, details,
    table, search, choice, toggle, start, FONT};
})();
