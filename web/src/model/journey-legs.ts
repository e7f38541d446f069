// The journey of one entity: legs with their steps, and the time it has spent in each section. Pure.
import type { JourneyMove, Leg } from "./journeys";
import { placeOf } from "./journeys";

export interface Step {
  readonly name: string;
  readonly kind: "node" | "section" | "edge";
  readonly at: number;
  /** How long it stayed; null: it is there now. */
  readonly ms: number | null;
  readonly words: string;
  readonly cost: number | null;
}

/** One row of the panel: the steps of a run, newest first; or one move by a person. */
export type Row =
  | { readonly kind: "run"; readonly key: string; readonly leg: Leg; readonly title: string; readonly steps: readonly Step[] }
  | { readonly kind: "hand"; readonly key: string; readonly at: number; readonly by: string; readonly from: string | null; readonly to: string; readonly reason: string | null };

const nameOf = (move: JourneyMove): string => placeOf({ node: move.node ?? null, edge: move.edge ?? null, section: move.section ?? null })?.name ?? "nowhere";
const isByHand = (move: JourneyMove): boolean => move.by != null;

export interface Names {
  /** The section of a node in the workflow that is shown. */
  readonly sectionOf: (workflow: string, node: string) => string | undefined;
  readonly sectionName: (id: string) => string;
}

/** Legs, newest first, as rows. A move by hand within a run is a row of its own. */
export function rowsOf(legs: readonly Leg[], names: Names): Row[] {
  const before = fromOf(legs);
  const told = (place: string, move: JourneyMove) => (move.section != null ? names.sectionName(move.section) : place);
  return legs.flatMap((leg) => {
    const hands = leg.moves.filter(isByHand).map((move) => ({ kind: "hand" as const, key: `${leg.run ?? "hand"}:${move.at}:${move.seq}`, at: move.at, by: move.by as string, from: before.get(move) ?? null, to: told(nameOf(move), move), reason: move.reason ?? null })).reverse();
    const steps = leg.run === null ? [] : stepsOf(leg, names);
    if (leg.run === null) return hands;
    const last = leg.moves.findLast((move) => move.node != null);
    const section = last?.node == null ? undefined : names.sectionOf(leg.workflow, last.node);
    return [...hands, { kind: "run" as const, key: leg.run, leg, title: section === undefined ? leg.workflow : names.sectionName(section), steps }];
  });
}

/** The place before each move by hand, over all legs. */
function fromOf(legs: readonly Leg[]): Map<JourneyMove, string> {
  const all = legs.flatMap((leg) => leg.moves.map((move) => ({ move, workflow: leg.workflow }))).sort((a, b) => a.move.at - b.move.at || a.move.seq - b.move.seq);
  const last = new Map<string, string>();
  const found = new Map<JourneyMove, string>();
  for (const { move, workflow } of all) {
    const was = last.get(workflow);
    if (was !== undefined) found.set(move, was);
    last.set(workflow, nameOf(move));
  }
  return found;
}

/** Stays of a run, newest first. Edges count only while the entity is on one; an ending is told at the place it was in. */
function stepsOf(leg: Leg, names: Names): Step[] {
  const steps: Step[] = [];
  for (const move of leg.moves) {
    if (isByHand(move)) continue;
    const place = placeOf({ node: move.node ?? null, edge: move.edge ?? null, section: move.section ?? null });
    if (place === null || (place.kind === "edge" && move.until != null)) continue;
    const [name, last] = [place.kind === "section" ? names.sectionName(place.name) : place.name, steps.at(-1)];
    const words = [move.completed_as == null ? "" : `completed as ${move.completed_as}`, move.type == null ? "" : `now a ${move.type}`].filter(Boolean).join(", ");
    const ms = move.until == null ? null : move.until - move.at;
    if (last !== undefined && last.kind === place.kind && last.name === name) {
      const cost = last.cost === null && move.cost == null ? null : (last.cost ?? 0) + (move.cost ?? 0);
      steps[steps.length - 1] = { ...last, ms: move.until == null ? null : move.until - last.at, words: [last.words, words].filter(Boolean).join(", "), cost };
    } else {
      steps.push({ name, kind: place.kind, at: move.at, ms, words, cost: move.cost ?? null });
    }
  }
  return steps.reverse();
}

export interface Stay {
  readonly name: string;
  readonly ms: number;
  readonly isNow: boolean;
}

/** Where an entity has been, by section, in order: `Leads 2 d, Trial 12 d, …`. Without sections by node. */
export function staysOf(legs: readonly Leg[], workflow: string, names: Names, now: number): Stay[] {
  const moves = legs.filter((leg) => leg.workflow === workflow).flatMap((leg) => leg.moves).sort((a, b) => a.at - b.at || a.seq - b.seq);
  const stays: { name: string; from: number; to: number | null }[] = [];
  for (const move of moves) {
    const section = move.section ?? (move.node == null ? undefined : names.sectionOf(workflow, move.node));
    const name = section === undefined ? (move.node ?? null) : names.sectionName(section);
    const last = stays.at(-1);
    if (name === null || last?.name === name) {
      if (last !== undefined) last.to = null;
      continue;
    }
    if (last !== undefined) last.to = move.at;
    stays.push({ name, from: move.at, to: null });
  }
  return stays.map(({ name, from, to }) => ({ name, ms: Math.max(0, (to ?? now) - from), isNow: to === null }));
}

/** Totals for the head of the panel. */
export function totalsOf(legs: readonly Leg[]): { first: number | null; runs: number; cost: number | null } {
  const costs = legs.flatMap((leg) => (leg.cost == null ? [] : [leg.cost]));
  const firsts = legs.flatMap((leg) => leg.moves.map((move) => move.at));
  return { first: firsts.length === 0 ? null : Math.min(...firsts), runs: legs.filter((leg) => leg.run !== null).length, cost: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0) };
}

/** The edges an entity has gone over in a workflow: its way on the map. */
export const wayOf = (legs: readonly Leg[], workflow: string): ReadonlySet<string> =>
  new Set(legs.filter((leg) => leg.workflow === workflow).flatMap((leg) => leg.moves.flatMap((move) => (move.edge == null ? [] : [move.edge]))));
