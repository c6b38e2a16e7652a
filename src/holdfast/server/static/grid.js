// The grid of items: selection, and removal of rows that are far outside the viewport.
import { openDialog } from "./dialogs.js";
import { number } from "./formatting.js";
import { showLocalTimes } from "./times.js";

const NEAR = "2500px 0px";
const MOST_ROWS = 2000;
const selected = new Set();
let allMatching = false;
let lastTicked = null;

const observer = new IntersectionObserver(seen, { rootMargin: NEAR });

export function watchGrid() {
  watchParts();
  document.addEventListener("htmx:after:swap", watchParts);
  document.addEventListener("change", ticked);
  document.addEventListener("click", clicked);
  addEventListener("hashchange", readSelection);
  readSelection();
}

export function watchParts() {
  for (const part of document.querySelectorAll("table.grid tbody:not([data-watched])")) {
    part.dataset.watched = "";
    observer.observe(part);
  }
}

// With fixed widths, the browser does not measure all rows again when some are added.
function freezeColumns(table) {
  if (table.classList.contains("frozen") || innerWidth <= 760) return;
  const widths = [...table.tHead.rows[0].cells].map((cell) => cell.getBoundingClientRect().width);
  widths.forEach((width, place) => (table.tHead.rows[0].cells[place].style.width = `${width}px`));
  table.style.width = `${widths.reduce((sum, width) => sum + width, 0)}px`;
  table.classList.add("frozen");
}

function seen(entries) {
  for (const { target, isIntersecting, boundingClientRect } of entries) {
    if (target.classList.contains("more")) {
      if (!isIntersecting) continue;
      freezeColumns(target.closest("table"));
      htmx.trigger(target, "near");
    } else if (!isIntersecting && target.dataset.src) {
      unload(target, boundingClientRect.height);
    } else if (isIntersecting && target.classList.contains("away")) {
      reload(target);
    }
  }
}

function unload(part, height) {
  if (part.classList.contains("away") || part.querySelector(".here")) return;
  const cell = document.createElement("td");
  cell.colSpan = 99;
  cell.style.height = `${height}px`;
  const row = document.createElement("tr");
  row.append(cell);
  part.replaceChildren(row);
  part.classList.add("away");
}

async function reload(part) {
  part.classList.remove("away");
  const reply = await fetch(part.dataset.src, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!reply?.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = `<table>${await reply.text()}</table>`;
  part.replaceChildren(...holder.content.querySelector("tbody").children);
  showLocalTimes(part);
  markSelected(part);
}

function ticked(event) {
  const box = event.target;
  if (box.matches("[data-tick-all]")) {
    for (const row of allRows()) set(row, box.checked);
  } else if (box.matches("[data-tick]")) {
    set(box.closest("tr"), box.checked);
  } else {
    return;
  }
  allMatching = false;
  showSelection();
}

function clicked(event) {
  const row = event.target.closest("tr[data-seq]");
  if (event.shiftKey && row && lastTicked && event.target.matches("[data-tick]")) chooseBetween(lastTicked, row, event.target.checked);
  if (event.target.matches("[data-tick]")) lastTicked = row;
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("[data-unselect]")) unselect();
  if (button.matches("[data-all-matching]")) selectAll();
  if (button.dataset.bulk) openBulk(button.dataset.bulk);
  if (button.matches("[data-copy-chosen]")) copySelected(button);
}

function chooseBetween(one, other, on) {
  const rows = allRows();
  const [from, to] = [rows.indexOf(one), rows.indexOf(other)].sort((a, b) => a - b);
  for (const row of rows.slice(from, to + 1)) set(row, on);
}

function allRows() {
  return [...document.querySelectorAll("tr[data-seq]")];
}

function set(row, on) {
  on ? selected.add(row.dataset.seq) : selected.delete(row.dataset.seq);
  row.classList.toggle("chosen", on);
  const box = row.querySelector("[data-tick]");
  if (box) box.checked = on;
}

function markSelected(root) {
  for (const row of root.querySelectorAll("tr[data-seq]")) {
    if (allMatching || selected.has(row.dataset.seq)) {
      row.classList.add("chosen");
      const box = row.querySelector("[data-tick]");
      if (box) box.checked = true;
    }
  }
}

export function toggle(row) {
  if (!row?.dataset.seq || !selectionBar()) return false;
  set(row, !selected.has(row.dataset.seq));
  allMatching = false;
  showSelection();
  return true;
}

export function selectAll() {
  const bar = selectionBar();
  if (!bar) return false;
  if (!bar.dataset.query) {
    for (const row of allRows()) set(row, true);
  } else {
    allMatching = true;
    markSelected(document);
  }
  showSelection();
  return true;
}

export function hasSelection() {
  return allMatching || selected.size > 0;
}

export function openBulk(kind) {
  const bar = selectionBar();
  const table = document.querySelector("[data-grid], [data-bulk-at]");
  const at = table.dataset.bulkAt ?? `/jobs/${table.dataset.grid}/bulk`;
  const what = allMatching ? `q=${encodeURIComponent(bar.dataset.query)}` : `seqs=${[...selected].join(",")}`;
  if (!allMatching && selected.size > MOST_ROWS) {
    bar.querySelector("[data-chosen]").textContent = `More than ${number(MOST_ROWS)} rows: use a filter, then select everything that matches.`;
    return;
  }
  openDialog(`${at}?kind=${kind}&${what}`);
}

function selectionBar() {
  return document.querySelector("[data-selection]");
}

function unselect() {
  allMatching = false;
  for (const row of allRows()) set(row, false);
  selected.clear();
  showSelection();
}

function showSelection() {
  const bar = selectionBar();
  bar.hidden = !hasSelection();
  const skip = bar.querySelector("[data-bulk=skip]");
  if (skip) skip.hidden = allMatching && bar.dataset.skipsAll !== "1";
  bar.querySelector("[data-chosen]").textContent = allMatching ? allText(bar) : `${number(selected.size)} selected`;
  const rows = selected.size && selected.size <= 200 && !allMatching ? `#rows=${[...selected].join(",")}` : "";
  history.replaceState(null, "", location.pathname + location.search + (allMatching ? "#rows=all" : rows));
}

function allText({ dataset }) {
  if (!dataset.count) return "Everything that matches is selected";
  return `All ${dataset.exact === "1" ? "" : "about "}${number(Number(dataset.count))} matching rows are selected`;
}

// A selection can be shared as a URL.
function readSelection() {
  const rows = location.hash.match(/^#rows=([\d,-]+|all)$/)?.[1];
  if (!rows || !selectionBar()) return;
  if (rows === "all") return void selectAll();
  for (const seq of rows.split(",")) selected.add(seq);
  markSelected(document);
  showSelection();
}

async function copySelected(button) {
  const lines = allRows()
    .filter((row) => row.classList.contains("chosen"))
    .map((row) => [...row.cells].slice(1).map((cell) => cell.textContent.trim()).join("\t"));
  const head = [...document.querySelectorAll("table.grid thead th")].slice(1).map((cell) => cell.textContent.trim());
  await navigator.clipboard.writeText([head.join("\t"), ...lines].join("\n"));
  button.textContent = `Copied ${number(lines.length)}`;
}
