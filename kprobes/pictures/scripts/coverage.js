"use strict";
// Executed lines by source file. data: {files: [{name, lines: [number, count, ...], functions: [[name, line, count], ...], text}]}:
// lines that have code, by number; text: the file's lines, null where it could not be read.
kp.views.coverage = (place, data) => {
  const CHUNK = 200;  // lines that a browser lays out together, when they are seen
  let test = null, opened = -1, at = -1;
  const files = data.files.map((file, n) => {
    const counts = file.lines.filter((_, i) => i % 2);
    return {...file, n, all: counts.length, hit: counts.filter(Boolean).length, entered: file.functions.filter((each) => each[2]).length};
  });
  const input = kp.search((found) => { test = found; list(); }, "Search files and functions");
  const back = kp.el("button", {type: "button", title: "All files (Esc)", onclick: () => open(-1)}, "‹ All files");
  const step = (by) => kp.el("button", {type: "button", title: by > 0 ? "Next lines not executed (n)" : "Lines not executed before (p)", onclick: () => next(by)}, by > 0 ? "›" : "‹");
  const missed = kp.el("span", {className: "steps"}, step(-1), " ", step(1)), said = kp.el("span", {className: "said", role: "status"});
  const body = kp.el("div");
  place.append(kp.el("div", {className: "tools"}, input, back, missed, said), body);

  // of a path, the end is what people know it by
  const path = (name) => { const most = place.clientWidth < 640 ? 16 : 72; return name.length <= most ? name : `…${name.slice(1 - most)}`; };
  const share = (part, whole) => kp.el("span", {className: "share"}, kp.el("i", {ariaHidden: "true", style: `--part:${whole ? 100 * part / whole : 0}%`}), kp.percent(part, whole));
  const list = () => {
    const found = test ? files.filter((file) => test(file.name) || file.functions.some(([name]) => test(name))) : files;
    said.textContent = test ? `${kp.number(found.length)} found` : "";
    if (opened >= 0) { open(-1); return; }
    body.replaceChildren(kp.table([["file", false, (file) => file.name, (file) => path(file.name)], ["lines", true, (file) => file.all, (file) => kp.number(file.all)],
      ["executed", true, (file) => file.hit, (file) => kp.number(file.hit)], ["share", true, (file) => file.hit / (file.all || 1), (file) => share(file.hit, file.all)],
      ["functions", true, (file) => file.functions.length, (file) => kp.number(file.functions.length)],
      ["entered", true, (file) => file.entered, (file) => kp.number(file.entered)]], found, 2, (file) => open(file.n)));
    place.dataset.drawn = found.length;
  };
  const open = (n) => {
    opened = n; at = -1;
    back.hidden = missed.hidden = n < 0;
    input.hidden = n >= 0;
    if (n < 0) { list(); return; }
    const file = files[n], counts = new Map();
    for (let i = 0; i < file.lines.length; i += 2) counts.set(file.lines[i], file.lines[i + 1]);
    said.textContent = `${kp.number(file.all - file.hit)} of ${kp.number(file.all)} lines not executed`;
    const numbers = file.text ? file.text.map((_, i) => i + 1) : [...counts.keys()];
    const width = String(numbers[numbers.length - 1] || 0).length, chunks = [];
    for (let i = 0; i < numbers.length; i += CHUNK) {
      const lines = numbers.slice(i, i + CHUNK);
      const chunk = kp.el("div", {className: "lines", style: `contain-intrinsic-size: auto ${lines.length * 20}px; --digits: ${width}ch`}, ...lines.map((line) => {
        const count = counts.get(line);
        return kp.el("div", {className: count === undefined ? "" : count ? "hit" : "missed", id: `line-${line}`}, kp.el("span", {className: "n"}, String(line)),
          kp.el("span", {className: "n"}, count === undefined ? "" : kp.number(count)), kp.el("code", {}, file.text ? file.text[line - 1] : ""));
      }));
      chunks.push(chunk);
    }
    const code = kp.el("div", {className: "panel source", tabIndex: 0, role: "region", ariaLabel: `Lines of ${file.name}`}, ...chunks);
    body.replaceChildren(kp.el("h3", {}, file.name), ...(file.text ? [] : [kp.el("p", {className: "said"}, "The file could not be read: only the numbers of lines are known.")]),
      code, ...(file.functions.length ? [kp.el("h3", {}, "Functions"), kp.table([["function", false, (row) => row[0], (row) => kp.brief(row[0], 90)],
        ["line", true, (row) => row[1], (row) => kp.number(row[1])], ["entered", true, (row) => row[2], (row) => kp.number(row[2])]], file.functions, 2, (row) => show(row[1]))] : []));
    place.dataset.drawn = numbers.length;
    scrollTo(0, 0);
  };
  const show = (line) => {
    const row = document.getElementById(`line-${line}`);
    if (!row) return;
    body.querySelectorAll(".at").forEach((each) => each.classList.remove("at"));
    row.classList.add("at");
    row.scrollIntoView({block: "center"});
  };
  const next = (by) => {  // where lines that were not executed begin
    const lines = files[opened].lines, begins = [];
    for (let i = 0; i < lines.length; i += 2) if (!lines[i + 1] && (!i || lines[i - 1])) begins.push(lines[i]);
    if (!begins.length) return;
    at = at < 0 ? (by > 0 ? 0 : begins.length - 1) : (at + by + begins.length) % begins.length;
    show(begins[at]);
  };
  const key = (event) => {
    if (event.key === "Escape" && (opened >= 0 || test)) { input.value = ""; test = null; open(-1); }
    else if (opened >= 0 && (event.key === "n" || event.key === "p")) next(event.key === "n" ? 1 : -1);
    else return false;
    return true;
  };
  open(files.length === 1 ? 0 : -1);
  return {draw: () => {}, key, keys: [["/", "search files and functions"], ["Tab, Enter", "to a file, its lines"], ["n, p", "lines not executed: next, before"], ["Esc", "all files"]]};
};
