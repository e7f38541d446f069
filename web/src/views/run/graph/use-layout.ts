// The places of a graph: from the definition's own drawing where it has them, else from dagre in a worker.
//
// A layout is kept by topology, for all runs of a version and for later pages (`kept-layouts.ts`). After two seconds the
// worker is ended and plain columns are drawn.
import { useEffect, useMemo, useState } from "react";
import { columns, topologyKey, type Layout, type LayoutEdge, type LayoutNode, type Place } from "@/model/layout";
import type { DrawnGraph } from "../store";
import { keepLayout, keptLayout } from "./kept-layouts";

const DEADLINE_MS = 2_000;
const kept = new Map<string, Promise<Layout>>();

/** Sizes by what a node is, never by its state. */
export function sizesOf(graph: DrawnGraph): LayoutNode[] {
  const stacked = new Set(graph.transitions.filter((edge) => edge.replicates).map((edge) => edge.target));
  const meeting = new Set(graph.meetings.map((one) => one.node));
  return graph.nodes.map((node) => {
    const wide = Math.min(260, Math.max(164, 104 + node.ref.length * 8));
    if (stacked.has(node.ref) && !meeting.has(node.ref)) return { id: node.ref, width: Math.min(320, Math.max(204, 148 + node.ref.length * 8)), height: 138 };
    if (meeting.has(node.ref)) return { id: node.ref, width: Math.min(300, Math.max(188, 128 + node.ref.length * 8)), height: 114 };
    if (node.kind === "human") return { id: node.ref, width: Math.max(172, wide), height: 112 };
    return { id: node.ref, width: Math.max(node.kind === "waits" ? 176 : 164, wide), height: 56 };
  });
}

function ask(nodes: LayoutNode[], edges: LayoutEdge[]): Promise<Layout> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const end = (layout: Layout) => {
      clearTimeout(timer);
      worker.terminate();
      resolve(layout);
    };
    const timer = setTimeout(() => end(columns(nodes, edges)), DEADLINE_MS);
    worker.onmessage = ({ data }: MessageEvent<{ places: [string, Place][]; bends: [string, [number, number][]][] }>) => {
      const layout = { places: new Map(data.places), bends: new Map(data.bends) };
      end(layout);
      keepLayout(layout, nodes, edges);
    };
    worker.onerror = () => end(columns(nodes, edges));
    worker.postMessage({ nodes, edges });
  });
}

interface DrawnNode {
  readonly id?: string;
  readonly position?: { readonly x?: number; readonly y?: number };
}

/** The places that the definition's own drawing gives, if it has one for every node: a list as React Flow writes it, or
 * by name as the service writes an imported canvas. */
export function drawn(canvas: unknown, nodes: LayoutNode[]): Layout | null {
  const given = (canvas as { nodes?: DrawnNode[] | Record<string, DrawnNode> } | null)?.nodes ?? [];
  const rows = new Map(Array.isArray(given) ? given.map((row) => [row.id, row] as const) : Object.entries(given));
  const places = new Map<string, Place>();
  for (const { id, width, height } of nodes) {
    const { x, y } = rows.get(id)?.position ?? {};
    if (typeof x === "number" && typeof y === "number") places.set(id, { x, y, width, height });
  }
  return places.size === nodes.length && nodes.length > 0 ? { places, bends: new Map() } : null;
}

export function useLayout(graph: DrawnGraph | null, canvas: unknown): Layout | null {
  const given = useMemo(() => {
    if (graph === null) return null;
    const nodes = sizesOf(graph);
    const edges = graph.transitions.map(({ id, source, target }) => ({ id, source, target }));
    return { nodes, edges, known: drawn(canvas, nodes) ?? keptLayout(nodes, edges) };
  }, [graph, canvas]);
  const [found, setFound] = useState<{ given: unknown; layout: Layout } | null>(null);
  useEffect(() => {
    if (given === null || given.known !== null) return undefined;
    const key = topologyKey(given.nodes, given.edges);
    let here = true;
    const asked = kept.get(key) ?? ask(given.nodes, given.edges);
    kept.set(key, asked);
    void asked.then((layout) => here && setFound({ given, layout }));
    return () => {
      here = false;
    };
  }, [given]);
  if (given?.known != null) return given.known;
  return found !== null && found.given === given ? found.layout : null; // a migrated run has another graph: its own places
}
