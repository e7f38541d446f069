// A state of the service as a folded state, for a large run whose history is still being read. It has what the service
// keeps: live visits, groups under way, joins, gates, timers. Visits that have ended are only counted.
import { emptyState, type RunState, type Visit } from "./state";

interface Given {
  run: string;
  seq: number;
  at: number;
  status: string;
  input: unknown;
  output: unknown;
  error: unknown;
  scope: { state: unknown; output: unknown; nodes: unknown };
  visits: { visit: number; node: string; path: string; status: string; waiting_for: string | null; attempt: number; attempts: number; error: unknown; detail: unknown; compensation: boolean }[];
  counts: Record<string, number>;
  groups: { group: number; names: string[]; node: string; path: string; open: boolean; total: number; begun: number; failed: number[] }[];
  joins: { join: string; node: string; group: number | null; status: string; arrived: number[] }[];
  gates: { visit: number; opened: number; title: string | null; assign: unknown; due: number | null }[];
  timers: { timer: number; due: number; purpose: string; visit: number | null; group: number | null; target: string | null }[];
}

/** `like`: what the history has told so far, for what the service's state does not say. */
export function stateFrom(view: Given, like: RunState): RunState {
  const state = emptyState();
  Object.assign(state, { run: view.run, workflow: like.workflow, version: like.version, started: like.started, seq: view.seq, at: view.at, status: view.status, input: view.input, output: view.output, error: view.error });
  state.scopes.set("", view.scope as unknown as Record<string, unknown>);
  for (const [status, count] of Object.entries(view.counts)) state.counts.set(status, count);
  for (const visit of view.visits) addVisit(state, visit, view.at);
  for (const gate of view.gates) {
    const visit = state.visits.get(gate.visit);
    if (visit !== undefined) state.visits.set(visit.id, { ...visit, gate: "open", asked: { seq: 0, at: gate.opened, type: "gate.opened", title: gate.title, assign: gate.assign, due: gate.due } });
  }
  for (const group of view.groups) {
    const sites = view.joins.filter((join) => join.group === group.group);
    state.groups.set(group.group, {
      id: group.group, names: group.names, node: group.node, path: group.path, origin: 0, frames: [], transitions: [], total: group.total, begun: group.begun, open: group.open,
      withdrawn: false, isolating: false, items: null, failed: new Map(group.failed.map((branch) => [branch, { kind: "FAILED", message: "" }])),
      sites: sites.map((join) => ({ target: join.node, status: join.status as "open", timer: null, decided: null, arrived: 0 })), openedAt: view.at, openedSeq: 0,
    });
    for (const join of sites) for (const branch of join.arrived) {
      const id = state.arrivals.size + 1;
      state.arrivals.set(id, { id, token: 0, target: join.node, via: "", frames: [[group.group, branch]], group: group.group, item: null });
    }
  }
  for (const { timer: id, due, purpose, visit: token, group, target } of view.timers) state.timers.set(id, { id, due, purpose, token, group, target });
  return state;
}

function addVisit(state: RunState, given: Given["visits"][number], at: number): void {
  const visit: Visit = {
    id: given.visit, node: given.node, path: given.path, frames: [], status: given.status, waiting: given.waiting_for, detail: given.detail, attempt: given.attempt,
    attempts: given.attempts, error: given.error as Visit["error"], via: null, origin: null, why: null, compensation: given.compensation, created: at, createdSeq: 0, since: at,
    until: null, ended: null, endedSeq: null, arrivals: [], held: false, timers: [], gate: null, asked: null, child: null, worker: null, queue: null, spans: [], text: null,
    textStep: null, failure: 0, fallen: null, deferred: false,
  };
  state.visits.set(visit.id, visit);
  state.nodes.set(given.node, [...(state.nodes.get(given.node) ?? []), given.visit]);
}
