// Counters as they change. One event stream for the page; htmx closes it while the tab is hidden.
import { duration, number } from "./words.js";

const HEAD_SECONDS = 4;
const PARTS = ["done", "notFound", "skipped", "error"];
let askedAt = 0;

export function watchLive() {
  document.addEventListener("jobs", (event) => {
    const live = event.target.closest("[data-live]");
    if (!live) return;
    const { jobs } = JSON.parse(event.detail.data);
    for (const job of jobs) fill(job);
    askAgain(live, jobs);
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

// What only the server can tell (why it waits, which buttons fit) is asked for now and then.
function askAgain(live, jobs) {
  const now = performance.now();
  const state = live.dataset.state;
  const changed = state && jobs.length === 1 && jobs[0].state !== state;
  if (changed) {
    live.dataset.state = jobs[0].state;
    location.reload();
    return;
  }
  if (now - askedAt < HEAD_SECONDS * 1000) return;
  askedAt = now;
  htmx.trigger(live, "again");
}
