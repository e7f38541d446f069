// What the keys of the run page do: C the id, J/K runs, F failures, arrows along edges, Enter inspector, brackets time, Esc close.
import { choose, useFailures } from "./go";
import { useRunPage, useSeen } from "./context";
import type { Neighbours } from "./neighbours";
import { useKeys } from "./use-keys";

export function usePageKeys(neighbours: Neighbours): { isOpen: boolean } {
  const { store, selection, select } = useRunPage();
  const { state, graph, folding } = useSeen();
  const { nextFailure } = useFailures();
  const node = selection.node ?? (selection.visit === null ? null : (state.visits.get(selection.visit)?.node ?? null));
  const isOpen = selection.node !== null || selection.visit !== null || selection.group !== null;
  const to = (ref: string | undefined) => {
    if (ref === undefined) return;
    select(choose(state, ref));
    document.querySelector<HTMLElement>(`[data-node="${CSS.escape(ref)}"]`)?.focus({ preventScroll: true });
  };
  const along = (forward: boolean) => {
    const edges = (graph?.transitions ?? []).filter((edge) => (forward ? edge.source : edge.target) === node);
    const used = edges.find((edge) => state.edges.has(edge.id)) ?? edges[0];
    to(node === null ? graph?.nodes[0]?.ref : forward ? used?.target : used?.source);
  };
  const across = (by: number) => {
    const edges = graph?.transitions ?? [];
    const before = edges.filter((edge) => edge.target === node).map((edge) => edge.source);
    const beside = [...new Set(edges.filter((edge) => before.includes(edge.source)).map((edge) => edge.target))];
    to(node === null ? graph?.nodes[0]?.ref : beside[(beside.indexOf(node) + by + beside.length) % Math.max(1, beside.length)]);
  };
  const step = (by: number) => store.seek(Math.max(1, (store.get().cursor ?? folding.length) + by));
  useKeys({
    c: () => void navigator.clipboard.writeText(store.run).then(() => dispatchEvent(new Event("treadle.copied"))), j: neighbours.goNext, k: neighbours.goPrevious, f: nextFailure, "[": () => step(-1), "]": () => step(1), z: () => dispatchEvent(new Event("treadle.unfold")),
    ArrowRight: () => along(true), ArrowLeft: () => along(false), ArrowDown: () => across(1), ArrowUp: () => across(-1),
    Enter: () => {
      const focused = document.activeElement?.getAttribute("data-node");
      if (focused != null) select(choose(state, focused));
      requestAnimationFrame(() => document.querySelector<HTMLElement>(".run-inspector")?.focus());
    },
    " ": () => {
      const focused = document.activeElement?.getAttribute("data-node");
      if (focused != null) select(choose(state, focused));
    },
    Escape: () => {
      if (isOpen) select({ node: null, visit: null, group: null });
      else store.seek(null);
    },
    "/": () => document.querySelector<HTMLElement>(".run-filter input")?.focus(),
  });
  return { isOpen };
}
