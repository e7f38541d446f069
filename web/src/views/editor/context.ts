// What the parts of the editor share: the draft, what is selected, what is wrong, whether anything may be changed.
import { createContext, useContext, useSyncExternalStore } from "react";
import type { Draft, Places, Shown } from "./draft";
import type { Finding } from "./load";

export type Selection = { readonly node: string } | { readonly edge: string } | { readonly mark: string } | null;

export interface Editing {
  readonly draft: Draft;
  readonly selection: Selection;
  readonly select: (selection: Selection) => void;
  readonly findings: readonly Finding[];
  /** Nothing may be changed: a viewer, or a phone. */
  readonly fixed: boolean;
  /** While a transition is drawn by keyboard: from where, and to where it would lead. */
  readonly connecting: { readonly from: string; readonly to: string | null } | null;
  readonly setConnecting: (connecting: { from: string; to: string | null } | null) => void;
  /** Where the nodes stand on the screen now. */
  readonly placesNow: { current: Places };
  /** What a simulation shows on nodes. */
  readonly played: ReadonlyMap<string, Played>;
}

export interface Played {
  readonly done: number;
  readonly active: number;
  readonly failed: number;
}

export const EditorContext = createContext<Editing | null>(null);

export function useEditing(): Editing {
  const editing = useContext(EditorContext);
  if (editing === null) throw new Error("this part stands in no editor");
  return editing;
}

export function useShown(): Shown {
  const { draft } = useEditing();
  return useSyncExternalStore(draft.watch, draft.get);
}

/** The node or transition that a problem is about. */
export function subjectOf(finding: Finding): { node: string } | { transition: number } | null {
  const node = /^nodes\.([^.[\]]+)/.exec(finding.place ?? "");
  if (node?.[1] !== undefined) return { node: node[1] };
  const edge = /^transitions\[(\d+)\]/.exec(finding.place ?? "");
  return edge?.[1] === undefined ? null : { transition: Number(edge[1]) };
}
