// The grid of items: what is selected, and leaving out what is far away from where people look.
import { ask } from "./dialogs.js";
import { number } from "./words.js";
import { showLocalTimes } from "./times.js";

const NEAR = "2500px 0px";
const MOST_ROWS = 2000;
const chosen = new Set();
let allMatching = false;
let lastTicked = null;

const observer = new IntersectionObserver(seen, { rootMargin: NEAR });

export function watchGrid() {
  watchParts();
  document.addEventListener("htmx:after:swap", watchParts);
  document.addEventListener("change", ticked);
  document.addEventListener("click", clicked);
  addEventListener("hashchange", fromAddress);
  fromAddress();
}

export function watchParts() {
  for (const part of document.querySelectorAll("table.grid tbody:not([data-watched])")) {
    part.dataset.watched = "";
    observer.observe(part);
  }
}

// With widths that stand, a browser need not measure all rows again whenever some are added.
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
      leaveOut(target, boundingClientRect.height);
    } else if (isIntersecting && target.classList.contains("away")) {
      bringBack(target);
    }
  }
}

function leaveOut(part, height) {
  if (part.classList.contains("away") || part.querySelector(".here")) return;
  const cell = document.createElement("td");
  cell.colSpan = 99;
  cell.style.height = `${height}px`;
  const row = document.createElement("tr");
  row.append(cell);
  part.replaceChildren(row);
  part.classList.add("away");
}

async function bringBack(part) {
  part.classList.remove("away");
  const reply = await fetch(part.dataset.src, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!reply?.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = `<table>${await reply.text()}</table>`;
  part.replaceChildren(...holder.content.querySelector("tbody").children);
  showLocalTimes(part);
  markChosen(part);
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
  tell();
}

function clicked(event) {
  const row = event.target.closest("tr[data-seq]");
  if (event.shiftKey && row && lastTicked && event.target.matches("[data-tick]")) chooseBetween(lastTicked, row, event.target.checked);
  if (event.target.matches("[data-tick]")) lastTicked = row;
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("[data-unselect]")) unselect();
  if (button.matches("[data-all-matching]")) chooseAll();
  if (button.dataset.bulk) orderBulk(button.dataset.bulk);
  if (button.matches("[data-copy-chosen]")) copyChosen(button);
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
  on ? chosen.add(row.dataset.seq) : chosen.delete(row.dataset.seq);
  row.classList.toggle("chosen", on);
  const box = row.querySelector("[data-tick]");
  if (box) box.checked = on;
}

function markChosen(root) {
  for (const row of root.querySelectorAll("tr[data-seq]")) {
    if (allMatching || chosen.has(row.dataset.seq)) {
      row.classList.add("chosen");
      const box = row.querySelector("[data-tick]");
      if (box) box.checked = true;
    }
  }
}

export function toggle(row) {
  if (!row?.dataset.seq || !selectionBar()) return false;
  set(row, !chosen.has(row.dataset.seq));
  allMatching = false;
  tell();
  return true;
}

export function chooseAll() {
  const bar = selectionBar();
  if (!bar) return false;
  if (!bar.dataset.query) {
    for (const row of allRows()) set(row, true);
  } else {
    allMatching = true;
    markChosen(document);
  }
  tell();
  return true;
}

export function hasSelection() {
  return allMatching || chosen.size > 0;
}

export function orderBulk(kind) {
  const bar = selectionBar();
  const job = document.querySelector("[data-grid]").dataset.grid;
  const what = allMatching ? `q=${encodeURIComponent(bar.dataset.query)}` : `seqs=${[...chosen].join(",")}`;
  if (!allMatching && chosen.size > MOST_ROWS) {
    bar.querySelector("[data-chosen]").textContent = `More than ${number(MOST_ROWS)} rows: filter, then select all that match.`;
    return;
  }
  ask(`/jobs/${job}/bulk?kind=${kind}&${what}`);
}

function selectionBar() {
  return document.querySelector("[data-selection]");
}

function unselect() {
  allMatching = false;
  for (const row of allRows()) set(row, false);
  chosen.clear();
  tell();
}

function tell() {
  const bar = selectionBar();
  bar.hidden = !hasSelection();
  const skip = bar.querySelector("[data-bulk=skip]");
  if (skip) skip.hidden = allMatching && bar.dataset.skipsAll !== "1";
  bar.querySelector("[data-chosen]").textContent = allMatching ? allTold(bar) : `${number(chosen.size)} selected`;
  const rows = chosen.size && chosen.size <= 200 && !allMatching ? `#rows=${[...chosen].join(",")}` : "";
  history.replaceState(null, "", location.pathname + location.search + (allMatching ? "#rows=all" : rows));
}

function allTold({ dataset }) {
  if (!dataset.count) return "Everything that matches is selected";
  return `All ${dataset.exact === "1" ? "" : "about "}${number(Number(dataset.count))} that match are selected`;
}

// A selection has an address too.
function fromAddress() {
  const said = location.hash.match(/^#rows=([\d,]+|all)$/)?.[1];
  if (!said || !selectionBar()) return;
  if (said === "all") return void chooseAll();
  for (const seq of said.split(",")) chosen.add(seq);
  markChosen(document);
  tell();
}

async function copyChosen(button) {
  const lines = allRows()
    .filter((row) => row.classList.contains("chosen"))
    .map((row) => [...row.cells].slice(1).map((cell) => cell.textContent.trim()).join("\t"));
  const head = [...document.querySelectorAll("table.grid thead th")].slice(1).map((cell) => cell.textContent.trim());
  await navigator.clipboard.writeText([head.join("\t"), ...lines].join("\n"));
  button.textContent = `Copied ${number(lines.length)}`;
}
