// The picture of a run, as the service draws it from the whole history, as a folded state: for a large run whose history
// is still being read.
//
// Pure. Promises that nodes and edges show the same with it as with the history; tests compare them on histories of
// scenarios. What a single visit did in which order is not in a picture: times of queue, wait and work are summed up.
import type { components } from "@/api/schema";
import { emptyState, isLive, type Frame, type RunError, type RunState, type Shape, type Span, type Visit } from "./state";
import { newSite, sitesOf } from "./migration";
import { kindOf } from "./visits";

export type RunPicture = components["schemas"]["RunPicture"];

/** `shape`: of the version that the run has, for joins at which nobody has arrived. */
export function stateFrom(picture: RunPicture, shape: Shape | undefined): RunState {
  const state = emptyState();
  const { run, workflow, version, started, ended, seq, at, status, input, output } = picture;
  Object.assign(state, { run, workflow, version, started, ended, seq, at, status, input: input ?? null, output: output ?? null, error: picture.error ?? null });
  state.scopes.set("", picture.scope as unknown as Record<string, unknown>);
  for (const [name, count] of Object.entries(picture.counts)) state.counts.set(name, count);
  addVisits(state, picture);
  for (const gate of picture.gates) {
    const visit = state.visits.get(gate.visit);
    if (visit !== undefined) state.visits.set(visit.id, { ...visit, gate: "open", asked: { seq: 0, at: gate.opened, type: "gate.opened", title: gate.title, assign: gate.assign, ...(gate.due == null ? {} : { due: gate.due }) } });
  }
  for (const way of picture.ways) state.edges.set(way.transition, { count: way.count, last: { seq: way.seq, at: way.at, origin: way.origin ?? null, why: way.why ?? null } });
  for (const { timer: id, due, purpose, visit, group, target } of picture.timers) state.timers.set(id, { id, due, purpose, token: visit ?? null, group: group ?? null, target: target ?? null });
  addGroups(state, picture, shape);
  return state;
}

function addVisits(state: RunState, picture: RunPicture): void {
  const { visits: all, started } = picture;
  const live = new Map(picture.live.map((visit) => [visit.visit, visit]));
  const undoing = new Set(picture.compensating);
  const byNode = new Map<string, number[]>();
  all.visit.forEach((id, row) => {
    const node = all.nodes[all.node[row] as number] as string;
    const status = all.statuses[all.status[row] as number] as string;
    const known = live.get(id);
    const frames = all.frames[row] as unknown as readonly Frame[];
    const created = started + (all.created[row] as number);
    const since = started + (all.since[row] as number);
    const waiting = status === "waiting" || status === "dispatched" ? (known?.waiting_for ?? null) : null;
    const visit: Visit = {
      id, node, path: known?.path ?? node + frames.map(([, branch]) => `[${branch}]`).join(""), frames, status, waiting, detail: known?.detail ?? null,
      attempt: known?.attempt ?? 0, attempts: all.attempts[row] as number, error: ((known?.error ?? picture.errors[String(id)]) as RunError | undefined) ?? null,
      via: null, origin: null, why: null, compensation: undoing.has(id), created, createdSeq: all.created_seq[row] as number, since, until: null, ended: null, endedSeq: null,
      arrivals: [], held: all.held[row] === 1, timers: [], gate: null, asked: null, child: null, worker: null, queue: null, spans: [], text: null, textStep: null,
      failure: 0, fallen: null, deferred: false,
    };
    const over = !isLive(visit);
    const spans = spansOf(created, [all.queue_ms[row] as number, all.wait_ms[row] as number, all.run_ms[row] as number, all.held_ms[row] as number], visit, over);
    state.visits.set(id, { ...visit, spans, ...(over ? { ended: since } : {}) });
    const mine = byNode.get(node);
    if (mine === undefined) byNode.set(node, [id]);
    else mine.push(id);
  });
  for (const [node, ids] of byNode) state.nodes.set(node, ids);
  for (const timer of picture.timers) {
    const visit = timer.visit == null ? undefined : state.visits.get(timer.visit);
    if (visit !== undefined && visit.status === "waiting" && visit.waiting === "timer") state.visits.set(visit.id, { ...visit, until: timer.due });
  }
}

/** One span of each kind, one behind the other: their lengths are true. */
function spansOf(created: number, [queue, wait, run, held]: readonly [number, number, number, number], visit: Visit, over: boolean): Span[] {
  const spans: Span[] = [];
  let from = created;
  for (const [kind, ms] of [["queue", queue], ["wait", wait], ["run", run], ["held", held]] as const) {
    if (ms > 0 || (kind === "run" && over && visit.attempts > 0)) spans.push({ kind, from, to: from + ms, attempt: visit.attempt, reason: null, outcome: kind === "run" ? (visit.status === "completed" ? "done" : "fail") : null });
    from += ms;
  }
  const kind = over ? null : kindOf(visit.status, visit.waiting);
  if (kind !== null) spans.push({ kind, from: visit.since, to: null, attempt: visit.attempt, reason: visit.waiting, outcome: null });
  return spans;
}

function addGroups(state: RunState, picture: RunPicture, shape: Shape | undefined): void {
  for (const group of picture.groups) {
    const given = new Map(group.sites.map((site) => [site.node, site]));
    const targets = [...new Set([...sitesOf(shape, group.names), ...given.keys()])];
    const sites = targets.map((target) => {
      const site = given.get(target);
      return site === undefined ? newSite(target) : { target, status: site.status as "open", timer: site.timer ?? null, decided: site.status === "open" ? null : { seq: 0, at: picture.at, type: `join.${site.status}` }, arrived: site.count };
    });
    state.groups.set(group.group, {
      id: group.group, names: group.names, node: group.node, path: group.path, origin: group.origin, frames: group.frames as unknown as readonly Frame[], transitions: group.transitions,
      total: group.total, begun: group.begun, open: group.open, withdrawn: group.withdrawn, isolating: sites.length > 0, items: null,
      failed: new Map(group.failed.map((branch) => [branch, { kind: "FAILED", message: "" }])), sites, openedAt: group.opened, openedSeq: group.opened_seq,
    });
    for (const site of group.sites) for (const branch of site.arrived) {
      const id = state.arrivals.size + 1;
      state.arrivals.set(id, { id, token: 0, target: site.node, via: "", frames: [[group.group, branch]], group: group.group, item: null });
    }
  }
}
