// Times in the reader's language and time zone: how long ago, and from a week on the date.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const REFRESH = 30_000;
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });

export function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) showTime(time);
}

function showTime(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  time.title = full.format(at);
  time.textContent = time.dataset.style === "day" ? day.format(at) : relative(at);
}

function relative(at) {
  const seconds = Math.round((Date.now() - at.getTime()) / 1000);
  if (seconds < MINUTE) return "just now";
  if (seconds < HOUR) return ago.format(-Math.floor(seconds / MINUTE), "minute");
  if (seconds < DAY) return ago.format(-Math.floor(seconds / HOUR), "hour");
  if (seconds < 7 * DAY) return ago.format(-Math.floor(seconds / DAY), "day");
  return day.format(at);
}

setInterval(() => showTimes(document), REFRESH);
