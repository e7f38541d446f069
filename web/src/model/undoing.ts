// Undoing a run: how far it has come, what stopped it, and what an operator's act will do, in numbers. Pure.
import type { Effect } from "./acts";
import type { Compensation, RunState } from "./fold";

export interface Undoing {
  readonly failed: readonly Compensation[];
  readonly running: number;
  readonly undone: number;
  readonly skipped: number;
  /** Not begun yet. */
  readonly left: number;
  readonly total: number;
}

const UNDONE = new Set(["compensating", "compensated", "compensation_failed"]);

/** How far undoing a run has come; null while nothing is undone. */
export function undoingOf(state: RunState): Undoing | null {
  if (!UNDONE.has(state.status) || state.compensations.size === 0) return null;
  const all = [...state.compensations.values()].sort((a, b) => b.record - a.record); // the newest is undone first
  const count = (status: Compensation["status"]) => all.filter((one) => one.status === status).length;
  return { failed: all.filter((one) => one.status === "failed"), running: count("running"), undone: count("completed"), skipped: count("skipped"), left: count("recorded"), total: all.length };
}

/** `1 of 3 visits undone · 1 failed · 1 not begun`. */
export function undoingWords({ failed, running, undone, skipped, left, total }: Undoing): string {
  const parts: [number, string][] = [[failed.length, "failed"], [running, "being undone now"], [skipped, "skipped"], [left, "not begun"]];
  return [`${undone} of ${total} ${total === 1 ? "visit" : "visits"} undone`, ...parts.filter(([count]) => count > 0).map(([count, words]) => `${count} ${words}`)].join(" · ");
}

/** What a visit is called: its node, and its branch if it is in one. */
export function placeOf({ node, path }: { readonly node: string; readonly path: string }): string {
  return path === "root" ? node : `${node} at ${path}`;
}

const line = (tone: Effect["tone"], count: number, one: string, many: string): Effect[] => (count === 0 ? [] : [{ tone, count, words: count === 1 ? one : many }]);

function others(undoing: Undoing): Effect[] {
  return [
    ...line("fail", undoing.failed.length - 1, "other visit stays failed", "other visits stay failed"),
    ...line("done", undoing.undone, "visit is undone already", "visits are undone already"),
  ];
}

/** Trying a compensation that failed once more. */
export function retryUndoEffects(state: RunState): Effect[] {
  const undoing = undoingOf(state);
  if (undoing === null) return [];
  return [{ tone: "retry", count: 1, words: "compensation runs again" }, ...line("undo", undoing.left, "visit is undone after it", "visits are undone after it"), ...others(undoing)];
}

/** Leaving a visit as it is, and going on with the others. */
export function skipUndoEffects(state: RunState): Effect[] {
  const undoing = undoingOf(state);
  if (undoing === null) return [];
  return [{ tone: "stop", count: 1, words: "visit stays as it is, not undone" }, ...line("undo", undoing.left, "visit is undone next", "visits are undone next"), ...others(undoing)];
}
