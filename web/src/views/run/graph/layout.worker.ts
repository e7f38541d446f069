// Places for the nodes of a graph, by dagre, off the page's thread.
import { graphlib, layout } from "@dagrejs/dagre";
import type { LayoutEdge, LayoutNode } from "@/model/layout";

self.onmessage = ({ data }: MessageEvent<{ nodes: LayoutNode[]; edges: LayoutEdge[] }>) => {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 34, ranksep: 58, edgesep: 18, ranker: data.nodes.length > 150 ? "tight-tree" : "network-simplex", marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of data.nodes) graph.setNode(id, { width, height });
  for (const { id, source, target } of data.edges) graph.setEdge(source, target, { id }, id);
  layout(graph);
  const places = data.nodes.map(({ id, width, height }) => {
    const { x, y } = graph.node(id) as { x: number; y: number };
    return [id, { x: x - width / 2, y: y - height / 2, width, height }] as const;
  });
  const bends = data.edges.map(({ id, source, target }) => {
    const points = (graph.edge(source, target, id) as { points?: { x: number; y: number }[] }).points ?? [];
    return [id, points.slice(1, -1).map(({ x, y }) => [x, y] as const)] as const;
  });
  self.postMessage({ places, bends });
};
