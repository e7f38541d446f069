// What the parts of the run page share: the run, what is selected, and how to move.
import { createContext, useContext, useSyncExternalStore } from "react";
import type { RunStore, Seen } from "./store";

/** What is selected. It stands in the address, so that a link leads to the same place. */
export interface Selection {
  readonly node: string | null;
  readonly visit: number | null;
  readonly group: number | null;
  /** Which branches of the group are listed: `arrived`, `failed`, `missing`; null: all. */
  readonly branches: string | null;
}

export interface RunPage {
  readonly store: RunStore;
  readonly selection: Selection;
  readonly select: (next: Partial<Selection>) => void;
  readonly mayAct: boolean;
}

export const RunContext = createContext<RunPage | null>(null);

export function useRunPage(): RunPage {
  const page = useContext(RunContext);
  if (page === null) throw new Error("outside of a run page");
  return page;
}

/** What is seen of the run, for views. The graph follows the store itself, frame by frame. */
export function useSeen(): Seen {
  const { store } = useRunPage();
  return useSyncExternalStore(store.watchCalmly, store.getCalm);
}
