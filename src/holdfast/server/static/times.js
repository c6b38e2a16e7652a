// Shows UTC times in the reader's time zone; UTC remains in the tooltip.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

export function localTime(instant, now = new Date()) {
  if (instant.toDateString() === now.toDateString()) return clock.format(instant);
  const date = instant.getFullYear() === now.getFullYear() ? day : year;
  return `${date.format(instant)} ${clock.format(instant).slice(0, 5)}`;
}

export function showLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
    element.textContent = localTime(new Date(element.dateTime));
    element.dataset.local = "";
  }
}
