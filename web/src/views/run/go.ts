// Moving the selection: to a node, and to each failure in turn.
import type { RunState } from "@/model/fold";
import { useRunPage, type Selection } from "./context";

/** A node with one visit selects that visit; one with many shows them all. */
export function choose(state: { nodes: ReadonlyMap<string, readonly number[]> }, ref: string): { node: string | null; visit: number | null; group: null } {
  const visits = state.nodes.get(ref) ?? [];
  return visits.length === 1 ? { node: null, visit: visits[0] as number, group: null } : { node: ref, visit: null, group: null };
}

/** A branch of a join selects the visit that stands there, or that the branch came to; a count shows those branches. */
export function pickedAt(state: RunState, ref: string, group: number, pick: string): Partial<Selection> {
  if (!/^\d+$/.test(pick)) return { node: ref, visit: null, group, branches: pick };
  const branch = Number(pick);
  const newest = [...state.visits.values()].findLast((visit) => visit.frames.some(([id, index]) => id === group && index === branch));
  return newest === undefined ? { node: ref, visit: null, group, branches: "missing" } : { node: null, visit: newest.id, group: null };
}

/** Goes to each failure in turn. */
export function useFailures(): { nextFailure: () => void } {
  const { store, selection, select } = useRunPage();
  const nextFailure = () => {
    const failed = [...store.get().state.visits.values()].filter((visit) => visit.status === "failed" || visit.status === "timed_out").map((visit) => visit.id);
    const next = failed.find((id) => id > (selection.visit ?? 0)) ?? failed[0];
    if (next !== undefined) select({ node: null, visit: next, group: null });
  };
  return { nextFailure };
}
