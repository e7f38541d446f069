// A long layout from left to right, folded into rows, so that it can be read without zooming out.
import type { LayoutEdge, LayoutNode } from "./layout";

type Places = Readonly<Record<string, { readonly x: number; readonly y: number }>>;

/** Width at which a row ends: what a graph pane of a common window shows at about 85 %. */
export const ROW = 1_000;
const GAP = 100;

/** Columns of a layout: nodes whose middles stand above each other. */
function columnsOf(nodes: readonly LayoutNode[], places: Places): LayoutNode[][] {
  const middle = (node: LayoutNode) => (places[node.id]?.x ?? 0) + node.width / 2;
  const columns: LayoutNode[][] = [];
  for (const node of [...nodes].sort((a, b) => middle(a) - middle(b))) {
    const last = columns.at(-1);
    if (last !== undefined && middle(node) - middle(last[0]!) < 40) last.push(node);
    else columns.push([node]);
  }
  return columns;
}

/** The same layout in rows. `together`: nodes between which no row ends if that can be. */
export function folded(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[], places: Places, together: readonly (readonly string[])[] = []): Places {
  const columns = columnsOf(nodes, places);
  const left = (at: number) => Math.min(...columns[at]!.map((node) => places[node.id]?.x ?? 0));
  const right = (at: number) => Math.max(...columns[at]!.map((node) => (places[node.id]?.x ?? 0) + node.width));
  if (columns.length < 3 || right(columns.length - 1) - left(0) <= ROW * 1.2) return places;
  const column = new Map(columns.flatMap((held, at) => held.map((node) => [node.id, at] as const)));
  const spans = together.map((refs) => refs.flatMap((ref) => column.get(ref) ?? [])).filter((held) => held.length > 1).map((held) => [Math.min(...held), Math.max(...held)] as const);
  /** How bad it is to end a row before this column. */
  const cost = (at: number) => edges.filter(({ source, target }) => (column.get(source) ?? 0) < at !== (column.get(target) ?? 0) < at).length + 10 * spans.filter(([from, to]) => from < at && at <= to).length;
  const begins = [0];
  for (;;) {
    const begin = begins.at(-1)!;
    let end = begin + 1;
    while (end < columns.length && right(end) - left(begin) <= ROW) end += 1;
    if (end >= columns.length) break;
    let best = end;
    for (let at = end - 1; at > begin && right(at - 1) - left(begin) > ROW * 0.55; at--) if (cost(at) < cost(best)) best = at;
    begins.push(best);
  }
  const moved: Record<string, { x: number; y: number }> = {};
  let top = 0;
  begins.forEach((begin, row) => {
    const held = columns.slice(begin, begins[row + 1] ?? columns.length).flat();
    const [x, y] = [left(begin), Math.min(...held.map((node) => places[node.id]?.y ?? 0))];
    for (const node of held) moved[node.id] = { x: Math.round((places[node.id]?.x ?? 0) - x), y: Math.round((places[node.id]?.y ?? 0) - y + top) };
    top = Math.max(...held.map((node) => moved[node.id]!.y + node.height)) + GAP;
  });
  return moved;
}
