// Places for the nodes of a draft, by dagre, off the page's thread.
import { graphlib, layout } from "@dagrejs/dagre";
import type { LayoutEdge, LayoutNode } from "@/model/layout";

/** An edge that leaves room for its label. */
export type LabelledEdge = LayoutEdge & { readonly label: number; readonly height: number };

self.onmessage = ({ data }: MessageEvent<{ nodes: LayoutNode[]; edges: LabelledEdge[]; down: boolean }>) => {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: data.down ? "TB" : "LR", nodesep: data.down ? 24 : 44, ranksep: 56, edgesep: 24, ranker: data.nodes.length > 150 ? "tight-tree" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of data.nodes) graph.setNode(id, { width, height });
  for (const { id, source, target, label, height } of data.edges) graph.setEdge(source, target, { id, width: data.down ? Math.min(1, height) : label, height, labelpos: "c" }, id);
  layout(graph);
  self.postMessage(
    data.nodes.map(({ id, width, height }) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return [id, { x: Math.round(x - width / 2), y: Math.round(y - height / 2) }];
    }),
  );
};
