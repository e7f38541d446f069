// Why a run waits for its start, and for how long still, in words. Pure.
import { duration, soon } from "./time";

export interface Queued {
  readonly run: string;
  readonly position: number;
  readonly why: string;
  readonly key: unknown;
  readonly priority: number;
  readonly since: number;
  readonly due: number | null;
  readonly items: number;
}

const WHY: Record<string, string> = {
  concurrency: "as many runs as may be live at once are",
  rate: "as many runs as may start in the time have",
  debounce: "it waits whether another start follows",
  batch: "it gathers starts",
};

const keyWords = (key: unknown): string => (key === null || key === undefined ? "" : ` with the key ${typeof key === "string" ? key : JSON.stringify(key)}`);

/** `next to start: as many runs as may be live at once are, with the key a`. */
export function queuedWords(one: Queued, now: number): string {
  const why = `${WHY[one.why] ?? one.why}${keyWords(one.key)}`;
  if (one.why === "batch") return `${why}: ${one.items === 1 ? "1 so far" : `${one.items} so far`}${one.due === null ? "" : `, starts at latest ${soon(one.due, now)}`}`;
  if (one.due !== null) return `${why}; starts ${one.due > now ? `in ${duration(one.due - now)}` : "now"}`;
  return `${one.position === 1 ? "next to start" : `${one.position}. in line`}: ${why}`;
}
