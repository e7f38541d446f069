// What a person does in the editor, each as one named step of undo.
import { addNode, connect, deleteEdge, deleteNode, freeRef, renameNode } from "@/model/flow-edit";
import { freeMark, isInside, type Mark, type Point } from "@/model/drawing";
import type { Kind } from "@/model/palette";
import { appendIn } from "@/model/yaml-edit";
import type { Draft, Places } from "./draft";
import { beside, tidy } from "./graph/places";

/** Puts a new node on the graph, behind the selected one. Returns its name. */
export function putNode(draft: Draft, kind: Kind, after: string | null, places: Places): string {
  const { text } = draft.get();
  const ref = freeRef(text, kind.ref);
  draft.edit(`add ${ref}`, (before) => addNode(before, ref, kind.node, after), { places: { ...places, [ref]: beside(places, after) } });
  return ref;
}

/** Puts a fan-out of three branches and the node at which they meet. Returns the name of the branches' node. */
export function putFan(draft: Draft, after: string | null, places: Places): string {
  const source = after ?? freeRef(draft.get().text, "begin");
  const branch = freeRef(draft.get().text, "branch");
  const meet = freeRef(draft.get().text, "collect");
  let put: Places = after === null ? { ...places, [source]: beside(places, null) } : places;
  put = { ...put, [branch]: beside(put, source) };
  put = { ...put, [meet]: beside(put, branch) };
  const write = (text: string): string => {
    let edited = after === null ? addNode(text, source, {}) : text;
    edited = addNode(addNode(edited, branch, {}), meet, {});
    edited = appendIn(edited, ["transitions"], { from: source, to: branch, spawn_count: 3, sibling_group: `${branch}_group` });
    return appendIn(edited, ["transitions"], { from: branch, to: meet, synchronization: { sibling_group: `${branch}_group`, strategy: "all" } });
  };
  draft.edit(`add fan-out ${branch}`, write, { places: put });
  return branch;
}

export const connectNodes = (draft: Draft, from: string, to: string): void => draft.edit(`connect ${from} to ${to}`, (text) => connect(text, from, to));

export const removeNode = (draft: Draft, ref: string): void => draft.edit(`delete ${ref}`, (text) => deleteNode(text, ref));

export const removeEdge = (draft: Draft, id: string): void => {
  const edge = draft.get().flow.edges.find((one) => one.id === id);
  if (edge !== undefined) draft.edit(`delete ${id}`, (text) => deleteEdge(text, edge.index));
};

/** Renames a node; its place follows. Returns whether it has the new name now. */
export function rename(draft: Draft, ref: string, name: string): boolean {
  const { text, places } = draft.get();
  const edited = renameNode(text, ref, name);
  if (edited === text) return false;
  const { [ref]: place, ...rest } = places;
  draft.edit(`rename ${ref}`, () => edited, place === undefined ? {} : { places: { ...rest, [name]: place } });
  return true;
}

export async function tidyUp(draft: Draft): Promise<void> {
  draft.move("tidy", await tidy(draft.get().flow));
}

/** Puts a note or a section where there is room for it: beside the selected node, or below everything. Returns its id. */
export function putMark(draft: Draft, kind: Mark["kind"], after: string | null, places: Places): string {
  const { marks } = draft.get();
  const id = freeMark(marks, kind);
  const own = after === null ? undefined : places[after];
  const all = Object.values(places);
  const below = { x: Math.min(0, ...all.map((one) => one.x)), y: all.length === 0 ? 0 : Math.max(...all.map((one) => one.y)) + 100 + 90 * marks.filter((mark) => mark.kind === "note").length };
  const isFree = ({ x, y }: Point) => ![...all, ...marks].some((one) => Math.abs(one.x - x) < 190 && Math.abs(one.y - y) < 70);
  const near = own === undefined ? [] : [{ x: own.x, y: own.y - 92 }, { x: own.x, y: own.y + 80 }, { x: own.x, y: own.y + 170 }];
  const at = kind === "section" && own !== undefined ? { x: own.x - 30, y: own.y - 50 } : (near.find(isFree) ?? near.at(-1) ?? below);
  const size = kind === "section" ? { width: 320, height: 170 } : { width: 200, height: 72 };
  draft.mark(`add ${kind}`, [...marks, { id, kind, text: kind === "section" ? "Section" : "", ...at, ...size }]);
  return id;
}

export const changeMark = (draft: Draft, id: string, change: Partial<Mark>): void =>
  draft.mark(`change ${id}`, draft.get().marks.map((mark) => (mark.id === id ? { ...mark, ...change } : mark)), true);

export const removeMark = (draft: Draft, id: string): void => draft.mark(`delete ${id}`, draft.get().marks.filter((mark) => mark.id !== id));

/** Moves a note or a section; a section takes along the nodes and notes that stand in it. */
export function dropMark(draft: Draft, id: string, at: Point, places: Places, merge = false): void {
  const { marks } = draft.get();
  const mark = marks.find((one) => one.id === id);
  if (mark === undefined || (mark.x === at.x && mark.y === at.y)) return;
  const by = ({ x, y }: Point) => ({ x: x + at.x - mark.x, y: y + at.y - mark.y });
  const inside = (point: Point) => mark.kind === "section" && isInside(mark, point);
  const moved = Object.fromEntries(Object.entries(places).map(([ref, place]) => [ref, inside(place) ? by(place) : place]));
  draft.edit(`move ${id}`, (text) => text, { merge, places: moved, marks: marks.map((one) => (one.id === id || inside(one) ? { ...one, ...by(one) } : one)) });
}
