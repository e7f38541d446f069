// Layouts that this browser has made before, by topology: the next page shows such a graph without a worker.
import { packLayout, shortKey, topologyKey, unpackLayout, type Layout, type LayoutEdge, type LayoutNode } from "@/model/layout";

const PREFIX = "treadle.layout.1."; // the number changes with the settings of dagre
const MOST = 50;

const nameOf = (nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): string => PREFIX + shortKey(topologyKey(nodes, edges));

export function keptLayout(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Layout | null {
  try {
    return unpackLayout(localStorage.getItem(nameOf(nodes, edges)) ?? "", nodes, edges);
  } catch {
    return null; // the browser keeps nothing for us
  }
}

export function keepLayout(layout: Layout, nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): void {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith("treadle.layout."));
    if (names.length >= MOST) for (const name of names) localStorage.removeItem(name);
    localStorage.setItem(nameOf(nodes, edges), packLayout(layout, nodes, edges));
  } catch {
    // It is made again next time.
  }
}
