// Tables of more than a few rows are sorted by a click on a column's head; cells without a number come last.
"use strict";

const FEW = 5;

function key(cell) {
  const text = cell.textContent.trim();
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return { text, number: /^[-+]?[\d.]/.test(text) ? number : Number.NaN };
}

function compare(one, other) {
  return Number.isNaN(one.number) ? one.text.localeCompare(other.text) : one.number - other.number;
}

function sort(table, column, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: key(row.cells[column]) }));
  const filled = rows.filter(({ key }) => !Number.isNaN(key.number));
  const rest = rows.filter(({ key }) => Number.isNaN(key.number));
  for (const part of [filled, rest]) part.sort((a, b) => (down ? -1 : 1) * compare(a.key, b.key));
  body.append(...[...filled, ...rest].map(({ row }) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
}

function enable(table) {
  if (!table.tHead || !table.tBodies.length || table.tBodies[0].rows.length <= FEW) return;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    head.classList.add("sortable");
    head.addEventListener("click", () => sort(table, column, head));
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort(table, column, head));
  });
}

// In the support matrix an empty cell says why when the pointer rests on it: its note is in the list that follows.
function explain(table) {
  const notes = table.closest("section")?.querySelector("ol");
  for (const cell of notes ? table.querySelectorAll("td") : []) {
    const found = /^- \((\d+)\)$/.exec(cell.textContent.trim());
    if (!found) continue;
    cell.classList.add("blank");
    cell.title = notes.children[found[1] - 1]?.textContent.trim() ?? "";
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    enable(table);
    explain(table);
  }
});
