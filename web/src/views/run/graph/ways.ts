// What every edge shows of the run. An edge is looked at again when a token went over it, or one of its source's visits
// has changed.
import { createContext, useCallback, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { edgeSummary, type EdgeGiven, type EdgeSummary } from "@/model/edges";
import type { Event } from "@/model/fold";
import { useRunPage } from "../context";
import type { RunStore } from "../store";
import { Kept } from "./kept";

export type Ways = Kept<EdgeSummary>;

const isSame = (one: EdgeSummary, other: EdgeSummary): boolean => one.verdict === other.verdict && one.label === other.label && one.fails === other.fails;

const WaysContext = createContext<Ways | null>(null);
export const WaysProvider = WaysContext.Provider;

/** Summaries of the drawn edges that follow the run. */
export function useWays(edges: readonly EdgeGiven[]): Ways {
  const { store } = useRunPage();
  const ways = useMemo(() => {
    const known = new Map(edges.map((edge) => [edge.id, edge]));
    const made = new Kept((id) => edgeSummary(store.get().state, known.get(id) as EdgeGiven), isSame);
    made.look(known.keys());
    return made;
  }, [store, edges]);
  useEffect(() => follow(store, edges, ways), [store, edges, ways]);
  return ways;
}

function follow(store: RunStore, edges: readonly EdgeGiven[], ways: Ways): () => void {
  const from = new Map<string, string[]>();
  for (const edge of edges) from.set(edge.source, [...(from.get(edge.source) ?? []), edge.id]);
  const end = store.watch(() => {
    const { fresh, state } = store.get();
    ways.look(fresh === null ? edges.map((edge) => edge.id) : touched(fresh, (token) => from.get(state.visits.get(token)?.node ?? "") ?? []));
  });
  return () => {
    end();
    ways.stop();
  };
}

/** Edges that events may have changed: those that leave the nodes of the visits they are about. */
function touched(events: readonly Event[], leaving: (token: number) => readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const event of events) {
    if (typeof event["via"] === "string") found.add(event["via"]);
    if (typeof event["token"] === "number") for (const edge of leaving(event["token"])) found.add(edge);
  }
  return found;
}

export function useWay(edge: EdgeGiven): EdgeSummary {
  const ways = useContext(WaysContext) as Ways;
  const watch = useCallback((watcher: () => void) => ways.watch(edge.id, watcher), [ways, edge.id]);
  return useSyncExternalStore(watch, () => ways.of(edge.id) as EdgeSummary);
}
