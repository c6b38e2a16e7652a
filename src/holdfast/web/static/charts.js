// Charts of plain columns of numbers. Drawn again while the page is open and seen.
import { number } from "./words.js";

const AGAIN_SECONDS = 5;
const STEPPED = new Set(["pace"]);
const drawn = new Map();

export function drawCharts() {
  for (const group of document.querySelectorAll("[data-charts]")) {
    refresh(group);
    if (group.hasAttribute("data-again")) {
      setInterval(() => document.hidden || refresh(group), AGAIN_SECONDS * 1000);
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
  if (!reply?.ok) return;
  const all = await reply.json();
  for (const place of group.querySelectorAll("[data-chart]")) draw(place, all[place.dataset.chart]);
}

function draw(place, data) {
  const known = drawn.get(place);
  if (known) {
    known.data = data;
    known.plot.setData(data);
    return;
  }
  if (data[0].length < 2) {
    place.innerHTML = '<p class="nothing">Not enough to draw yet.</p>';
    return;
  }
  place.replaceChildren();
  const plot = new uPlot(options(place), data, place);
  drawn.set(place, { plot, data });
  new ResizeObserver(() => plot.setSize(sizeOf(place))).observe(place);
}

function sizeOf(place) {
  return { width: place.clientWidth, height: place.clientHeight };
}

function options(place) {
  const style = getComputedStyle(document.documentElement);
  const ink = resolved(place, "--ink-soft");
  const line = resolved(place, "--line");
  const colours = [resolved(place, "--accent"), resolved(place, place.dataset.chart === "throughput" ? "--error" : "--skipped")];
  const paths = STEPPED.has(place.dataset.chart) ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const labels = place.dataset.labels.split(",");
  return {
    ...sizeOf(place),
    padding: [6, 6, 0, 0],
    legend: { live: false, show: labels.length > 1 },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, size: 28 }, { ...axis, size: 44, values: (_, ticks) => ticks.map(short) }],
    series: [{}, ...labels.map((label, place) => ({
      label, stroke: colours[place], width: 1.5, paths, points: { show: false },
      fill: place === 0 ? `color-mix(in srgb, ${colours[0]} 12%, transparent)` : undefined,
      value: (_, value) => number(value), spanGaps: true,
    }))],
  };
}

// A custom property as a colour that a canvas understands: light-dark() is resolved by the browser.
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
