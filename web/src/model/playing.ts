// A simulated history, step by step: what happened at an event, and how many visits each node has had by then.

export interface SimEvent {
  readonly seq: number;
  readonly at: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Count {
  done: number;
  active: number;
  failed: number;
}

const ENDS: Record<string, "done" | "failed" | "gone"> = { "token.completed": "done", "token.failed": "failed", "token.timed_out": "failed", "token.cancelled": "gone", "token.closed": "gone" };

/** Visits per node after the first `steps` events. */
export function countsAt(history: readonly SimEvent[], steps: number): Map<string, Count> {
  const nodes = new Map<unknown, string>();
  const counts = new Map<string, Count>();
  const open = new Set<unknown>();
  for (const event of history.slice(0, steps)) {
    if (event.type === "token.created") {
      const node = String(event["node"]);
      nodes.set(event["token"], node);
      open.add(event["token"]);
      const count = counts.get(node) ?? { done: 0, active: 0, failed: 0 };
      count.active += 1;
      counts.set(node, count);
    }
    const end = ENDS[event.type];
    const node = nodes.get(event["token"]);
    const count = node === undefined ? undefined : counts.get(node);
    if (end === undefined || count === undefined || !open.delete(event["token"])) continue;
    count.active -= 1;
    if (end !== "gone") count[end] += 1;
  }
  return counts;
}

/** Events that a person steps through: the first of a run, and what begins, waits or ends at a node. */
export const isStep = (event: SimEvent): boolean => event.type.startsWith("run.") || event.type === "token.created" || ENDS[event.type] !== undefined || event.type.startsWith("group.") || event.type.startsWith("gate.") || event.type === "token.waiting";

/** An event in words. */
export function eventWords(event: SimEvent, history: readonly SimEvent[]): string {
  const made = history.find((one) => one.type === "token.created" && one["token"] === event["token"]);
  const node = typeof event["node"] === "string" ? event["node"] : made === undefined ? "" : String(made["node"]);
  const what = (event.type.split(".")[1] ?? event.type).replaceAll("_", " ");
  const output = event["output"] === undefined ? "" : ` with ${short(event["output"])}`;
  const subject = event.type.startsWith("run.") ? "the run" : event.type.startsWith("group.") ? `a group of ${node || "branches"}` : node;
  return `${subject} ${what}${output}`.trim();
}

const short = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
};

/** The time of the virtual clock since the start, as `00:00:01.200`. */
export function clockAt(history: readonly SimEvent[], steps: number): string {
  const first = history[0]?.at ?? 0;
  const ms = Math.max(0, (history[Math.max(0, steps - 1)]?.at ?? first) - first);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(ms / 3_600_000))}:${two(Math.floor(ms / 60_000) % 60)}:${two(Math.floor(ms / 1_000) % 60)}.${String(ms % 1_000).padStart(3, "0")}`;
}
