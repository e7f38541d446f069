// Folding a migration: the run has another graph from here on, and what it refers to has its names there.
//
// It needs the shapes of both versions: which clocks of triggers end, and at which joins a group meets, follows from
// them. Without them only names that the event itself gives are changed.
import { Overlay } from "./scope";
import type { Group, RunState, Shape, Site, Timer } from "./state";
import { change, type Fold } from "./visits";

export type ShapeOf = (version: number) => Shape | undefined;

/** The names of one version in another: a node keeps its own unless the event maps it; an id that was made of the names of its nodes (`a->b`) follows them. */
class Renaming {
  constructor(private readonly old: Shape | undefined, readonly now: Shape | undefined, readonly nodes: Readonly<Record<string, string>>) {}

  ref = (ref: string): string => (Object.hasOwn(this.nodes, ref) ? (this.nodes[ref] as string) : ref);

  /** The id that a transition has now; its old one if it is gone. */
  via = (id: string): string => {
    const before = this.old?.edges.get(id);
    if (this.now?.edges.has(id) || before === undefined) return id;
    const made = `${before.source}->${before.target}`;
    const renamed = `${this.ref(before.source)}->${this.ref(before.target)}${id.slice(made.length)}`;
    return id.startsWith(made) && this.now?.edges.has(renamed) ? renamed : id;
  };

  /** The names that a group answers to now. */
  names(names: readonly string[]): string[] {
    const found: string[] = [];
    for (const name of names) {
      const [kind, rest] = [name.slice(0, name.indexOf(":")), name.slice(name.indexOf(":") + 1)];
      if (kind === "node") found.push(`node:${this.ref(rest)}`);
      if (kind !== "transition") continue;
      const declared = this.now?.edges.get(this.via(rest))?.group ?? null;
      if (declared !== null && !found.includes(`name:${declared}`)) found.unshift(`name:${declared}`);
      found.push(`transition:${this.via(rest)}`);
    }
    return found;
  }
}

export const migratedWith = (shapeOf: ShapeOf): Fold => (state, event) => {
  const names = new Renaming(shapeOf(state.version), shapeOf(event["to"] as number), event["nodes"] as Record<string, string>);
  state.version = event["to"] as number;
  renameVisits(state, names);
  for (const kept of [state.arrivals, state.fallenArrivals])
    for (const arrival of [...kept.values()]) kept.set(arrival.id, { ...arrival, target: names.ref(arrival.target), via: names.via(arrival.via) });
  for (const group of [...state.groups.values()]) state.groups.set(group.id, regrouped(group, names));
  for (const [id, use] of [...state.edges]) {
    if (names.via(id) === id) continue;
    state.edges.delete(id);
    state.edges.set(names.via(id), use);
  }
  renameOutputs(state, names);
  for (const timer of [...state.timers.values()]) retime(state, timer, names);
};

/** Visits that have not completed are at the nodes that take the place of theirs. */
function renameVisits(state: RunState, names: Renaming): void {
  for (const visit of [...state.visits.values()]) {
    const via = visit.via === null ? null : names.via(visit.via);
    if (visit.status !== "completed" && (names.ref(visit.node) !== visit.node || via !== visit.via)) change(state, visit.id, { node: names.ref(visit.node), via });
  }
  const moved = new Map<string, number[]>();
  for (const [node, visits] of state.nodes) moved.set(names.ref(node), [...(moved.get(names.ref(node)) ?? []), ...visits]);
  state.nodes.clear();
  for (const [node, visits] of moved) state.nodes.set(node, visits.sort((a, b) => a - b));
}

function regrouped(group: Group, names: Renaming): Group {
  const kept = group.sites.map((site) => ({ ...site, target: names.ref(site.target) }));
  if (names.now === undefined) return { ...group, node: names.ref(group.node), sites: kept };
  const [answers, transitions] = [names.names(group.names), group.transitions.map(names.via)];
  const source = transitions[0] === undefined ? undefined : names.now.edges.get(transitions[0])?.source;
  const sites = sitesOf(names.now, answers).map((target) => kept.find((site) => site.target === target) ?? newSite(target));
  return { ...group, names: answers, transitions, node: source ?? names.ref(group.node), sites, isolating: group.isolating || sites.length > 0 };
}

/** The nodes at which a group with these names can meet. */
export const sitesOf = (shape: Shape | undefined, names: readonly string[]): string[] => names.flatMap((name) => (shape?.meetings ?? []).filter(([group]) => group === name).map(([, node]) => node));
export const newSite = (target: string): Site => ({ target, status: "open", timer: null, decided: null, arrived: 0 });

/** The outputs of nodes are kept under the nodes' names. */
function renameOutputs(state: RunState, names: Renaming): void {
  if (Object.keys(names.nodes).length === 0) return;
  for (const [key, scope] of [...state.scopes]) {
    const outputs = scope instanceof Overlay ? scope.entries.get("nodes") : scope["nodes"];
    if (outputs === null || typeof outputs !== "object") continue;
    const entries = outputs instanceof Overlay ? [...outputs.entries] : Object.entries(outputs);
    const renamed = new Map(entries.map(([ref, value]) => [names.ref(ref), value] as const));
    if (scope instanceof Overlay) state.scopes.set(key, scope.with("nodes", outputs instanceof Overlay ? new Overlay(renamed) : Object.fromEntries(renamed)));
    else state.scopes.set(key, { ...scope, nodes: Object.fromEntries(renamed) });
  }
}

/** Clocks of triggers and joins under their new names; those that have nothing to start any more are gone. */
function retime(state: RunState, timer: Timer, names: Renaming): void {
  if (timer.target === null || names.now === undefined) return;
  if (timer.purpose === "trigger" && timer.token !== null) {
    const target = names.via(timer.target);
    const visit = state.visits.get(timer.token);
    const edge = names.now.edges.get(target);
    if (edge !== undefined && edge.triggered && edge.source === visit?.node) return void state.timers.set(timer.id, { ...timer, target });
    state.timers.delete(timer.id);
    if (visit !== undefined) change(state, visit.id, { timers: visit.timers.filter((id) => id !== timer.id) });
  } else if (timer.purpose === "sync" && timer.group !== null) {
    const target = names.ref(timer.target);
    const group = state.groups.get(timer.group);
    const isKept = group?.sites.some((site) => site.target === target) && names.now.meetings.some(([name, node, timed]) => timed && node === target && group.names.includes(name));
    if (isKept) return void state.timers.set(timer.id, { ...timer, target });
    state.timers.delete(timer.id);
    if (group !== undefined) state.groups.set(group.id, { ...group, sites: group.sites.map((site) => (site.target === target ? { ...site, timer: null } : site)) });
  }
}
