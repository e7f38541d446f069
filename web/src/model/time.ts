// Instants and durations in words: local time with its zone, and how long something took.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `350 ms`, `1.2 s`, `2 m 5 s`, `3 h 12 m`, `4 d 2 h`. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 999.5) return `${Math.round(value)} ms`;
  if (value < 9_950) return `${(value / 1_000).toFixed(1)} s`;
  if (value < MINUTE - 500) return `${Math.round(value / 1_000)} s`;
  const [big, unit, small, name] =
    value < HOUR ? ([MINUTE, "m", 1_000, "s"] as const) : value < DAY ? ([HOUR, "h", MINUTE, "m"] as const) : ([DAY, "d", HOUR, "h"] as const);
  const near = Math.max(value, MINUTE); // what rounds to a minute is one
  const whole = Math.floor(near / big);
  const rest = Math.floor((near % big) / small);
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${name}`;
}

const zoned = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/** `12:04:10 CET`, with the date in front when it is not today. */
export function instant(ms: number, now: number = Date.now()): string {
  const at = new Date(ms);
  const time = zoned.format(at);
  return at.toDateString() === new Date(now).toDateString() ? time : `${dated.format(at)}, ${time}`;
}

const minuteZoned = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** `12:04`, for the ticks of an axis. */
export const dayTime = (ms: number): string => minutes.format(new Date(ms));

const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** `12:04:10`, where the zone stands beside it. */
export const clockTime = (ms: number): string => seconds.format(new Date(ms));

/** `12:04:10 CET`, whatever the day. */
export const timeOfDay = (ms: number): string => zoned.format(new Date(ms));

/** `17 Nov`, when it is not today. */
export const otherDay = (ms: number, now: number = Date.now()): string | null => (new Date(ms).toDateString() === new Date(now).toDateString() ? null : day.format(new Date(ms)));

/** An instant near now, short: `17:00 CET`, `Tue 09:00 CET`, `3 Dec`. */
export function soon(ms: number, now: number = Date.now()): string {
  const at = new Date(ms);
  if (at.toDateString() === new Date(now).toDateString()) return minuteZoned.format(at);
  return Math.abs(ms - now) < 6 * DAY ? `${weekday.format(at)} ${minuteZoned.format(at)}` : day.format(at);
}

/** `3 m ago`, `in 2 h`. */
export function relative(ms: number, now: number = Date.now()): string {
  const away = ms - now;
  if (Math.abs(away) < 1_000) return "now";
  return away < 0 ? `${duration(-away)} ago` : `in ${duration(away)}`;
}

/** ISO 8601 in UTC: what copying a time gives. */
export const iso = (ms: number): string => new Date(ms).toISOString();
