// Keys, as the list under `?` tells them. Nothing happens while somebody types.
import { chooseAll, hasSelection, orderBulk, toggle } from "./grid.js";

let goes = false;

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (goes) {
      goes = false;
      follow(event);
      return;
    }
    const act = ACTS[event.key];
    if (act ? act(event) !== false : press(event.key)) event.preventDefault();
  });
}

const ACTS = {
  g: () => { goes = true; setTimeout(() => (goes = false), 1500); },
  "?": () => document.getElementById("keys").showModal(),
  "/": () => focusOn(document.querySelector('[data-key="/"]')),
  j: () => move(1) || press("j"),
  k: () => move(-1) || press("k"),
  x: () => toggle(here()),
  a: () => chooseAll(),
  r: () => (hasSelection() ? orderBulk("reprocess") : press("r")),
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
