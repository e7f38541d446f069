// A folded run in the shape of `GET /runs/{run}/state`, so that both can be compared and told apart point by point.
import { rootOf } from "./scope";
import { frameKey, isLive, type Arrival, type RunState, type Visit } from "./state";

const sorted = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b);

export interface ViewScope {
  group: number | null;
  branch: number | null;
  state: unknown;
  output: unknown;
  nodes: unknown;
}

export function scopeView(state: RunState, key: string): ViewScope {
  const scope = state.scopes.get(key);
  const [group = null, branch = null] = key === "" ? [] : key.split(".").map(Number);
  return { group, branch, state: rootOf(scope, "state"), output: rootOf(scope, "output"), nodes: rootOf(scope, "nodes") };
}

export const waitingFor = (visit: Visit): string | null =>
  visit.status === "dispatched" ? "queue" : visit.status === "waiting" ? visit.waiting : null;

function visitView(visit: Visit) {
  const { id, node, path, status, attempt, attempts, error, detail, compensation } = visit;
  return { visit: id, node, path, status, waiting_for: waitingFor(visit), attempt, attempts, error, detail, compensation };
}

function groupJoins(state: RunState) {
  return sorted(state.groups.keys()).flatMap((id) => {
    const group = state.groups.get(id);
    return (group?.sites ?? []).map((site) => ({ join: `${id}:${site.target}`, node: site.target, group: id, status: site.status, arrived: branchesAt(state, id, site.target) }));
  });
}

/** The branches of a group that wait at one of its joins. */
export function branchesAt(state: RunState, group: number, target: string): number[] {
  const found = new Set<number>();
  for (const arrival of state.arrivals.values()) {
    if (arrival.group !== group || arrival.target !== target) continue;
    const frame = arrival.frames.find(([id]) => id === group);
    if (frame !== undefined) found.add(frame[1]);
  }
  return sorted(found);
}

function nodeJoins(state: RunState) {
  const held = new Map<string, Arrival[]>();
  for (const arrival of state.arrivals.values()) {
    if (arrival.group !== null) continue;
    const name = arrival.item === null ? arrival.target : `${arrival.target}@${frameKey(arrival.item)}`;
    held.set(name, [...(held.get(name) ?? []), arrival]);
  }
  return [...held].map(([join, arrivals]) => ({ join, node: arrivals[0]?.target ?? "", group: null, status: "open", arrived: sorted(arrivals.map((arrival) => arrival.token)) }));
}

function gateView(visit: Visit) {
  const claimed = (visit.detail as { claimed_by?: string } | null)?.claimed_by ?? null;
  const asked = visit.asked;
  return { visit: visit.id, node: visit.node, title: asked?.["title"] ?? null, assign: asked?.["assign"] ?? null, claimed_by: claimed, opened: asked?.at ?? 0, due: asked?.["due"] ?? null };
}

/** The state as data. `visits` has the live ones and those that have failed for good; `groups` also those that are over. */
export function viewOf(state: RunState) {
  const visits = sorted(state.visits.keys()).map((id) => state.visits.get(id) as Visit);
  return {
    run: state.run, seq: state.seq, at: state.at, status: state.status, input: state.input, output: state.output, error: state.error,
    scope: scopeView(state, ""),
    branches: [...state.scopes.keys()].filter((key) => key !== "").map((key) => scopeView(state, key)),
    visits: visits.filter((visit) => isLive(visit) || visit.status === "failed" || visit.status === "timed_out").map(visitView),
    counts: Object.fromEntries([...state.counts].sort(([a], [b]) => (a < b ? -1 : 1))),
    groups: sorted(state.groups.keys()).map((id) => {
      const { names, node, path, open, total, begun, failed } = state.groups.get(id) as NonNullable<ReturnType<RunState["groups"]["get"]>>;
      return { group: id, names: names.map((name) => name.slice(name.indexOf(":") + 1)), node, path, open, total, begun, failed: sorted(failed.keys()) };
    }),
    joins: [...groupJoins(state), ...nodeJoins(state)],
    gates: visits.filter((visit) => visit.gate === "open").map(gateView),
    timers: sorted(state.timers.keys()).map((id) => {
      const timer = state.timers.get(id) as NonNullable<ReturnType<RunState["timers"]["get"]>>;
      return { timer: id, due: timer.due, purpose: timer.purpose, visit: timer.token, group: timer.group, target: timer.target };
    }),
    signals: [...state.signals.values()].map((event) => ({ signal: event["signal"], name: event["name"], key: event["key"] ?? null, data: event["data"] ?? null, at: event.at })),
  };
}
