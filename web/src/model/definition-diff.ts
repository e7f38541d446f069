// What is different between two texts of a definition: as nodes and transitions, and as lines.
import { readFlow, type Flow } from "./flow";

export interface Changed {
  readonly ref: string;
  readonly fields: readonly string[];
}
export interface Part {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly Changed[];
}
export interface GraphDiff {
  readonly nodes: Part;
  readonly transitions: Part;
  /** Fields of the workflow itself. */
  readonly settings: readonly string[];
}

type Values = Record<string, unknown>;
const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);
const fields = (left: Values, right: Values): string[] => [...new Set([...Object.keys(left), ...Object.keys(right)])].filter((key) => !same(left[key], right[key]));

function part(before: Map<string, Values>, after: Map<string, Values>): Part {
  const changed = [...after].flatMap(([ref, value]) => {
    const old = before.get(ref);
    const differs = old === undefined ? [] : fields(old, value);
    return differs.length === 0 ? [] : [{ ref, fields: differs }];
  });
  return { added: [...after.keys()].filter((ref) => !before.has(ref)), removed: [...before.keys()].filter((ref) => !after.has(ref)), changed };
}

const nodes = (flow: Flow): Map<string, Values> => new Map(flow.nodes.map((node) => [node.ref, node.value]));
const edges = (flow: Flow): Map<string, Values> => new Map(flow.edges.map((edge) => [edge.id, edge.value]));
const EMPTY: Flow = { name: "", nodes: [], edges: [], value: {} };

export function graphDiff(before: string, after: string): GraphDiff {
  const [left, right] = [readFlow(before).flow ?? EMPTY, readFlow(after).flow ?? EMPTY];
  const settings = fields(left.value, right.value).filter((key) => key !== "nodes" && key !== "transitions" && key !== "canvas");
  return { nodes: part(nodes(left), nodes(right)), transitions: part(edges(left), edges(right)), settings };
}

export interface Union {
  readonly flow: Flow;
  readonly nodes: ReadonlyMap<string, "added" | "removed" | "changed">;
  /** By index in the transitions of `flow`. */
  readonly edges: ReadonlyMap<number, "added" | "removed" | "changed">;
}

/** The newer graph with what was removed from the older one, and what became of each part. */
export function union(before: string, after: string): Union {
  const [left, right] = [readFlow(before).flow ?? EMPTY, readFlow(after).flow ?? EMPTY];
  const { nodes: changed, transitions } = graphDiff(before, after);
  const gone = left.edges.filter((edge) => transitions.removed.includes(edge.id));
  const shown = [...right.edges, ...gone].map((edge, index) => ({ ...edge, index }));
  const marked = (part: Part): Map<string, "added" | "removed" | "changed"> => new Map([...part.added.map((ref) => [ref, "added"] as const), ...part.removed.map((ref) => [ref, "removed"] as const), ...part.changed.map(({ ref }) => [ref, "changed"] as const)]);
  const byId = marked(transitions);
  const edges = new Map(shown.flatMap(({ id, index }) => (byId.has(id) ? [[index, byId.get(id)!] as const] : [])));
  return { flow: { ...right, nodes: [...right.nodes, ...left.nodes.filter((node) => changed.removed.includes(node.ref))], edges: shown }, nodes: marked(changed), edges };
}

export interface Line {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** Its number in the newer text, or in the older one for a removed line. */
  readonly number: number;
}

/** A line diff by the longest common subsequence, between what is equal at both ends. */
export function lineDiff(before: string, after: string): Line[] {
  const [left, right] = [before.replace(/\n$/, "").split("\n"), after.replace(/\n$/, "").split("\n")];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let foot = 0;
  while (foot < left.length - head && foot < right.length - head && left[left.length - 1 - foot] === right[right.length - 1 - foot]) foot += 1;
  const lines: Line[] = right.slice(0, head).map((text, at) => ({ kind: "same", text, number: at + 1 }));
  lines.push(...middle(left.slice(head, left.length - foot), right.slice(head, right.length - foot), head));
  const tail = right.length - foot;
  return [...lines, ...right.slice(tail).map((text, at): Line => ({ kind: "same", text, number: tail + at + 1 }))];
}

const MOST = 4_000_000;

function middle(left: string[], right: string[], offset: number): Line[] {
  const removed = (at: number): Line => ({ kind: "removed", text: left[at] as string, number: offset + at + 1 });
  const added = (at: number): Line => ({ kind: "added", text: right[at] as string, number: offset + at + 1 });
  if (left.length * right.length > MOST) return [...left.map((_text, at) => removed(at)), ...right.map((_text, at) => added(at))];
  const width = right.length + 1;
  const longest = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--) longest[i * width + j] = left[i] === right[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      lines.push({ kind: "same", text: right[j] as string, number: offset + j + 1 });
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && (longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0))) lines.push(removed(i++));
    else lines.push(added(j++));
  }
  return lines;
}

/** How many lines were added and removed. */
export function lineCounts(lines: readonly Line[]): { added: number; removed: number } {
  return { added: lines.filter((line) => line.kind === "added").length, removed: lines.filter((line) => line.kind === "removed").length };
}
