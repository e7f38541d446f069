// The drawing of a definition: sizes, places and paths of edges. Pure; dagre runs in a worker (views/run/graph).

export interface LayoutNode {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}
export interface LayoutEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
}
export interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
export interface Layout {
  readonly places: ReadonlyMap<string, Place>;
  /** Points of each edge between its ends. */
  readonly bends: ReadonlyMap<string, readonly (readonly [number, number])[]>;
}

/** Nodes and edges alone decide a layout, never states: the same topology has the same key. */
export const topologyKey = (nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): string =>
  JSON.stringify([nodes.map(({ id, width, height }) => [id, width, height]), edges.map(({ id, source, target }) => [id, source, target])]);

/** Ranks: how far a node is from the start by its longest way; edges that lead back do not count. */
export function ranksOf(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Map<string, number> {
  const out = new Map<string, string[]>();
  for (const { source, target } of edges) out.set(source, [...(out.get(source) ?? []), target]);
  const ranks = new Map<string, number>();
  const state = new Map<string, "open" | "done">();
  const order: string[] = [];
  const forward: [string, string][] = [];
  for (const { id } of nodes) {
    if (state.has(id)) continue;
    const stack: { id: string; next: number }[] = [{ id, next: 0 }];
    state.set(id, "open");
    while (stack.length > 0) {
      const top = stack[stack.length - 1] as { id: string; next: number };
      const target = out.get(top.id)?.[top.next++];
      if (target === undefined) {
        state.set(top.id, "done");
        order.push(top.id);
        stack.pop();
      } else if (state.get(target) !== "open") {
        forward.push([top.id, target]);
        if (!state.has(target)) {
          state.set(target, "open");
          stack.push({ id: target, next: 0 });
        }
      }
    }
  }
  const after = new Map<string, string[]>();
  for (const [source, target] of forward) after.set(source, [...(after.get(source) ?? []), target]);
  for (const id of order.reverse()) {
    const rank = ranks.get(id) ?? 0;
    ranks.set(id, rank);
    for (const target of after.get(id) ?? []) ranks.set(target, Math.max(ranks.get(target) ?? 0, rank + 1));
  }
  return ranks;
}

/** Plain columns by rank: what is drawn when a layout takes too long. */
export function columns(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Layout {
  const ranks = ranksOf(nodes, edges);
  const heights = new Map<number, number>();
  const places = new Map<string, Place>();
  for (const node of nodes) {
    const rank = ranks.get(node.id) ?? 0;
    const y = heights.get(rank) ?? 0;
    places.set(node.id, { x: rank * 270, y, width: node.width, height: node.height });
    heights.set(rank, y + node.height + 32);
  }
  return { places, bends: new Map() };
}

const round = (value: number): number => Math.round(value * 10) / 10;

/** The path of an edge, as SVG, and the place of its label. An edge that leads back goes around above. */
export function edgePath(from: Place, to: Place, bends: readonly (readonly [number, number])[] | undefined, index = 0): { path: string; label: readonly [number, number]; back: boolean } {
  const above = to.x < from.x + from.width && from.x < to.x + to.width; // one stands above the other: straight up or down
  const isBack = !above && to.x + to.width / 2 <= from.x + from.width / 2 - 1;
  if (isBack) return { ...around(from, to, index), back: true };
  if (to.x < from.x + from.width + 8) return { ...downwards(from, to), back: false };
  const points: (readonly [number, number])[] = [[from.x + from.width, from.y + from.height / 2], ...(bends !== undefined && bends.length > 1 ? bends : []), [to.x - 5, to.y + to.height / 2]];
  let path = `M${round(points[0]![0])} ${round(points[0]![1])}`;
  for (let step = 1; step < points.length; step++) {
    const [[ax, ay], [bx, by]] = [points[step - 1]!, points[step]!];
    const middle = (ax + bx) / 2;
    path += `C${round(middle)} ${round(ay)} ${round(middle)} ${round(by)} ${round(bx)} ${round(by)}`;
  }
  const half = Math.floor(points.length / 2);
  const [a, b] = [points[half - 1]!, points[half]!];
  return { path, label: points.length % 2 === 1 ? points[half]! : [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], back: false };
}

function downwards(from: Place, to: Place): { path: string; label: readonly [number, number] } {
  const down = to.y >= from.y;
  const [ax, ay] = [from.x + from.width / 2, down ? from.y + from.height : from.y];
  const [bx, by] = [to.x + to.width / 2, down ? to.y - 5 : to.y + to.height + 5];
  const middle = (ay + by) / 2;
  return { path: `M${round(ax)} ${round(ay)}C${round(ax)} ${round(middle)} ${round(bx)} ${round(middle)} ${round(bx)} ${round(by)}`, label: [(ax + bx) / 2, middle] };
}

function around(from: Place, to: Place, index: number): { path: string; label: readonly [number, number] } {
  const [ax, bx] = [from.x + from.width / 2, to.x + to.width / 2 + 14 * (index % 3)];
  const top = Math.min(from.y, to.y) - 34 - 16 * (index % 3);
  const r = Math.min(14, Math.abs(ax - bx) / 2);
  const path = `M${round(ax)} ${round(from.y + from.height / 2)}V${round(top + r)}Q${round(ax)} ${round(top)} ${round(ax - r)} ${round(top)}H${round(bx + r)}Q${round(bx)} ${round(top)} ${round(bx)} ${round(top + r)}V${round(to.y - 5)}`;
  return { path, label: [(ax + bx) / 2, top] };
}

type Packed = [places: [number, number][], bends: [number, number][][]];

/** A layout as text without a name of anything, to be kept in the browser. */
export function packLayout(layout: Layout, nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): string {
  const places = nodes.map(({ id }) => [layout.places.get(id)?.x, layout.places.get(id)?.y]);
  return JSON.stringify([places, edges.map(({ id }) => layout.bends.get(id) ?? [])]);
}

/** The layout in a text that `packLayout` has made of the same nodes and edges; null: it is none. */
export function unpackLayout(text: string, nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Layout | null {
  const isPoint = (point: unknown) => Array.isArray(point) && point.length === 2 && point.every(Number.isFinite);
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  const [points, lines] = (Array.isArray(read) ? read : []) as Partial<Packed>;
  if (points?.length !== nodes.length || lines?.length !== edges.length) return null;
  if (!points.every(isPoint) || !lines.every((line) => Array.isArray(line) && line.every(isPoint))) return null;
  const places = nodes.map(({ id, width, height }, at) => [id, { x: points[at]?.[0] ?? 0, y: points[at]?.[1] ?? 0, width, height }] as const);
  return { places: new Map(places), bends: new Map(edges.map(({ id }, at) => [id, lines[at] ?? []])) };
}

const hashOf = (text: string, start: number): number => {
  let hash = start;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193); // FNV-1a
  return hash >>> 0;
};

/** A short name of a topology's key: 64 bits, so that two of the few that are kept do not meet. */
export const shortKey = (key: string): string => `${hashOf(key, 0x811c9dc5).toString(36)}-${hashOf(`${key.length} ${key}`, 0x2c6fe96e).toString(36)}`;
