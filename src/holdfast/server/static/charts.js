// Charts of columns of numbers, refreshed while the page is visible.
import { number } from "./formatting.js";

const REFRESH_SECONDS = 5;
const SHORTEST_SECONDS = 10; // on the time axis, whose labels have whole seconds
const isStepped = (name) => name === "pace" || name === "ingest" || name.startsWith("gate-");
const drawn = new Map();

export function drawCharts() {
  for (const group of document.querySelectorAll("[data-charts]")) {
    refresh(group);
    if (group.hasAttribute("data-refresh")) {
      setInterval(() => document.hidden || refresh(group), REFRESH_SECONDS * 1000);
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const [place, { plot, data }] of drawn) {
      plot.destroy();
      drawn.delete(place);
      draw(place, data);
    }
  });
}

async function refresh(group) {
  const reply = await fetch(group.dataset.charts, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!reply?.ok || reply.redirected) return; // to the login page
  const all = await reply.json();
  for (const place of group.querySelectorAll("[data-chart]")) draw(place, all[place.dataset.chart]);
}

function draw(place, data) {
  const existing = drawn.get(place);
  if (existing) {
    existing.data = data;
    existing.plot.setData(data);
    showValues(place, existing.plot, null);
    return;
  }
  if (data[0].length < 2) {
    place.innerHTML = '<p class="nothing">Not enough data yet.</p>';
    return;
  }
  place.replaceChildren();
  const plot = new uPlot(options(place), data, place);
  drawn.set(place, { plot, data });
  showValues(place, plot, null);
  new ResizeObserver(() => plot.setSize(sizeOf(place))).observe(place);
}

function sizeOf(place) {
  return { width: place.clientWidth, height: place.clientHeight };
}

function options(place) {
  const ink = resolved(place, "--ink-soft");
  const line = resolved(place, "--line");
  const colours = [resolved(place, "--accent"), resolved(place, place.dataset.chart === "throughput" ? "--error" : "--skipped")];
  const paths = isStepped(place.dataset.chart) ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const labels = place.dataset.labels.split(",");
  return {
    ...sizeOf(place),
    padding: [6, 28, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    hooks: { setCursor: [(plot) => showValues(place, plot, plot.cursor.idx)] },
    scales: { x: { range: timeRange }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, size: 28, values: (_, seconds, __, ___, step) => seconds.map((second) => moment(second, step)) }, { ...axis, size: 50, values: (_, ticks) => ticks.map(short) }],
    series: [{}, ...labels.map((label, place) => ({
      label, stroke: colours[place], width: 1.5, paths, points: { show: false },
      fill: place === 0 ? `color-mix(in srgb, ${colours[0]} 12%, transparent)` : undefined,
      spanGaps: true,
    }))],
  };
}

// Not the end that uPlot proposes, which is years away if all points are of the same moment.
export function timeRange(plot, first) {
  return [first, Math.max(plot.data[0].at(-1), first + SHORTEST_SECONDS)];
}

// Beside the heading: the names of the lines with their values at the pointer, else the latest.
function showValues(place, plot, index) {
  const at = index ?? plot.data[0].length - 1;
  const when = index === null || index === undefined ? "" : `${moment(plot.data[0][at], 1)} `;
  const parts = place.dataset.labels.split(",").map((label, line) => {
    const part = document.createElement("span");
    part.className = line ? "second" : "first";
    part.textContent = `${label} ${number(plot.data[line + 1][at])}`;
    return part;
  });
  place.parentElement.querySelector(".swatches").replaceChildren(when, ...parts);
}

function moment(seconds, step) {
  const time = new Date(seconds * 1000);
  if (step >= 86400) return time.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const shape = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return time.toLocaleTimeString(undefined, step < 60 ? { ...shape, second: "2-digit" } : shape);
}

// Resolves a custom property to a color that a canvas understands; the browser handles light-dark().
function resolved(place, name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  place.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e4 ? `${value / 1e3}k` : number(value);
}
