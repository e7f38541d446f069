// The graph: the definition drawn once, the run's state on it. The view never moves by itself after it was first fitted.
import { Background, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, useStore, useStoreApi, type Edge, type Node } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useEffect, useMemo, useRef, useState } from "react";
import { edgePath, type Layout } from "@/model/layout";
import type { EdgeGiven } from "@/model/edges";
import type { Event } from "@/model/fold";
import { Button, Loading } from "@/ui/parts";
import { Glyph } from "@/ui/icon";
import { useRunPage, useSeen } from "../context";
import type { DrawnGraph } from "../store";
import { choose, pickedAt, useFailures } from "../go";
import { LoopBar } from "./loop-bar";
import { BoldContext, Heads, Way, type WayData } from "./edge";
import { GraphContext, Step, type StepData } from "./node";
import type { Summaries } from "./summaries";
import { TipProvider } from "./tip";
import { hopsOf, Tokens } from "./tokens";
import { useLayout } from "./use-layout";
import { useWays, WaysProvider } from "./ways";

const LARGE = 150; // nodes: from here on only those in sight exist, and far away they show their name alone
const FAR = 0.5;
/** Room at the top and the bottom: the tools there cover no node. */
const FIT = { padding: { top: "48px", right: "40px", bottom: "52px", left: "40px" }, maxZoom: 1, minZoom: 0.3 } as const;
const NODES = { step: Step };
const EDGES = { way: Way };

interface Drawing {
  nodes: Node<StepData>[];
  edges: Edge<WayData>[];
  paths: Map<string, string>;
  ways: EdgeGiven[];
}

function drawingOf(graph: DrawnGraph, layout: Layout): Drawing {
  const nodes = graph.nodes.flatMap((node) => {
    const place = layout.places.get(node.ref);
    return place === undefined ? [] : [{ id: node.ref, type: "step", position: { x: place.x, y: place.y }, width: place.width, height: place.height, data: { ref: node.ref, kind: node.kind, words: node.words } }];
  });
  const paths = new Map<string, string>();
  let backs = 0;
  const edges = graph.transitions.flatMap((edge) => {
    const [from, to] = [layout.places.get(edge.source), layout.places.get(edge.target)];
    if (from === undefined || to === undefined) return [];
    const { path, label, back } = edgePath(from, to, layout.bends.get(edge.id), backs);
    if (back) backs += 1;
    paths.set(edge.id, path);
    return [{ id: edge.id, source: edge.source, target: edge.target, type: "way", focusable: false, data: { edge: { ...edge, back: edge.back || back }, path, label } }];
  });
  return { nodes, edges, paths, ways: edges.map((edge) => edge.data.edge) };
}

export default function Graph({ summaries }: { summaries: Summaries }) {
  const { graph, canvas } = useSeen();
  const layout = useLayout(graph, canvas);
  const drawing = useMemo(() => (graph === null || layout === null ? null : drawingOf(graph, layout)), [graph, layout]);
  // A migrated run has another graph: React Flow would draw edges of the one before for a moment, of which nothing is known here any more.
  const key = useMemo(() => (drawing === null ? "" : JSON.stringify([drawing.nodes.map((node) => node.id), drawing.edges.map((edge) => edge.id)])), [drawing]);
  if (drawing === null) return <div className="graph run-graph"><Loading what="the graph" /></div>;
  return (
    <ReactFlowProvider key={key}>
      <Pane drawing={drawing} summaries={summaries} />
    </ReactFlowProvider>
  );
}

/** Edges that are thicker for 600 ms, while motion is reduced. */
function useBold(): [ReadonlySet<string>, (events: readonly Event[]) => void] {
  const [bold, setBold] = useState<ReadonlySet<string>>(new Set());
  const show = (events: readonly Event[]) => {
    const hops = hopsOf(events);
    if (hops.length === 0) return;
    setBold((before) => new Set([...before, ...hops]));
    setTimeout(() => setBold((before) => new Set([...before].filter((edge) => !hops.includes(edge)))), 600);
  };
  return [bold, show];
}

/** Whether every node is in sight: then a map of them only covers some. */
function useWhole(nodes: readonly Node[]): boolean {
  const [left, top, right, bottom] = useMemo(() => {
    const of = (pick: (node: Node) => number, most: (...all: number[]) => number) => nodes.reduce((found, node) => most(found, pick(node)), pick(nodes[0] ?? ({ position: { x: 0, y: 0 } } as Node)));
    return [of((node) => node.position.x, Math.min), of((node) => node.position.y, Math.min), of((node) => node.position.x + (node.width ?? 0), Math.max), of((node) => node.position.y + (node.height ?? 0), Math.max)];
  }, [nodes]) as [number, number, number, number];
  return useStore(({ transform: [x, y, zoom], width, height }) => left * zoom + x >= 0 && top * zoom + y >= 0 && right * zoom + x <= width && bottom * zoom + y <= height);
}

/** The failure card above takes its height from the graph, a moment after the first fit. Until a person has moved the
 * view, it is fitted to the height that is left. */
function useRefit(): { current: boolean } {
  const { fitView } = useReactFlow();
  const height = useStore((state) => state.height);
  const touched = useRef(false);
  const before = useRef(0);
  useEffect(() => {
    if (before.current > 0 && height > 0 && height !== before.current && !touched.current) void fitView(FIT);
    before.current = height;
  }, [height]);
  return touched;
}

function Pane({ drawing, summaries }: { drawing: Drawing; summaries: Summaries }) {
  const { selection, select, store } = useRunPage();
  const feed = useRef<((events: readonly Event[]) => void) | null>(null);
  const [bold, showBold] = useBold();
  const still = useMemo(() => matchMedia("(prefers-reduced-motion: reduce)").matches, []);
  const { nodes: flowNodes, edges, paths, ways: drawn } = drawing;
  const ways = useWays(drawn);
  useEffect(() => store.watch(() => {
    const { fresh } = store.get();
    if (fresh !== null && fresh.length > 0) still ? showBold(fresh) : feed.current?.(fresh);
  }), [store, still]);
  const isLarge = flowNodes.length > LARGE;
  const isFar = useStore((state) => state.transform[2] < FAR) && isLarge;
  const visit = selection.visit === null ? undefined : store.get().state.visits.get(selection.visit);
  const selected = selection.node ?? visit?.node ?? null;
  useReveal(selected);
  const touched = useRefit();
  const isWhole = useWhole(flowNodes);
  const shared = useMemo(() => ({ summaries, selected, onSelect: (ref: string) => select(choose(store.get().state, ref)), onPick: (ref: string, group: number, pick: string) => select(pickedAt(store.get().state, ref, group, pick)) }), [summaries, selected]);
  return (
    <GraphContext.Provider value={shared}>
      <WaysProvider value={ways}>
        <BoldContext.Provider value={bold}>
          <TipProvider>
            <div className={isFar ? "graph run-graph is-far" : "graph run-graph"} role="group" aria-label="Graph">
              <Heads />
              <ReactFlow
                onMoveStart={(event) => { if (event !== null) touched.current = true; }}
                nodes={flowNodes} edges={edges} nodeTypes={NODES} edgeTypes={EDGES} fitView fitViewOptions={FIT} minZoom={0.15} maxZoom={2}
                nodesDraggable={false} nodesConnectable={false} elementsSelectable={false} nodesFocusable={false} edgesFocusable={false} disableKeyboardA11y zoomOnDoubleClick={false} onlyRenderVisibleElements={isLarge}
                proOptions={{ hideAttribution: true }} onPaneClick={() => select({ node: null, visit: null, group: null })}
              >
                <Background gap={20} size={1} />
                {!isWhole && <MiniMap className="run-minimap float" pannable zoomable nodeColor={(node) => `var(--${summaries.of(node.id)?.worst ?? "idle"})`} nodeStrokeWidth={0} ariaLabel="Overview of the graph" />}
                <Tokens paths={paths} feed={feed} />
              </ReactFlow>
              <Tools />
              <LoopBar />
              <Zoom />
            </div>
          </TipProvider>
        </BoldContext.Provider>
      </WaysProvider>
    </GraphContext.Provider>
  );
}

/** Moves the view to what was selected elsewhere, if it is out of sight; the zoom stays. */
function useReveal(selected: string | null): void {
  const { getNode, getZoom, setCenter } = useReactFlow();
  const api = useStoreApi();
  useEffect(() => {
    const node = selected === null ? undefined : getNode(selected);
    if (node === undefined) return;
    const { transform: [dx, dy, zoom], width, height } = api.getState();
    const [x, y] = [node.position.x + (node.width ?? 0) / 2, node.position.y + (node.height ?? 0) / 2];
    const isInSight = x * zoom + dx > 0 && x * zoom + dx < width && y * zoom + dy > 0 && y * zoom + dy < height;
    if (!isInSight && width > 0) void setCenter(x, y, { zoom: getZoom() });
  }, [selected]);
}

function Zoom() {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  const zoom = useStore((state) => state.transform[2]);
  return (
    <div className="run-zoom float" role="group" aria-label="Zoom">
      <Button kind="ghost" size="sm" icon="minus" aria-label="Zoom out" onClick={() => void zoomOut()} />
      <span className="t1">{Math.round(zoom * 100)} %</span>
      <Button kind="ghost" size="sm" icon="plus" aria-label="Zoom in" onClick={() => void zoomIn()} />
      <span className="vr" />
      <Button kind="ghost" size="sm" icon="fit" aria-label="Show all" onClick={() => void fitView(FIT)} />
    </div>
  );
}

function Tools() {
  const { state } = useSeen();
  const { nextFailure } = useFailures();
  const failures = (state.counts.get("failed") ?? 0) + (state.counts.get("timed_out") ?? 0);
  if (failures === 0) return null;
  return (
    <div className="run-tools">
      <button type="button" className="btn btn-sm" onClick={nextFailure}>
        <span data-tone="fail" className="tone"><Glyph name="fail" small /></span>
        {failures === 1 ? "1 failure" : `${failures.toLocaleString()} failures`} <span className="kbd">F</span>
      </button>
    </div>
  );
}
