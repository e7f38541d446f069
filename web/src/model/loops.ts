// The loops of a run and their iterations, each as the events it spans. Pure.
import type { EdgeGiven } from "./edges";
import { frameKey, type RunState, type Visit } from "./fold";

/** Events from one number to another. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Loop {
  /** Edge and branch: what the address names it by. */
  readonly key: string;
  readonly node: string;
  /** `[3]`, for a loop inside a branch. */
  readonly branch: string;
  readonly iterations: readonly Span[];
}

/** Loops that have gone round at least once. An iteration begins with a visit of the node that the loop leads back to. */
export function loopsOf(state: RunState, edges: readonly EdgeGiven[]): Loop[] {
  const found: Loop[] = [];
  for (const edge of edges) {
    if (!edge.back || !state.edges.has(edge.id)) continue;
    const branches = new Map<string, Visit[]>();
    for (const id of state.nodes.get(edge.target) ?? []) {
      const visit = state.visits.get(id) as Visit;
      const key = frameKey(visit.frames.at(-1) ?? null);
      branches.set(key, [...(branches.get(key) ?? []), visit]);
    }
    for (const [key, visits] of branches) {
      const begins = visits.filter((visit, index) => index === 0 || visit.via === edge.id).map((visit) => visit.createdSeq);
      if (begins.length < 2) continue;
      const branch = (visits[0] as Visit).frames.map(([, one]) => `[${one}]`).join("");
      found.push({ key: key === "" ? edge.id : `${edge.id}@${key}`, node: edge.target, branch, iterations: begins.map((from, index) => ({ from, to: (begins[index + 1] ?? Infinity) - 1 })) });
    }
  }
  return found;
}

/** The visits of one node that a span has, or all if it has none: what lies outside of the loop stays as it is. */
export function within(visits: readonly Visit[], span: Span | null): readonly Visit[] {
  if (span === null) return visits;
  const inside = visits.filter((visit) => visit.createdSeq >= span.from && visit.createdSeq <= span.to);
  return inside.length > 0 ? inside : visits;
}
