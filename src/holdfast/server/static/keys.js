// Keyboard shortcuts, as listed under `?`. Ignored while typing in a field.
import { selectAll, hasSelection, openBulk, toggle } from "./grid.js";

let going = false;

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (going) {
      going = false;
      follow(event);
      return;
    }
    const action = ACTIONS[event.key];
    if (action ? action(event) !== false : press(event.key)) event.preventDefault();
  });
}

const ACTIONS = {
  g: () => { going = true; setTimeout(() => (going = false), 1500); },
  "?": () => document.getElementById("keys").showModal(),
  "/": () => focusOn(document.querySelector('[data-key="/"]')),
  j: () => move(1) || press("j"),
  k: () => move(-1) || press("k"),
  x: () => toggle(here()),
  a: () => selectAll(),
  r: () => (hasSelection() ? openBulk("reprocess") : press("r")),
  Enter: (event) => event.target === document.body && open(),
};

function isTyping(element) {
  return element.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
}

function follow(event) {
  const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  if (!link) return;
  event.preventDefault();
  link.click();
}

function press(key) {
  if (key.length !== 1) return false;
  const button = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  button?.click();
  return Boolean(button);
}

function focusOn(input) {
  input?.focus();
  input?.select();
  return Boolean(input);
}

function rows() {
  return [...document.querySelectorAll("[data-rows] tr[data-row]")];
}

function here() {
  return document.querySelector("tr.here");
}

function move(step) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(here());
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))] ?? all[0];
  here()?.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function open() {
  const link = here()?.querySelector("a.open");
  link?.click();
  return Boolean(link);
}
