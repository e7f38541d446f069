// What a change to a run will do, in numbers, out of the events that the service foretells; and which work a fork
// repeats. Pure.
import type { Effect } from "./acts";
import type { Event, RunState } from "./fold";

const NAMED = 4;

/** `judge ×3, publish`: names in the order in which they come, each once. */
export function named(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const shown = [...counts].slice(0, NAMED).map(([name, count]) => (count === 1 ? name : `${name} ×${count.toLocaleString()}`));
  return counts.size > NAMED ? `${shown.join(", ")} and ${counts.size - NAMED} more` : shown.join(", ");
}

type Words = readonly [tone: Effect["tone"], one: string, many: string];

/** Events of visits, told with the nodes they are about, in this order. */
const OF_VISITS: readonly (readonly [types: readonly string[], words: Words])[] = [
  [["token.retry_scheduled"], ["retry", "visit tries again", "visits try again"]],
  [["token.completed"], ["done", "visit completes", "visits complete"]],
  [["token.failed", "token.timed_out"], ["fail", "visit fails", "visits fail"]],
  [["token.cancelled"], ["stop", "visit is cancelled", "visits are cancelled"]],
  [["token.input_set"], ["wait", "visit has another input at its next attempt", "visits have another input at their next attempt"]],
  [["token.created"], ["active", "visit is made", "visits are made"]],
  [["token.dispatched", "token.started"], ["active", "attempt begins, with its side effects", "attempts begin, with their side effects"]],
  [["gate.opened"], ["ask", "question is asked", "questions are asked"]],
  [["child.started"], ["active", "run of another workflow starts", "runs of other workflows start"]],
];

const OF_JOINS: Record<string, Words> = {
  "join.fired": ["done", "join is decided", "joins are decided"],
  "join.reopened": ["retry", "failed join waits again", "failed joins wait again"],
  "join.failed": ["fail", "join fails", "joins fail"],
};

const OF_THE_RUN: Record<string, Words> = {
  "run.forked": ["done", "new run is made; this one stays as it is", ""],
  "run.migrated": ["done", "run has another version", ""],
  "run.queued": ["wait", "run waits for its start", ""],
  "run.resumed": ["active", "run goes on", ""],
  "run.completed": ["done", "run completes", ""],
  "run.failed": ["fail", "run fails", ""],
  "run.paused": ["wait", "run stands still", ""],
};

const effect = ([tone, one, many]: Words, count: number, names = ""): Effect => ({ tone, count, words: `${count === 1 ? one : many}${names === "" ? "" : ` (${names})`}` });

/** The events that a change leads to at once, as effects. `state`: that before the change, which knows the nodes of its visits. */
export function foretold(events: readonly Event[], state: RunState): Effect[] {
  const made = new Map(events.filter((event) => event.type === "token.created").map((event) => [event["token"], event["node"] as string]));
  const nodeOf = (token: unknown): string => made.get(token) ?? state.visits.get(token as number)?.node ?? `visit ${String(token)}`;
  const found: Effect[] = [];
  for (const [type, words] of Object.entries(OF_THE_RUN)) if (events.some((event) => event.type === type)) found.push(effect(words, 1));
  const written = events.filter((event) => event.type === "context.updated").flatMap((event) => ((event["writes"] ?? []) as [(string | number)[], unknown][]).map(([path]) => path.join(".")));
  if (written.length > 0) found.push(effect(["done", "value is written", "values are written"], written.length, named(written)));
  for (const [types, words] of OF_VISITS) {
    const tokens = [...new Set(events.filter((event) => types.includes(event.type) && event["token"] !== undefined && event["arrival"] === undefined).map((event) => event["token"]))];
    if (tokens.length > 0) found.push(effect(words, tokens.length, named(tokens.map(nodeOf))));
  }
  for (const [type, words] of Object.entries(OF_JOINS)) {
    const targets = events.filter((event) => event.type === type).map((event) => String(event["target"]));
    if (targets.length > 0) found.push(effect(words, targets.length, named(targets)));
  }
  return found;
}

export interface Repeat {
  readonly node: string;
  /** What the node does, in short. */
  readonly words: string;
  /** Visits of it that worked after the point. */
  readonly visits: number;
}

interface Doing {
  readonly ref: string;
  readonly kind: string;
  readonly words: string;
}

/** Kinds of nodes that do nothing outside of the run. */
const QUIET = new Set(["pass", "waits"]);

/** The work that was done after an event, by node: a fork from there does it again where it goes the same way. */
export function repeatsAfter(events: readonly Event[], seq: number, state: RunState, nodes: readonly Doing[]): Repeat[] {
  const known = new Map(nodes.map((node) => [node.ref, node]));
  const worked = new Map<string, Set<unknown>>();
  for (let index = seq; index < events.length; index++) {
    const event = events[index] as Event;
    if (event.type !== "token.started" && event.type !== "token.dispatched") continue;
    const node = state.visits.get(event["token"] as number)?.node;
    if (node === undefined || QUIET.has(known.get(node)?.kind ?? "pass")) continue;
    worked.set(node, (worked.get(node) ?? new Set()).add(event["token"]));
  }
  return [...worked].map(([node, visits]) => ({ node, words: known.get(node)?.words ?? "", visits: visits.size }));
}
