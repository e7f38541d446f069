// Values that a person writes into the data of a run: rows of a place and a value, as text. Pure.

export interface WriteRow {
  readonly path: string;
  readonly text: string;
}

export const EMPTY_ROW: WriteRow = { path: "", text: "" };

export type Read = { readonly writes: Record<string, unknown>; readonly problem: null } | { readonly writes: null; readonly problem: string | null };

/** JSON that was typed; the problem says what is wrong. */
export function readJson(text: string): { value: unknown; problem: string | null } {
  try {
    return { value: JSON.parse(text) as unknown, problem: null };
  } catch (error) {
    return { value: undefined, problem: text.trim() === "" ? "nothing is written here: null, a number, \"text\", [ ] or { }" : (error as Error).message };
  }
}

/** The rows as a mapping. Rows without a place count for nothing; no rows at all are no problem, but nothing to write. */
export function readRows(rows: readonly WriteRow[]): Read {
  const writes: Record<string, unknown> = {};
  for (const { path, text } of rows) {
    const place = path.trim();
    if (place === "" && text.trim() === "") continue;
    if (place === "") return { writes: null, problem: "a value has no place" };
    if (Object.hasOwn(writes, place)) return { writes: null, problem: `${place} is there twice` };
    const { value, problem } = readJson(text);
    if (problem !== null) return { writes: null, problem: `${place}: ${problem}` };
    writes[place] = value;
  }
  return { writes, problem: null };
}

const MOST = 200;
const DEEP = 3;
const PLAIN = /^[A-Za-z_][\w-]*$/;

/** The places of a value that can be written to, with what is there: `state.order.total`. */
export function placesOf(value: unknown, place: string, deep = DEEP): [place: string, value: unknown][] {
  if (value === null || typeof value !== "object" || Array.isArray(value) || deep === 0) return [];
  const found: [string, unknown][] = [];
  for (const [key, below] of Object.entries(value)) {
    if (!PLAIN.test(key)) continue;
    found.push([`${place}.${key}`, below], ...placesOf(below, `${place}.${key}`, deep - 1));
    if (found.length >= MOST) break;
  }
  return found.slice(0, MOST);
}
