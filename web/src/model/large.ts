// Large values: a size and a preview stand for them, so that nothing on the page reads or shows the whole. Pure.

export const LARGE = 100_000; // characters of JSON
export const PREVIEW = 20_000;

export interface Large {
  readonly bytes: number;
  readonly preview: string;
}

/** What stands for a large value, if this does: `{"$large": {bytes, preview}}`, as the service and `shorten` write it. */
export function largeOf(value: unknown): Large | null {
  if (value === null || typeof value !== "object" || !Object.hasOwn(value, "$large")) return null;
  const large = (value as { $large: Partial<Large> | null }).$large;
  return typeof large?.bytes === "number" && typeof large.preview === "string" ? (large as Large) : null;
}

/** An event with what stands for its large values. Its lists are opened: the writes of an update keep their places. */
export function shorten<T extends object>(event: T): T {
  return Object.fromEntries(Object.entries(event).map(([name, value]) => [name, shortened(value, 3)])) as T;
}

function shortened(value: unknown, depth: number): unknown {
  if (value === null || (typeof value !== "object" && typeof value !== "string")) return value;
  const text = JSON.stringify(value);
  if (text.length <= LARGE) return value;
  if (depth > 0 && Array.isArray(value)) {
    const parts = value.map((part) => shortened(part, depth - 1));
    if (JSON.stringify(parts).length <= LARGE + 4 * PREVIEW) return parts;
  }
  return { $large: { bytes: text.length, preview: text.slice(0, PREVIEW) } };
}

/** `20.1 MB`. */
export const sizeWords = (bytes: number): string => (bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`);
