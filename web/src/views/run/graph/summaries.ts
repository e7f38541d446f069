// What every node shows of the run. A node is looked at again when one of its visits, groups or joins has changed, and
// once a second while it has live visits: times grow without events.
import { useCallback, useEffect, useMemo, useSyncExternalStore } from "react";
import { isLive, type Event, type RunState } from "@/model/fold";
import { summarise, type NodeGiven, type NodeSummary } from "@/model/summary";
import { useRunPage, useSeen } from "../context";
import type { DrawnGraph, RunStore } from "../store";
import { Kept } from "./kept";

const EVERY_MS = 1_000;
const HEAVY = 500; // visits of one node: counting them costs a millisecond or more, so it waits for the clock
const OVER = new Set(["completed", "failed", "cancelled", "timed_out", "compensated", "compensation_failed"]);
export const isOver = (status: string): boolean => OVER.has(status);

export class Summaries {
  private readonly kept: Kept<NodeSummary>;
  private readonly given: ReadonlyMap<string, NodeGiven>;
  /** Nodes that show something of a group: where it meets, and where its branches begin. */
  private readonly grouped: readonly string[];

  constructor(readonly store: RunStore, graph: DrawnGraph | null) {
    this.given = new Map(graph === null ? [] : givenOf(graph).map((node) => [node.ref, node]));
    this.grouped = [...this.given.values()].filter((node) => node.replicated.size > 0 || node.meetings.some((one) => one.node === node.ref)).map((node) => node.ref);
    this.kept = new Kept((ref) => this.make(ref), (before, after) => before.signature === after.signature);
    this.lookAtAll();
  }

  watch = (ref: string, watcher: () => void): (() => void) => this.kept.watch(ref, watcher);
  of = (ref: string): NodeSummary | undefined => this.kept.of(ref);
  stop = (): void => this.kept.stop();

  lookAtAll = (): void => this.kept.look(this.given.keys());

  /** Looks at what events have changed. */
  lookAt(events: readonly Event[], state: RunState): void {
    const found = new Set<string>();
    let groups = false;
    for (const event of events) {
      const node = typeof event["token"] === "number" ? state.visits.get(event["token"])?.node : undefined;
      if (node !== undefined && (state.nodes.get(node)?.length ?? 0) < HEAVY) found.add(node);
      groups ||= event.type.startsWith("group.") || event.type.startsWith("join.");
    }
    if (groups) for (const ref of this.grouped) if ((state.nodes.get(ref)?.length ?? 0) < HEAVY) found.add(ref);
    this.kept.look([...found].filter((ref) => this.given.has(ref)));
  }

  /** Looks at the nodes whose times grow, and at those that were left to the clock. */
  lookAtClock(state: RunState): void {
    this.kept.look([...this.given.keys()].filter((ref) => {
      const visits = state.nodes.get(ref) ?? [];
      return visits.length >= HEAVY || this.grouped.includes(ref) || visits.some((id) => isLive(state.visits.get(id) as NonNullable<ReturnType<RunState["visits"]["get"]>>));
    }));
  }

  private make(ref: string): NodeSummary {
    const { state, cursor, span } = this.store.get();
    const over = isOver(state.status);
    return summarise(state, { ...(this.given.get(ref) as NodeGiven), reachable: !over }, cursor !== null || over ? state.at : Date.now(), span);
  }
}

export function givenOf(graph: DrawnGraph): NodeGiven[] {
  const into = new Map<string, Set<string>>();
  for (const edge of graph.transitions) if (edge.replicates) into.set(edge.target, (into.get(edge.target) ?? new Set()).add(edge.id));
  return graph.nodes.map((node) => ({ ref: node.ref, words: node.words, reachable: true, meetings: graph.meetings.filter((one) => one.node === node.ref), replicated: into.get(node.ref) ?? new Set() }));
}

/** Summaries that follow the run. */
export function useSummaries(): Summaries {
  const { store } = useRunPage();
  const { graph } = useSeen();
  const summaries = useMemo(() => new Summaries(store, graph), [store, graph]);
  useEffect(() => {
    let status = "";
    const end = store.watch(() => {
      const { fresh, state } = store.get();
      if (fresh === null || state.status !== status) summaries.lookAtAll();
      else summaries.lookAt(fresh, state);
      status = state.status;
    });
    const timer = setInterval(() => {
      const { state, cursor } = store.get();
      if (!document.hidden && cursor === null && !isOver(state.status)) summaries.lookAtClock(state);
    }, EVERY_MS);
    summaries.lookAtAll();
    return () => {
      end();
      clearInterval(timer);
      summaries.stop();
    };
  }, [store, summaries]);
  return summaries;
}

export function useSummary(summaries: Summaries, ref: string): NodeSummary | undefined {
  const watch = useCallback((watcher: () => void) => summaries.watch(ref, watcher), [summaries, ref]);
  return useSyncExternalStore(watch, () => summaries.of(ref));
}
