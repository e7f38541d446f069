// What an edge of the graph shows of a run: taken or not, how often, and why. Pure.
import type { Folding, RunState, Visit } from "./fold";
import { instant } from "./time";

export interface EdgeGiven {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly on: string;
  readonly condition: string | null;
  readonly tier: number;
  readonly loop_max: number | null;
  readonly replicates: boolean;
  readonly triggered: boolean;
  readonly back: boolean;
  readonly words: readonly string[];
}

export type Verdict = "open" | "taken" | "not";

export interface EdgeSummary {
  readonly verdict: Verdict;
  readonly count: number;
  readonly fails: boolean;
  readonly label: string;
}

const isOver = (visit: Visit, on: string): boolean =>
  on === "failure" ? visit.status === "failed" || visit.status === "timed_out" : on === "always" ? visit.ended !== null : visit.status === "completed" || visit.held;

/** Whether an edge was taken; not taken: its source has ended a visit the way the edge asks for, and took another one. */
export function edgeSummary(state: RunState, edge: EdgeGiven): EdgeSummary {
  const count = state.edges.get(edge.id)?.count ?? 0;
  const ids = state.nodes.get(edge.source) ?? [];
  const refused = count === 0 && !edge.triggered && ids.some((id) => isOver(state.visits.get(id) as Visit, edge.on));
  const fails = edge.on === "failure";
  const loop = edge.back && edge.loop_max !== null ? `${count} of ${edge.loop_max}` : edge.back && count > 0 ? `×${count}` : "";
  const label = fails && count > 0 ? `${count.toLocaleString()} failed` : loop !== "" ? loop : count > 1 ? `×${count.toLocaleString()}` : "";
  return { verdict: count > 0 ? "taken" : refused ? "not" : "open", count, fails, label };
}

const PATH = /\b(?:state|output|input)(?:\.[A-Za-z_]\w*|\[\d+\])+/g;

/** The values that a condition read, as they were at an event. */
export function valuesRead(condition: string, state: RunState): [path: string, value: unknown][] {
  const scope = (state.scopes.get("") ?? {}) as Record<string, unknown>;
  const roots: Record<string, unknown> = { state: scope["state"], output: scope["output"], input: state.input };
  return [...new Set(condition.match(PATH) ?? [])].slice(0, 4).map((path) => {
    const value = path.split(/[.[\]]+/).filter(Boolean).reduce<unknown>((here, key) => (here as Record<string, unknown> | null | undefined)?.[key], roots);
    return [path, value];
  });
}

export interface EdgeWhy {
  readonly title: string;
  readonly condition: string | null;
  readonly outcome: string | null;
  readonly values: readonly (readonly [string, unknown])[];
  readonly foot: string;
}

/** Why an edge was taken or not, for a person. */
export function edgeWhy(folding: Folding, state: RunState, edge: EdgeGiven, now: number, all: readonly EdgeGiven[] = []): EdgeWhy {
  const { verdict, count } = edgeSummary(state, edge);
  const use = state.edges.get(edge.id);
  const last = verdict === "taken" ? use?.last : lastEnd(state, edge);
  const seq = last?.seq ?? 0;
  const values = edge.condition !== null && seq > 0 ? valuesRead(edge.condition, folding.at(seq)) : [];
  const outcome = edge.condition === null ? null : verdict === "taken" ? "was true" : verdict === "not" ? refusal(state, edge, all) : "is not decided yet";
  const foot = [`tier ${edge.tier}`, edge.on === "failure" ? "on failure" : null, last === undefined ? null : instant(last.at, now)].filter(Boolean).join(" · ");
  const title = verdict === "taken" ? (count > 1 ? `Taken ${count} times` : "Taken") : verdict === "not" ? "Not taken" : "Not decided yet";
  return { title, condition: edge.condition, outcome, values, foot };
}

/** A condition of the first tier that was asked was false; one behind it was not asked. */
function refusal(state: RunState, edge: EdgeGiven, all: readonly EdgeGiven[]): string {
  const taken = all.filter((one) => one.source === edge.source && one.on === edge.on && state.edges.has(one.id)).map((one) => one.tier);
  const first = Math.min(...taken);
  return taken.length > 0 && edge.tier > first ? `was not asked: tier ${first} came first` : "was false";
}

function lastEnd(state: RunState, edge: EdgeGiven): { seq: number; at: number } | undefined {
  const id = (state.nodes.get(edge.source) ?? []).findLast((one) => isOver(state.visits.get(one) as Visit, edge.on));
  const visit = id === undefined ? undefined : state.visits.get(id);
  return visit?.endedSeq == null || visit.ended === null ? undefined : { seq: visit.endedSeq, at: visit.ended };
}
