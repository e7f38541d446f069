// Two people have changed one definition: their changes together, as an edit of the other's text, and what both changed.
import { readFlow, type Flow } from "./flow";
import { appendIn, deleteIn, setIn } from "./yaml-edit";

export interface Merged {
  readonly text: string;
  /** What both changed in different ways; the draft's own change stands. */
  readonly conflicts: readonly string[];
}

type Values = Record<string, unknown>;
const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);
const EMPTY: Flow = { name: "", nodes: [], edges: [], value: {} };
const flowOf = (text: string): Flow => readFlow(text).flow ?? EMPTY;
const nodesOf = (flow: Flow): Map<string, unknown> => new Map(flow.nodes.map((node) => [node.ref, node.value]));
const edgesOf = (flow: Flow): Map<string, unknown> => new Map(flow.edges.map((edge) => [edge.id, edge.value]));
const settingsOf = ({ value }: Flow): Map<string, unknown> => new Map(Object.entries(value).filter(([key]) => !["nodes", "transitions", "canvas"].includes(key)));

/** The changes of `mine` since `base`, applied to `theirs`. */
export function merged(base: string, mine: string, theirs: string): Merged {
  const [before, own, other] = [flowOf(base), flowOf(mine), flowOf(theirs)];
  const conflicts: string[] = [];
  let text = theirs;
  const each = (what: string, of: (flow: Flow) => Map<string, unknown>, apply: (key: string, value: unknown) => string) => {
    const [first, here, there] = [of(before), of(own), of(other)];
    for (const key of new Set([...first.keys(), ...here.keys()])) {
      const value = here.get(key);
      if (same(first.get(key), value) || same(there.get(key), value)) continue;
      if (!same(first.get(key), there.get(key))) conflicts.push(`${what} ${key}`);
      text = apply(key, value);
    }
  };
  each("setting", settingsOf, (key, value) => (value === undefined ? deleteIn(text, [key]) : setIn(text, [key], value)));
  each("node", nodesOf, (key, value) => (value === undefined ? deleteIn(text, ["nodes", key]) : setIn(text, ["nodes", key], value)));
  each("transition", edgesOf, (key, value) => {
    const at = flowOf(text).edges.find((edge) => edge.id === key)?.index;
    if (value === undefined) return at === undefined ? text : deleteIn(text, ["transitions", at]);
    return at === undefined ? appendIn(text, ["transitions"], value as Values) : setIn(text, ["transitions", at], value);
  });
  return { text, conflicts };
}
