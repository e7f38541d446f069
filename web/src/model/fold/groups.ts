// Folding events of groups and joins, and of the scopes that are written.
import { Overlay, written } from "./scope";
import { newSite, sitesOf, type ShapeOf } from "./migration";
import { frameKey, orNull, type Arrival, type Event, type Frame, type Group, type RunError, type RunState, type Site, type Timer, type Visit } from "./state";
import { begun, change, crossed, noteFailure, type Fold } from "./visits";

/** Forgets timers of a visit. */
export function drop(state: RunState, visit: Visit, which: (timer: Timer) => boolean): void {
  const kept = visit.timers.filter((id) => {
    const timer = state.timers.get(id);
    if (timer !== undefined && which(timer)) state.timers.delete(id);
    return state.timers.has(id);
  });
  if (kept.length !== visit.timers.length) change(state, visit.id, { timers: kept });
}

/** Takes out an arrival that was consumed or withdrawn. */
export function withdraw(state: RunState, arrival: Arrival): void {
  state.arrivals.delete(arrival.id);
  const visit = state.visits.get(arrival.token);
  if (visit !== undefined && visit.arrivals.includes(arrival.id)) change(state, visit.id, { arrivals: visit.arrivals.filter((id) => id !== arrival.id) });
}

/** Takes a failure back: its branch has not failed, and groups that it closed go on. */
export function takeBack(state: RunState, seq: number): void {
  const failure = state.failures.get(seq);
  state.failures.delete(seq);
  if (failure === undefined) return;
  const around = failure.fails === null ? undefined : state.groups.get(failure.fails[0]);
  if (around !== undefined && failure.fails !== null) {
    const failed = new Map(around.failed);
    failed.delete(failure.fails[1]);
    state.groups.set(around.id, { ...around, failed });
  }
  for (const { group: id, open, withdrawn } of failure.closed.toReversed()) {
    const group = state.groups.get(id);
    if (group !== undefined) state.groups.set(id, { ...group, open, withdrawn });
  }
}

/** The fold of `group.opened`, which needs to know where the group meets. */
export const openedWith = (shapeOf: ShapeOf): Fold => (state, event) => {
  const names = event["names"] as string[];
  const frames = (event["frames"] ?? []) as Frame[];
  const targets = sitesOf(shapeOf(state.version), names);
  const replicated = Boolean(event["replicated"]);
  const enclosing = frames.some(([id]) => state.groups.get(id)?.isolating);
  const total = event["total"] as number;
  state.groups.set(event["group"] as number, {
    id: event["group"] as number, names, node: event["node"] as string, path: event["path"] as string, origin: event["origin"] as number, frames,
    transitions: (event["transitions"] ?? []) as string[], total, begun: !replicated && names[0]?.startsWith("node:") ? total : 0,
    open: Boolean(event["open"]), withdrawn: false, isolating: targets.length > 0 || (replicated && enclosing), items: orNull(event["items"]), failed: new Map(),
    sites: targets.map(newSite), openedAt: event.at, openedSeq: event.seq,
  });
};

const grew: Fold = (state, event) => {
  const group = state.groups.get(event["group"] as number);
  if (group === undefined) return;
  const items = event["items"] as unknown[] | undefined;
  const before = group.items ?? Array<unknown>(group.total).fill(null);
  state.groups.set(group.id, { ...group, total: event["total"] as number, items: items === undefined ? group.items : [...before, ...items] });
};

const closed: Fold = (state, event) => {
  const group = state.groups.get(event["group"] as number);
  if (group === undefined) return;
  const because = event["because"] as number | undefined;
  if (because) {
    const failure = state.failures.get(because) ?? { fails: null, closed: [] };
    state.failures.set(because, { ...failure, closed: [...failure.closed, { group: group.id, open: group.open, withdrawn: group.withdrawn }] });
  }
  state.groups.set(group.id, { ...group, open: false, withdrawn: group.withdrawn || Boolean(event["withdrawn"]) });
};

const arrived: Fold = (state, event) => {
  const frames = (event["frames"] ?? []) as Frame[];
  const token = event["token"] as number;
  begun(state, frames);
  crossed(state, event["via"] as string, event, token || null, null);
  const visit = state.visits.get(token);
  if (!event["absorbed"]) {
    const id = event["arrival"] as number;
    state.arrivals.set(id, { id, token, target: event["target"] as string, via: event["via"] as string, frames, group: orNull(event["group"]), item: orNull(event["item"]) });
    if (visit !== undefined) change(state, token, { arrivals: [...visit.arrivals, id] });
  }
  if (visit !== undefined && !visit.held) {
    drop(state, visit, () => true);
    change(state, token, { held: true });
  }
};

/** The site of a group's join, and the group with that site changed. */
function decide(state: RunState, event: Event, status: Site["status"]): Group | undefined {
  const group = state.groups.get(event["group"] as number);
  if (group === undefined) return undefined;
  const target = event["target"] as string;
  const site = group.sites.find((one) => one.target === target);
  if (site?.timer != null && status !== "open") state.timers.delete(site.timer);
  const sites = group.sites.map((one) => (one === site ? { ...one, status, timer: status === "open" ? one.timer : null, decided: status === "open" ? null : event, arrived: status === "open" ? 0 : arrivedAt(state, group.id, target) } : one));
  const next = { ...group, sites };
  state.groups.set(group.id, next);
  return next;
}

function arrivedAt(state: RunState, group: number, target: string): number {
  const branches = new Set<number>();
  for (const arrival of state.arrivals.values()) if (arrival.group === group && arrival.target === target) branches.add(arrival.frames.find(([id]) => id === group)?.[1] ?? -1);
  return branches.size;
}

function consume(state: RunState, group: number, target: string): void {
  for (const arrival of [...state.arrivals.values()]) if (arrival.group === group && arrival.target === target) withdraw(state, arrival);
}

const fired: Fold = (state, event) => {
  const target = event["target"] as string;
  state.fired.set(target, (state.fired.get(target) ?? 0) + 1);
  const group = decide(state, event, "fired");
  if (group !== undefined) {
    const frame = group.frames.findLast(([id]) => state.groups.get(id)?.isolating) ?? null;
    write(state, frame, event["writes"]);
    consume(state, group.id, target);
    return;
  }
  write(state, orNull(event["scope"]), event["writes"]);
  for (const id of (event["arrivals"] ?? []) as number[]) {
    const arrival = state.arrivals.get(id);
    if (arrival !== undefined) withdraw(state, arrival);
  }
};

const joinFailed: Fold = (state, event) => {
  if (event["fails"] !== undefined || event["unhandled"]) noteFailure(state, event.seq, orNull(event["fails"]), event["error"] as RunError);
  decide(state, event, "failed");
};

const joinDead: Fold = (state, event) => {
  const group = decide(state, event, "dead");
  if (group !== undefined) consume(state, group.id, event["target"] as string);
};

const joinReopened: Fold = (state, event) => {
  if (event["failure"]) takeBack(state, event["failure"] as number);
  decide(state, event, "open");
};

function write(state: RunState, frame: Frame | null, writes: unknown): void {
  if (!Array.isArray(writes) || writes.length === 0) return;
  const key = frameKey(frame);
  let scope: unknown = state.scopes.get(key) ?? (frame === null ? {} : new Overlay());
  for (const [path, value] of writes as [(string | number)[], unknown][]) scope = written(scope, path, value);
  state.scopes.set(key, scope as Overlay);
}

const updated: Fold = (state, event) => {
  if (event["armed"] === undefined) write(state, orNull(event["scope"]), event["writes"]);
};

export const GROUP_FOLDS: Record<string, Fold> = {
  "group.grew": grew,
  "group.closed": closed,
  "join.arrived": arrived,
  "join.fired": fired,
  "join.failed": joinFailed,
  "join.dead": joinDead,
  "join.reopened": joinReopened,
  "context.updated": updated,
};
