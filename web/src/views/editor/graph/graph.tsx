// The graph of the draft. Every change on it is an edit of the text; only places are kept beside it.
import { Background, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow, useStore, type Edge, type Node, type NodeChange } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { Mark } from "@/model/drawing";
import type { Flow } from "@/model/flow";
import { bandsOf, groupsOf, type Group } from "@/model/groups";
import type { Place } from "@/model/layout";
import { routes } from "@/model/route";
import { Button } from "@/ui/parts";
import { useEditing, useShown } from "../context";
import { useMedia } from "../use-wide";
import type { Places } from "../draft";
import { connectNodes, dropMark } from "../edits";
import { Heads, Way, type WayData } from "./edge";
import { Bands, MarkNode, type MarkData } from "./marks";
import { Step, type StepData } from "./node";
import { HEIGHT, rectsOf, usePlaces, wantedOf, widthOf } from "./places";

const NODES = { step: Step, mark: MarkNode };
const EDGES = { way: Way };
/** A phone reads downwards, wherever the nodes were put. */
const NOWHERE: Places = {};
const NONE: readonly Mark[] = [];
type Drawn = Node<StepData> | Node<MarkData>;
const MARK = "mark ";
/** Room for the tools at the top and the bottom, so that they cover no node; the small map comes with larger graphs. */
const FEW = 20;
const fitOf = (count: number) => ({ padding: { top: "60px", right: "32px", bottom: count > FEW ? "100px" : "56px", left: "44px" }, maxZoom: 1, minZoom: 0.35 }) as const;

function drawnNodes(flow: Flow, groups: readonly Group[], places: Places): Drawn[] {
  const stacks = new Map([...groups].reverse().flatMap(({ members, count }) => members.map((ref) => [ref, count] as const)));
  return flow.nodes.map((node) => ({ id: node.ref, type: "step", position: places[node.ref] ?? { x: 0, y: 0 }, width: widthOf(node.ref), height: HEIGHT, data: { node, stack: stacks.get(node.ref) ?? null } }));
}

const drawnMarks = (marks: readonly Mark[]): Drawn[] =>
  marks.map((mark) => ({ id: MARK + mark.id, type: "mark", position: { x: mark.x, y: mark.y }, width: mark.width, height: mark.height, zIndex: mark.kind === "section" ? -2 : 0, data: { mark } }));

function drawnEdges(flow: Flow, rects: ReadonlyMap<string, Place>): Edge<WayData>[] {
  const lines = routes(wantedOf(flow), rects);
  return flow.edges.flatMap((edge) => {
    const route = lines.get(String(edge.index));
    return route === undefined ? [] : [{ id: `${edge.index}`, source: edge.source, target: edge.target, type: "way", focusable: false, data: { edge, route } }];
  });
}

export function Graph({ tools }: { tools?: ReactNode }) {
  const { placesNow } = useEditing();
  const { flow, places: own, marks } = useShown();
  const phone = useMedia("(max-width: 719px)");
  const places = usePlaces(flow, phone ? NOWHERE : own, phone);
  if (places !== null) placesNow.current = places;
  return (
    <section className="graph ed-graph" aria-label="Graph">
      <Heads />
      <ReactFlowProvider>{places === null ? null : <Pane flow={flow} places={places} marks={phone ? NONE : marks} />}</ReactFlowProvider>
      {tools}
    </section>
  );
}

function Pane({ flow, places, marks }: { flow: Flow; places: Places; marks: readonly Mark[] }) {
  const { draft, select, fixed, connecting, setConnecting, placesNow } = useEditing();
  const groups = useMemo(() => groupsOf(flow), [flow]);
  const given = useMemo(() => [...drawnMarks(marks), ...drawnNodes(flow, groups, places)], [flow, groups, places, marks]);
  const [moved, setMoved] = useState<Places>({});
  const [sized, setSized] = useState<Record<string, { width: number; height: number }>>({});
  const nodes = useMemo(() => given.map((node) => ({ ...node, position: moved[node.id] ?? node.position, ...sized[node.id] }) as Drawn), [given, moved, sized]);
  const rects = useMemo(() => rectsOf(flow, { ...places, ...moved }), [flow, places, moved]);
  const edges = useMemo(() => drawnEdges(flow, rects), [flow, rects]);
  const bands = useMemo(() => bandsOf(groups, rects), [groups, rects]);
  useEffect(() => {
    setMoved({});
    setSized({});
  }, [given]);
  const change = (changes: NodeChange<Drawn>[]) => {
    const steps = changes.flatMap((one) => (one.type === "position" && one.position !== undefined ? [[one.id, { x: Math.round(one.position.x), y: Math.round(one.position.y) }] as const] : []));
    if (steps.length > 0) setMoved((before) => ({ ...before, ...Object.fromEntries(steps) }));
    const sizes = changes.flatMap((one) => (one.type === "dimensions" && one.resizing === true && one.dimensions !== undefined ? [[one.id, one.dimensions] as const] : []));
    if (sizes.length > 0) setSized((before) => ({ ...before, ...Object.fromEntries(sizes) }));
  };
  const press = (id: string) => {
    if (id.startsWith(MARK)) return select({ mark: id.slice(MARK.length) });
    if (connecting !== null && connecting.from !== id) {
      connectNodes(draft, connecting.from, id);
      setConnecting(null);
    }
    select({ node: id });
  };
  const dropped = ({ id, position }: Drawn) => {
    const at = { x: Math.round(position.x), y: Math.round(position.y) };
    if (id.startsWith(MARK)) dropMark(draft, id.slice(MARK.length), at, placesNow.current);
    else draft.move(`move ${id}`, { ...placesNow.current, [id]: at });
  };
  return (
    <>
      <ReactFlow
        nodes={nodes} edges={edges} nodeTypes={NODES} edgeTypes={EDGES} fitView fitViewOptions={fitOf(nodes.length)} minZoom={0.15} maxZoom={2}
        onNodesChange={change} onNodeDragStop={(_event, node) => dropped(node)}
        onConnect={({ source, target }) => connectNodes(draft, source, target)} onNodeClick={(_event, node) => press(node.id)} onPaneClick={() => select(null)}
        nodesDraggable={!fixed} nodesConnectable={!fixed} elementsSelectable={false} nodesFocusable={false} edgesFocusable={false} disableKeyboardA11y deleteKeyCode={null}
        zoomOnDoubleClick={false} snapToGrid snapGrid={[10, 10]} nodeDragThreshold={4} proOptions={{ hideAttribution: true }}
      >
        <Background gap={20} size={1} />
        <Bands bands={bands} />
        {nodes.length > FEW && <MiniMap className="ed-minimap float" pannable zoomable nodeStrokeWidth={0} ariaLabel="Overview of the graph" />}
      </ReactFlow>
      {flow.nodes.length === 0 && !fixed && <p className="ed-empty c2">Nothing is drawn yet. Choose a node at the left, or press <span className="kbd">A</span> and type its kind.</p>}
      <Zoom count={flow.nodes.length} />
    </>
  );
}

function Zoom({ count }: { count: number }) {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  const zoom = useStore((state) => state.transform[2]);
  const before = useRef(count);
  useEffect(() => {
    // The first nodes of an empty draft are brought into view; afterwards the view is the person's.
    if (before.current < 2 && count > 0) void fitView(fitOf(count));
    before.current = count;
  }, [count]);
  return (
    <div className={count > FEW ? "ed-zoom float" : "ed-zoom float is-alone"} role="group" aria-label="Zoom">
      <Button kind="ghost" size="sm" icon="minus" aria-label="Zoom out" onClick={() => void zoomOut()} />
      <span className="t1">{Math.round(zoom * 100)} %</span>
      <Button kind="ghost" size="sm" icon="plus" aria-label="Zoom in" onClick={() => void zoomIn()} />
      <span className="vr" />
      <Button kind="ghost" size="sm" icon="fit" aria-label="Show all" onClick={() => void fitView(fitOf(count))} />
    </div>
  );
}
