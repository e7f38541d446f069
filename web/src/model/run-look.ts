// How a visit of a folded run is shown: its tone, and one sentence about what it waits for.
import type { Visit } from "./fold";
import { visitLook, type Look } from "./states";
import { duration, soon } from "./time";

/** The look of a visit. A wait for the next attempt is told apart from any other timer. */
export function lookOf(visit: Visit): Look {
  if (visit.status === "pending") return visitLook("created");
  if (visit.status === "waiting" && visit.waiting === "timer" && visit.error !== null) return visitLook("waiting", "backoff");
  return visitLook(visit.status, visit.waiting);
}

/** `[5][112]`: the branches around a visit, outermost first. */
export const branchesOf = (visit: Visit): string => visit.frames.map(([, branch]) => `[${branch}]`).join("");

/** What a person calls a visit: its node and the branches it stands in, `judge[5][112]`. */
export const visitName = (visit: Visit): string => `${visit.node}${branchesOf(visit)}`;

/** `waits for a person`: by the reason of a wait. */
export const WAITS: Record<string, string> = {
  siblings: "for its siblings",
  human: "for a person",
  timer: "for a time",
  signal: "for a signal",
  subworkflow: "for a run it called",
  external: "for an answer",
  queue: "in a queue",
  mutex: "for its turn",
  trigger: "for a trigger",
};

/** `until 14:00 CET`, `for the signal paid`: what a waiting visit waits for. */
export function waitWords(visit: Visit, now: number): string {
  const detail = (visit.detail ?? {}) as Record<string, unknown>;
  if (visit.waiting === "timer" && visit.error !== null) return visit.until === null ? "tries again soon" : `again in ${duration(Math.max(0, visit.until - now))}`;
  if (visit.waiting === "signal" && typeof detail["signal"] === "string") return `for the signal ${detail["signal"]}`;
  if (visit.waiting === "human") return people(visit) ?? "for a person";
  if (visit.waiting === "mutex" && typeof detail["mutex"] === "string") return `for the mutex ${detail["mutex"]}`;
  if (visit.until !== null) return `until ${soon(visit.until, now)}`;
  return WAITS[visit.waiting ?? ""] ?? "";
}

/** Who is asked by a gate. */
export function people(visit: Visit): string | null {
  const claimed = (visit.detail as { claimed_by?: unknown } | null)?.claimed_by;
  if (typeof claimed === "string") return claimed;
  const assign = visit.asked?.["assign"];
  if (typeof assign === "string") return assign;
  if (Array.isArray(assign)) return assign.join(", ");
  const { users = [], groups = [] } = (assign ?? {}) as { users?: string[]; groups?: string[] };
  return users.length + groups.length > 0 ? [...users, ...groups].join(", ") : null;
}

/** The time a visit has spent in a queue, waiting, at work, held at a join; they sum to its duration. */
export function spentOf(visit: Visit, now: number): { queue: number; wait: number; run: number; held: number; total: number } {
  const spent = { queue: 0, wait: 0, run: 0, held: 0, total: 0 };
  for (const span of visit.spans) {
    const ms = Math.max(0, (span.to ?? now) - span.from);
    spent[span.kind] += ms;
    spent.total += ms;
  }
  return spent;
}

/** How long its work took, or takes. */
export const workedFor = (visit: Visit, now: number): string => {
  const { run, wait, total } = spentOf(visit, now);
  return duration(run > 0 ? run : wait > 0 ? wait : total);
};
