// The keyboard of the editor: see KEYS. Everything that a pointer does on the graph is done by keys as well.
import { useEffect, useRef } from "react";
import type { Editing, Selection } from "./context";
import type { Places } from "./draft";
import { connectNodes, dropMark, putMark, removeEdge, removeMark, removeNode } from "./edits";

const DIRECTIONS: Record<string, readonly [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const MOVE = 20;

/** The keys and what they do, as the help shows them. */
export const KEYS: readonly (readonly [string, string])[] = [
  ["A", "search the palette; Enter puts the node behind the selected one"],
  ["← → ↑ ↓", "go from node to node"],
  ["Shift ← → ↑ ↓", "move the selected node, note or section"],
  ["C", "connect: arrows choose the target, Enter connects, Escape does not"],
  ["T", "the next transition that leads away from the node; again: the one after it"],
  ["N", "a note beside the selected node"],
  ["Enter", "select; again: into the inspector. Escape comes back"],
  ["Delete", "delete what is selected"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
  ["Ctrl Enter", "deploy: shows what will change first"],
  [".", "play the draft, then one step of the simulation"],
  ["?", "this list"],
];

/** The nearest node in a direction. */
export function nearest(places: Places, from: string, [dx, dy]: readonly [number, number]): string | null {
  const here = places[from];
  if (here === undefined) return Object.keys(places)[0] ?? null;
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const [ref, place] of Object.entries(places)) {
    const [x, y] = [place.x - here.x, place.y - here.y];
    const along = x * dx + y * dy;
    if (ref === from || along <= 0) continue;
    const cost = along + 3 * Math.abs(x * dy) + 3 * Math.abs(y * dx);
    if (cost < least) [best, least] = [ref, cost];
  }
  return best;
}

const isWriting = (target: EventTarget | null): boolean => target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
const focusOn = (id: Selection): void => {
  if (id === null) return;
  const [kind, name] = Object.entries(id)[0] as [string, string];
  document.querySelector<HTMLElement>(`[data-${kind}="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
};
const focusNode = (ref: string): void => document.querySelector<HTMLElement>(`[data-node="${CSS.escape(ref)}"]`)?.focus({ preventScroll: true });

export interface Acts {
  readonly deploy: () => void;
  readonly help: () => void;
}

export function useKeys(editing: Editing, acts: Acts): void {
  const newest = useRef({ editing, acts });
  newest.current = { editing, acts };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || document.querySelector('[role="dialog"], [role="menu"]') !== null) return;
      const { editing: now, acts: does } = newest.current;
      const inspected = event.target instanceof HTMLElement && event.target.closest(".ed-insp") !== null;
      if (event.ctrlKey || event.metaKey) {
        if (event.key === "Enter" && !now.fixed) {
          event.preventDefault();
          does.deploy();
        } else if (!isWriting(event.target) || inspected) command(event, now);
      } else if (event.key === "Escape" && inspected) focusOn(now.selection);
      else if (event.key === "?" && !isWriting(event.target)) does.help();
      else if (!isWriting(event.target) && !event.altKey) plainKey(event, now);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function command(event: KeyboardEvent, { draft, fixed }: Editing): void {
  const key = event.key.toLowerCase();
  if (fixed || (key !== "z" && key !== "y")) return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) draft.redo();
  else draft.undo();
}

function plainKey(event: KeyboardEvent, editing: Editing): void {
  const { selection, select, connecting, setConnecting, fixed, draft, placesNow } = editing;
  const mark = event.target instanceof HTMLElement ? (event.target.dataset["mark"] ?? null) : null;
  const focused = event.target instanceof HTMLElement ? (event.target.dataset["node"] ?? null) : null;
  const node = focused ?? (selection !== null && "node" in selection ? selection.node : null);
  const direction = DIRECTIONS[event.key];
  if (direction !== undefined && mark !== null) moveMark(event, editing, mark, direction);
  else if (direction !== undefined && (focused !== null || connecting !== null || event.target === document.body)) arrow(event, editing, node, direction);
  else if (event.key === "Escape") connecting !== null ? setConnecting(null) : select(null);
  else if (event.key === "Enter" && connecting?.to != null) {
    event.preventDefault();
    connectNodes(draft, connecting.from, connecting.to);
    setConnecting(null);
  } else if ((event.key === "Enter" || event.key === " ") && (focused ?? mark ?? edgeOf(event)) !== null) {
    event.preventDefault();
    const meant: Selection = focused !== null ? { node: focused } : mark !== null ? { mark } : { edge: edgeOf(event) as string };
    if (JSON.stringify(meant) === JSON.stringify(selection)) document.querySelector<HTMLElement>(".ed-insp-body input, .ed-insp-body select, .ed-insp-body textarea")?.focus();
    else select(meant);
  } else if ((event.key === "t" || event.key === "T") && (node ?? edgeOf(event)) !== null) nextEdge(editing, node, edgeOf(event));
  else if (fixed) return;
  else if (event.key === "n" || event.key === "N") {
    event.preventDefault();
    select({ mark: putMark(draft, "note", node, placesNow.current) });
  } else if (event.key === "a" || event.key === "A") {
    event.preventDefault();
    if (node !== null) select({ node });
    document.getElementById("ed-palette-search")?.focus();
  } else if ((event.key === "c" || event.key === "C") && node !== null) {
    setConnecting({ from: node, to: nearest(placesNow.current, node, [1, 0]) ?? nearest(placesNow.current, node, [0, 1]) ?? nearest(placesNow.current, node, [-1, 0]) });
  } else if ((event.key === "Delete" || event.key === "Backspace") && selection !== null) {
    event.preventDefault();
    if ("node" in selection) removeNode(draft, selection.node);
    else if ("mark" in selection) removeMark(draft, selection.mark);
    else removeEdge(draft, selection.edge);
    select(null);
  }
}

const edgeOf = (event: KeyboardEvent): string | null => (event.target instanceof HTMLElement ? (event.target.dataset["edge"] ?? null) : null);

/** From a node to its first transition, from a transition to the next one of the same node. */
function nextEdge({ draft, select }: Editing, node: string | null, edge: string | null): void {
  const { edges } = draft.get().flow;
  const source = edge === null ? node : (edges.find((one) => one.id === edge)?.source ?? null);
  const out = edges.filter((one) => one.source === source);
  const next = out[(out.findIndex((one) => one.id === edge) + 1) % Math.max(1, out.length)];
  if (next === undefined) return;
  select({ edge: next.id });
  focusOn({ edge: next.id });
}

function moveMark(event: KeyboardEvent, { draft, fixed, placesNow }: Editing, id: string, direction: readonly [number, number]): void {
  const mark = draft.get().marks.find((one) => one.id === id);
  if (!event.shiftKey || mark === undefined || fixed) return;
  event.preventDefault();
  dropMark(draft, id, { x: mark.x + direction[0] * MOVE, y: mark.y + direction[1] * MOVE }, placesNow.current, true);
}

function arrow(event: KeyboardEvent, { connecting, setConnecting, select, draft, fixed, placesNow }: Editing, node: string | null, direction: readonly [number, number]): void {
  event.preventDefault();
  const places = placesNow.current;
  if (connecting !== null) {
    const to = nearest(places, connecting.to ?? connecting.from, direction);
    if (to !== null) setConnecting({ ...connecting, to });
    return;
  }
  if (node === null) return;
  const here = places[node];
  if (event.shiftKey && here !== undefined && !fixed) {
    draft.edit(`move ${node}`, (text) => text, { merge: true, places: { ...places, [node]: { x: here.x + direction[0] * MOVE, y: here.y + direction[1] * MOVE } } });
    return;
  }
  const to = nearest(places, node, direction);
  if (to === null) return;
  select({ node: to });
  focusNode(to);
}
