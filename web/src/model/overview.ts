// Numbers of the overview, out of rows that the service gave: starts and failures over time, what fails most.
import { ENDED, FAILED, type RunItem } from "./run-filter";

export interface Bucket {
  readonly from: number;
  readonly started: number;
  readonly failed: number;
}

const isFailed = (row: RunItem) => (FAILED as readonly string[]).includes(row.status);

/** Starts of a span in equal parts; a failed run counts where it started. */
export function buckets(rows: readonly RunItem[], from: number, to: number, count: number): Bucket[] {
  const width = (to - from) / count;
  const found = Array.from({ length: count }, (_, at) => ({ from: from + at * width, started: 0, failed: 0 }));
  for (const row of rows) {
    const bucket = found[Math.floor((row.started - from) / width)];
    if (bucket === undefined) continue;
    bucket.started += 1;
    if (isFailed(row)) bucket.failed += 1;
  }
  return found;
}

export interface Took {
  readonly from: number;
  readonly ended: number;
  readonly p50: number;
  readonly p95: number;
}

/** How long completed runs took, by when they ended, in equal parts of a span; parts without any are left out. */
export function durations(rows: readonly RunItem[], from: number, to: number, count: number): Took[] {
  const width = (to - from) / count;
  const found = new Map<number, number[]>();
  for (const row of rows) {
    if (row.status !== "completed" || row.ended === null || row.ended < from || row.ended > to) continue;
    const at = Math.min(count - 1, Math.floor((row.ended - from) / width));
    found.set(at, [...(found.get(at) ?? []), row.ended - row.started]);
  }
  return [...found].sort(([a], [b]) => a - b).map(([at, took]) => {
    const sorted = took.sort((a, b) => a - b);
    return { from: from + at * width, ended: sorted.length, p50: median(sorted) ?? 0, p95: sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] ?? 0 };
  });
}

export interface Failing {
  readonly workflow: string;
  readonly version: number;
  readonly failed: number;
  readonly ended: number;
  readonly last: RunItem;
}

/** Workflows whose runs failed, most failures first; `last` is the newest failed run. */
export function failsMost(rows: readonly RunItem[]): Failing[] {
  const found = new Map<string, { failed: number; ended: number; last: RunItem | null }>();
  for (const row of rows) {
    if (!ENDED.has(row.status)) continue;
    const one = found.get(row.workflow) ?? { failed: 0, ended: 0, last: null };
    one.ended += 1;
    if (isFailed(row)) {
      one.failed += 1;
      if (one.last === null || row.changed > one.last.changed) one.last = row;
    }
    found.set(row.workflow, one);
  }
  return [...found]
    .flatMap(([workflow, one]) => (one.last === null ? [] : [{ workflow, version: one.last.version, failed: one.failed, ended: one.ended, last: one.last }]))
    .sort((a, b) => b.failed - a.failed || b.last.changed - a.last.changed);
}

/** The value that half of them stay below; null of none. */
export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
