// What a simulated run waits for when nothing more happens by itself, and the step of a scenario that would go on.
import type { SimEvent } from "./playing";

export interface Wait {
  readonly node: string;
  /** Its address in a scenario: `node`, or `node[i]` in a group. */
  readonly address: string;
  readonly reason: string;
  readonly signal: string | null;
}

const OVER = new Set(["token.completed", "token.failed", "token.timed_out", "token.cancelled", "token.closed", "token.resumed"]);
/** Reasons that something outside ends. */
const OUTSIDE = new Set(["human", "signal", "external"]);

function addressOf(made: SimEvent): string {
  const indices = [...String(made["path"] ?? "").matchAll(/\[(\d+)\]/g)].map((found) => found[1]);
  const frames = Array.isArray(made["frames"]) ? made["frames"].length : 0;
  return frames === 0 || indices.length === 0 ? String(made["node"]) : `${String(made["node"])}[${indices.slice(-frames).join(".")}]`;
}

/** The visits that wait at the end of a history; those that only a step ends come first. */
export function waitsOf(history: readonly SimEvent[]): Wait[] {
  const made = new Map<unknown, SimEvent>();
  const open = new Map<unknown, SimEvent>();
  for (const event of history) {
    if (event.type === "token.created") made.set(event["token"], event);
    if (event.type === "token.waiting") open.set(event["token"], event);
    if (OVER.has(event.type)) open.delete(event["token"]);
  }
  const found = [...open].flatMap(([token, event]) => {
    const own = made.get(token);
    if (own === undefined) return [];
    const detail = (event["detail"] ?? {}) as { signal?: unknown };
    return [{ node: String(own["node"]), address: addressOf(own), reason: String(event["reason"]), signal: typeof detail.signal === "string" ? detail.signal : null }];
  });
  return found.sort((a, b) => Number(OUTSIDE.has(b.reason)) - Number(OUTSIDE.has(a.reason)));
}

export type Kind = "gate" | "signal" | "callback" | "time";
export const kindOf = (wait: Wait | undefined): Kind => (wait?.reason === "human" ? "gate" : wait?.reason === "signal" ? "signal" : wait?.reason === "external" ? "callback" : "time");

/** The step of a scenario for something that happens from outside. */
export function stepOf(kind: Kind, wait: Wait | undefined, data: unknown): Record<string, unknown> {
  if (kind === "gate") return { gate: wait?.address ?? "", data };
  if (kind === "callback") return { callback: wait?.address ?? "", output: data };
  if (kind === "time") return { advance_ms: Number(data) };
  return { signal: { name: wait?.signal ?? "", data } };
}

/** The steps with one more. A run without steps was driven by itself: with steps, the time it took has to be said. */
export const withStep = (steps: readonly unknown[] | null, elapsed: number, step: Record<string, unknown>): unknown[] => [...(steps ?? (elapsed > 0 ? [{ advance_ms: elapsed }] : [])), step];

export interface Ended {
  readonly status: string | null;
  readonly output: unknown;
  readonly error: { readonly kind?: string } | null;
}

/** What a scenario expects so that the same again passes. */
export function expectOf(history: readonly SimEvent[], { status, output, error }: Ended): Record<string, unknown> {
  const visits: Record<string, number> = {};
  const nodes = new Map<unknown, string>();
  const begun = new Set<unknown>();
  for (const event of history) {
    if (event.type === "token.created") nodes.set(event["token"], String(event["node"]));
    const node = nodes.get(event["token"]);
    if ((event.type !== "token.started" && event.type !== "token.completed" && event.type !== "token.dispatched") || node === undefined || begun.has(event["token"])) continue;
    begun.add(event["token"]);
    visits[node] = (visits[node] ?? 0) + 1;
  }
  return { status, ...(error?.kind === undefined ? {} : { error: { kind: error.kind } }), ...(output === null || output === undefined ? {} : { output }), visits };
}
