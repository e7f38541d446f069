// What people type into forms, as values: durations, lists, and values that are JSON or plain text. Pure.

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `90 s`, `1h 30m`, `2 d` in milliseconds; null if it cannot be read or is nothing. */
export function durationGiven(text: string): number | null {
  const parts = [...text.trim().toLowerCase().matchAll(/(\d+(?:\.\d+)?)\s*(ms|min|[smhdw])\s*/gy)];
  if (parts.length === 0 || parts.reduce((sum, part) => sum + part[0].length, 0) !== text.trim().length) return null;
  const ms = Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit as string] as number), 0));
  return ms > 0 ? ms : null;
}

/** Milliseconds as `durationGiven` reads them: `1h 30m`. */
export function durationWritten(ms: number): string {
  let left = ms;
  const parts: string[] = [];
  for (const [unit, size] of [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1_000], ["ms", 1]] as const) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return parts.join(" ");
}

/** Words with spaces or commas between them. */
export const listGiven = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** A value that is JSON, or a text such as `$.body.id`; undefined for nothing. */
export function valueGiven(text: string): unknown {
  const given = text.trim();
  if (given === "") return undefined;
  try {
    return JSON.parse(given);
  } catch {
    if (/^[[{"]/.test(given)) throw new Error("this is not JSON");
    return given;
  }
}

/** A value as `valueGiven` reads it. */
export function valueWritten(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  try {
    JSON.parse(value);
    return JSON.stringify(value); // a text that would be read as a number or the like
  } catch {
    return /^[[{"]/.test(value.trim()) ? JSON.stringify(value) : value;
  }
}
