// What a run may spend and has spent, in words, and what a person adds to it. Pure.
import { durationGiven } from "./given";
import { duration } from "./time";

export const PARTS = ["cost", "tokens", "visits", "elapsed_ms"] as const;

/** `12.5 of cost`, `40,000 tokens`, `3 visits`, `2 h`. */
export function amount(part: string, value: number): string {
  if (part === "elapsed_ms") return duration(value);
  const shown = value.toLocaleString(undefined, { maximumFractionDigits: 4 });
  return part === "cost" ? `${shown} of cost` : `${shown} ${part}`;
}

/** The fields of a form as the amounts to add; null: nothing is added, or something cannot be read. */
export function raised(given: Readonly<Record<string, string>>): { body: Record<string, number> | null; problem: string | null } {
  const body: Record<string, number> = {};
  for (const [part, text] of Object.entries(given)) {
    if (text.trim() === "") continue;
    const value = part === "elapsed_ms" ? durationGiven(text) : Number(text.replaceAll(",", ""));
    if (value === null || !Number.isFinite(value) || value <= 0 || (part !== "cost" && part !== "elapsed_ms" && !Number.isInteger(value))) return { body: null, problem: `${part}: ${text} is no amount that can be added` };
    body[part] = value;
  }
  return { body: Object.keys(body).length === 0 ? null : body, problem: null };
}
