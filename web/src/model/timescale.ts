// Time to pixels and back: linear, except where nothing happens for long. Such a stretch folds into a fixed width.
import type { Event, RunState } from "./fold";

export interface Fold {
  readonly from: number;
  readonly to: number;
  readonly x: number;
}

export interface TimeScale {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly folds: readonly Fold[];
  x(at: number): number;
  at(x: number): number;
}

export const FOLD_PX = 40;
const LEAST_FOLD_MS = 20_000;

/** Stretches between two instants in which nothing works and nothing happens. */
export function idleOf(events: readonly Event[], state: RunState, from: number, to: number): [number, number][] {
  const quiet: [number, number][] = [];
  let last = from;
  for (const event of events) { // in order of time
    if (event.at - last >= LEAST_FOLD_MS) quiet.push([last, event.at]);
    last = Math.max(last, event.at);
  }
  if (to - last >= LEAST_FOLD_MS) quiet.push([last, to]);
  if (quiet.length === 0) return [];
  const work: [number, number][] = [];
  for (const visit of state.visits.values()) for (const span of visit.spans) if (span.kind === "run" && (span.to ?? to) - span.from >= LEAST_FOLD_MS) work.push([span.from, span.to ?? to]);
  return quiet.filter(([a, b]) => !work.some(([begin, end]) => begin <= a && end >= b));
}

/** The idle stretches that are worth folding: each is long beside what is left. */
export function foldsOf(idle: readonly (readonly [number, number])[], total: number): [number, number][] {
  const sorted = [...idle].sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
  let left = total;
  const found: [number, number][] = [];
  for (const [from, to] of sorted.slice(0, 12)) {
    const length = to - from;
    if (length < 0.18 * left) break;
    left -= length;
    const margin = Math.min(length * 0.1, Math.max(500, left * 0.02));
    found.push([from + margin, to - margin]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

/** A scale over `width` pixels. `folds`: stretches in order that take FOLD_PX each. */
export function timeScale(from: number, to: number, width: number, folds: readonly (readonly [number, number])[]): TimeScale {
  const end = Math.max(to, from + 1);
  const folded = folds.reduce((sum, [a, b]) => sum + (b - a), 0);
  const pxPerMs = Math.max(1, width - folds.length * FOLD_PX) / Math.max(1, end - from - folded);
  const marks: { at: number; x: number }[] = [{ at: from, x: 0 }];
  const shown: Fold[] = [];
  for (const [a, b] of folds) {
    const last = marks[marks.length - 1] as { at: number; x: number };
    const x = last.x + (a - last.at) * pxPerMs;
    marks.push({ at: a, x }, { at: b, x: x + FOLD_PX });
    shown.push({ from: a, to: b, x });
  }
  const last = marks[marks.length - 1] as { at: number; x: number };
  marks.push({ at: end, x: last.x + (end - last.at) * pxPerMs });
  const between = (value: number, read: "at" | "x", give: "at" | "x"): number => {
    let index = 1;
    while (index < marks.length - 1 && (marks[index] as { at: number; x: number })[read] < value) index++;
    const [a, b] = [marks[index - 1] as { at: number; x: number }, marks[index] as { at: number; x: number }];
    return b[read] === a[read] ? a[give] : a[give] + ((value - a[read]) / (b[read] - a[read])) * (b[give] - a[give]);
  };
  return { from, to: end, width, folds: shown, x: (at) => between(at, "at", "x"), at: (x) => between(x, "x", "at") };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000, 604_800_000, 2_592_000_000];

/** Instants that are worth a line, at least `gap` pixels apart and none inside a fold. */
export function ticksOf(scale: TimeScale, gap = 90): number[] {
  const folded = scale.folds.reduce((sum, fold) => sum + (fold.to - fold.from), 0);
  const msPerPx = (scale.to - scale.from - folded) / Math.max(1, scale.width - scale.folds.length * FOLD_PX);
  const step = STEPS.find((one) => one >= msPerPx * gap) ?? (STEPS.at(-1) as number);
  const found: number[] = [];
  let [at, last] = [Math.ceil(scale.from / step) * step, -Infinity];
  for (let turn = 0; at <= scale.to && turn < 500; turn++) {
    const fold = scale.folds.find((one) => at > one.from && at < one.to);
    if (fold !== undefined) {
      at = Math.ceil(fold.to / step) * step;
      continue;
    }
    const x = scale.x(at);
    if (x - last >= gap * 0.7 && scale.folds.every((one) => Math.abs(one.x + FOLD_PX / 2 - x) > 55)) {
      found.push(at);
      last = x;
    }
    at += step;
  }
  return found;
}
