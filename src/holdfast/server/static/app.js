// Loaded by every page: sets up the modules, one per concern.
import { watchLive } from "./live.js";
import { drawCharts } from "./charts.js";
import { listenToKeys } from "./keys.js";
import { watchGrid } from "./grid.js";
import { watchDialogs } from "./dialogs.js";
import { takeFiles, watchColumns } from "./upload.js";
import { showLocalTimes } from "./times.js";

function submitOnChange(event) {
  const form = event.target.closest("form[data-submit-on-change]");
  if (form) form.requestSubmit();
}

function goToPipeline(event) {
  if (!event.target.matches("[data-go-pipeline]")) return;
  const here = new URL(location);
  here.searchParams.set("pipeline", event.target.value);
  location.assign(here);
}

function dismiss(event) {
  const note = event.target.closest(".note .close");
  if (note) note.closest(".note").remove();
}

function unfold(event) {
  const button = event.target.closest(".rail .fold");
  if (!button) return;
  const open = document.getElementById("places").classList.toggle("unfolded");
  button.setAttribute("aria-expanded", String(open));
}

function closeMenus(event) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
}

async function copyText(event) {
  const button = event.target.closest("[data-copy-text]");
  if (!button) return;
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copyText).textContent);
  button.textContent = "Copied";
}

// htmx requests carry the CSRF token: a cookie alone must not change anything.
document.addEventListener("htmx:config:request", (event) => {
  event.detail.ctx.request.headers["X-CSRF-Token"] = document.documentElement.dataset.csrf;
});
document.addEventListener("change", submitOnChange);
document.addEventListener("change", goToPipeline);
document.addEventListener("click", dismiss);
document.addEventListener("click", unfold);
document.addEventListener("click", closeMenus);
document.addEventListener("click", copyText);

showLocalTimes(document);
document.addEventListener("htmx:after:swap", () => showLocalTimes(document));
watchDialogs();
watchLive();
watchGrid();
takeFiles();
watchColumns();
listenToKeys();
drawCharts();
