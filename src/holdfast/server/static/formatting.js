// Figures and durations, formatted as on the server.
export function number(value) {
  if (value === null || value === undefined) return "–";
  const digits = !Number.isInteger(value) && Math.abs(value) < 10 ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(Math.floor(whole / 60), "min", whole % 60, "s", whole < 600);
  if (whole < 172800) return two(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min", true);
  return two(Math.floor(whole / 86400), "days", Math.floor((whole % 86400) / 3600), "h", whole < 864000);
}

function two(large, largeUnit, small, smallUnit, both) {
  return both && small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}
