// What is done on the graph, as edits of the definition's text: nodes and transitions added, removed, renamed.
import { parseDocument } from "yaml";
import { readFlow } from "./flow";
import { appendIn, deleteIn, renameKey, setIn, type Path } from "./yaml-edit";

/** A name that no node has yet. */
export function freeRef(text: string, wanted: string): string {
  const taken = new Set(readFlow(text).flow?.nodes.map((node) => node.ref));
  if (!taken.has(wanted)) return wanted;
  for (let at = 2; ; at++) if (!taken.has(`${wanted}_${at}`)) return `${wanted}_${at}`;
}

/** Adds a node; `after`: with a transition from that node. */
export function addNode(text: string, ref: string, node: unknown, after: string | null = null): string {
  const added = setIn(text, ["nodes", ref], node);
  return after === null ? added : connect(added, after, ref);
}

/** Adds a transition. A second one between the same nodes gets an id of its own. */
export function connect(text: string, from: string, to: string): string {
  const ids = new Set(readFlow(text).flow?.edges.map((edge) => edge.id));
  let id = `${from}->${to}`;
  if (!ids.has(id)) return appendIn(text, ["transitions"], { from, to });
  for (let at = 2; ids.has(id); at++) id = `${from}->${to}#${at}`;
  return appendIn(text, ["transitions"], { id, from, to });
}

export function deleteNode(text: string, ref: string): string {
  const flow = readFlow(text).flow;
  let edited = text;
  for (const edge of [...(flow?.edges ?? [])].reverse()) if (edge.source === ref || edge.target === ref) edited = deleteIn(edited, ["transitions", edge.index]);
  edited = deleteIn(edited, ["nodes", ref]);
  const start = parseDocument(edited).toJS() as { start?: unknown } | null;
  if (start?.start === ref) return deleteIn(edited, ["start"]);
  if (Array.isArray(start?.start) && start.start.includes(ref)) return start.start.length === 1 ? deleteIn(edited, ["start"]) : deleteIn(edited, ["start", start.start.indexOf(ref)]);
  return edited;
}

export const deleteEdge = (text: string, index: number): string => deleteIn(text, ["transitions", index]);

/** Renames a node; transitions, the start and joins that name it follow. */
export function renameNode(text: string, ref: string, name: string): string {
  const flow = readFlow(text).flow;
  if (flow === null || name === "" || name === ref || flow.nodes.some((node) => node.ref === name)) return text;
  let edited = renameKey(text, ["nodes", ref], name);
  const value = parseDocument(text).toJS() as Record<string, unknown>;
  const follow = (path: Path, held: unknown) => {
    if (held === ref) edited = setIn(edited, path, name);
    else if (Array.isArray(held)) held.forEach((one, at) => one === ref && (edited = setIn(edited, [...path, at], name)));
  };
  for (const key of ["start", "initial_node_id"]) follow([key], value[key]);
  ((value["transitions"] ?? []) as Record<string, unknown>[]).forEach((one, at) => {
    for (const key of ["from", "to", "from_node_id", "to_node_id"]) follow(["transitions", at, key], one[key]);
    for (const key of ["synchronization", "join"]) {
      const join = one[key] as Record<string, unknown> | undefined;
      if (join !== null && typeof join === "object") follow(["transitions", at, key, "sibling_group"], join["sibling_group"]);
    }
    const each = one["foreach"] as Record<string, unknown> | undefined;
    if (each !== null && typeof each === "object") follow(["transitions", at, "foreach", "on_empty"], each["on_empty"]);
  });
  return edited;
}

/** Sets a field; nothing, or an empty text, removes it. */
export const setField = (text: string, path: Path, value: unknown): string => (value === undefined || value === "" ? deleteIn(text, path) : setIn(text, path, value));
