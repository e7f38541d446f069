// What is different among the visits of a stack: their items, the slow ones, how far apart they began. Pure.
import type { Visit } from "./fold";
import { spentOf } from "./run-look";

export interface Outlier {
  readonly visit: number;
  readonly ms: number;
  /** How many times the median it took. */
  readonly times: number;
}

export interface Variance {
  /** Items that occur, the most frequent first; the rest is counted. */
  readonly items: readonly { readonly text: string; readonly count: number }[];
  readonly distinct: number;
  readonly slow: readonly Outlier[];
  readonly median: number;
  /** From the first visit that began to the last, in milliseconds. */
  readonly stagger: number | null;
}

const SHOWN = 5;
const SLOW = 3; // times the median
const SLOW_LEAST_MS = 10; // below this a difference is noise

export function varianceOf(visits: readonly Visit[], items: readonly unknown[] | null, now: number): Variance {
  const counts = new Map<string, number>();
  for (const item of items ?? []) {
    const text = JSON.stringify(item) ?? "nothing";
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const worked = visits.map((visit) => ({ visit: visit.id, ms: spentOf(visit, now).run })).filter((one) => one.ms > 0).sort((a, b) => b.ms - a.ms);
  const median = worked[Math.floor(worked.length / 2)]?.ms ?? 0;
  const begun = visits.flatMap((visit) => visit.spans.find((span) => span.kind === "run")?.from ?? []);
  return {
    items: [...counts].sort(([, a], [, b]) => b - a).slice(0, SHOWN).map(([text, count]) => ({ text, count })), distinct: counts.size, median,
    slow: worked.filter((one) => one.ms >= SLOW * median && one.ms - median >= SLOW_LEAST_MS).slice(0, SHOWN).map((one) => ({ ...one, times: one.ms / Math.max(1, median) })),
    stagger: begun.length < 2 ? null : begun.reduce((most, at) => Math.max(most, at), -Infinity) - begun.reduce((least, at) => Math.min(least, at), Infinity),
  };
}
