// Live counters. One event stream per page; htmx closes it while the tab is hidden.
import { hasSelection, watchParts } from "./grid.js";
import { showLocalTimes } from "./times.js";
import { duration, number } from "./formatting.js";

const REFRESH_SECONDS = 15;
const PARTS = ["done", "notFound", "skipped", "error"];
let refreshedAt = performance.now();
let later;

export function watchLive() {
  document.addEventListener("jobs", (event) => {
    const live = event.target.closest("[data-live]");
    if (!live) return;
    const { jobs } = JSON.parse(event.detail.data);
    for (const job of jobs) fill(job);
    scheduleRefresh(live, jobs);
  });
}

function fill(job) {
  for (const root of document.querySelectorAll(`[data-job="${job.id}"]`)) fillOne(root, job);
  if (document.getElementById("job")?.dataset.job === String(job.id)) fillCounts(job.counters);
}

function fillOne(root, job) {
  const { counters } = job;
  const texts = {
    accepted: number(counters.accepted),
    finished: number(counters.accepted - counters.open),
    error: number(counters.error),
    rate: job.ratePerSecond === null ? "" : number(job.ratePerSecond),
    left: job.etaSeconds === null ? "" : duration(job.etaSeconds),
  };
  for (const [name, text] of Object.entries(texts)) {
    for (const place of root.querySelectorAll(`[data-fill="${name}"]`)) write(place, text);
  }
  for (const bar of root.querySelectorAll('[data-fill="bar"] .bar')) draw(bar, counters);
  for (const badge of root.querySelectorAll('[data-fill="state"] .badge')) name(badge, job);
}

function name(badge, job) {
  const shown = (job.idle ? "idle" : job.state).toLowerCase();
  if (badge.textContent === shown) return;
  badge.textContent = shown;
  badge.className = `badge is-${shown}`;
}

function fillCounts(counters) {
  for (const place of document.querySelectorAll("[data-count]")) {
    const name = place.dataset.count === "not_found" ? "notFound" : place.dataset.count;
    if (name in counters) write(place, number(counters[name]));
  }
}

function write(place, text) {
  if (place.textContent.trim() === text) return;
  place.textContent = text;
  place.classList.remove("ticked");
  requestAnimationFrame(() => place.classList.add("ticked"));
}

function draw(bar, counters) {
  const whole = counters.accepted || 1;
  let at = 0;
  for (const name of PARTS) {
    const part = bar.querySelector(`[data-part="${name === "notFound" ? "not_found" : name}"]`);
    const width = (100 * counters[name]) / whole;
    part.setAttribute("x", at);
    part.setAttribute("width", width);
    at += width;
  }
}

// What only the server knows (why a job waits, which buttons apply) is refreshed now and then, and at
// once when the state of the job changes or it becomes idle. A reading may be older than the page. The last change is
// always followed by a refresh, since no further event may come.
function scheduleRefresh(live, jobs) {
  const state = live.dataset.state;
  const job = state && jobs.find((candidate) => String(candidate.id) === live.dataset.job);
  const changed = job && job.state !== state && new Date(job.updatedAt) > new Date(live.dataset.changed);
  if (changed) {
    live.dataset.state = job.state;
    live.dataset.changed = job.updatedAt;
  }
  const rests = job?.idle && live.dataset.idle !== "true";
  if (job) live.dataset.idle = job.idle;
  const left = refreshedAt + 1000 * (live.dataset.refresh ?? REFRESH_SECONDS) - performance.now();
  if (changed || rests || left <= 0) refresh(live);
  else later ??= setTimeout(refresh, left, live);
}

function refresh(live) {
  clearTimeout(later);
  later = undefined;
  refreshedAt = performance.now();
  htmx.trigger(live, "refresh");
  refreshGrid();
}

// Refreshes the first rows of the grid, unless somebody is using it.
async function refreshGrid() {
  const region = document.getElementById("grid-region");
  if (!region || hasSelection() || scrollY > 300 || region.querySelector("tr.here")) return;
  const reply = await fetch(location.href).catch(() => null);
  if (!reply?.ok) return;
  const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").getElementById("grid-region");
  if (!fresh || hasSelection() || scrollY > 300) return;
  region.replaceChildren(...fresh.childNodes);
  htmx.process(region);
  showLocalTimes(region);
  watchParts();
}
