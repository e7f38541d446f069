// The map: sections, nodes and ways drawn once, people on it as dots. It never moves by itself after it was first fitted.
import { Background, ReactFlow, ReactFlowProvider, useReactFlow, useStore, ViewportPortal, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { Fragment, memo, useMemo, useState } from "react";
import { routeOf, type Route } from "@/model/journey-route";
import { keyOf, percentText, placeOf, stayText, type Entity, type Standing } from "@/model/journeys";
import type { DrawnSection } from "@/model/journey-map";
import { Button } from "@/ui/parts";
import { Icon } from "@/ui/icon";
import { iconOf } from "@/views/run/graph/node";
import { useJourneys } from "./context";
import type { Drawn } from "./data";
import { Cluster, Dot } from "./dots";
import { Hops, type Feed } from "./hops";
import { Legend } from "./legend";
import { edgeSpots, entrySpots, freeSides, nodeSpots, sectionSpots } from "./spots";

export interface Way {
  readonly route: Route;
  readonly source: string;
  readonly target: string;
}

const NODES = { section: memo(SectionBox), step: memo(StepBox) };
const FIT = { padding: { top: "64px", right: "24px", bottom: "56px", left: "24px" }, maxZoom: 1, minZoom: 0.25 } as const;

/** The ways of a map, each with a lane of its own where it must go around. */
export function waysOf(drawn: Drawn): Map<string, Way> {
  const { places } = drawn.map;
  const boxes = [...places.values()];
  let lanes = 0;
  return new Map(drawn.graph.transitions.flatMap(({ id, source, target }) => {
    const [from, to] = [places.get(source), places.get(target)];
    if (from === undefined || to === undefined || source === target) return [];
    const route = routeOf(from, to, boxes, lanes);
    if (route.points.length > 2) lanes += 1;
    return [[id, { route, source, target }] as const];
  }));
}

export default function Graph({ feed, bold }: { feed: Feed; bold: ReadonlySet<string> }) {
  return (
    <ReactFlowProvider>
      <Pane feed={feed} bold={bold} />
    </ReactFlowProvider>
  );
}

function Pane({ feed, bold }: { feed: Feed; bold: ReadonlySet<string> }) {
  const { drawn, select } = useJourneys();
  const [empty] = useState<never[]>([]);
  const nodes = useMemo<Node[]>(() => [
    ...drawn.map.sections.map((section) => ({ id: `section:${section.id}`, type: "section", position: { x: section.box.x, y: section.box.y }, width: section.box.width, height: section.box.height, zIndex: -1, data: { section } })),
    ...drawn.graph.nodes.flatMap((node) => {
      const place = drawn.map.places.get(node.ref);
      return place === undefined ? [] : [{ id: `node:${node.ref}`, type: "step", position: { x: place.x, y: place.y }, width: place.width, height: place.height, data: { node } }];
    }),
  ], [drawn]);
  const ways = useMemo(() => waysOf(drawn), [drawn]);
  return (
    <section className="graph jr-graph" aria-label="Map">
      <ReactFlow
        nodes={nodes} edges={empty} nodeTypes={NODES} fitView fitViewOptions={FIT} minZoom={0.15} maxZoom={2} nodesDraggable={false} nodesConnectable={false} elementsSelectable={false} nodesFocusable={false}
        edgesFocusable={false} disableKeyboardA11y zoomOnDoubleClick={false} proOptions={{ hideAttribution: true }} onPaneClick={() => select(null)}
      >
        <Background gap={20} size={1} />
        <ViewportPortal>
          <Ways ways={ways} bold={bold} />
          <People ways={ways} />
        </ViewportPortal>
        <Hops routes={ways} feed={feed} />
      </ReactFlow>
      <Legend />
      <Zoom />
    </section>
  );
}

function Ways({ ways, bold }: { ways: ReadonlyMap<string, Way>; bold: ReadonlySet<string> }) {
  const { way, shares, view } = useJourneys();
  return (
    <>
      <svg className="jr-ways" width="1" height="1" aria-hidden="true">
        <defs>
          {["plain", "mine"].map((name) => (
            <marker key={name} id={`jr-head-${name}`} className={`jr-head-${name}`} viewBox="0 0 8 8" refX="4" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M1 .8 7 4 1 7.2z" /></marker>
          ))}
        </defs>
        {[...ways].sort(([a], [b]) => Number(way.has(a)) - Number(way.has(b))).map(([id, { route }]) => <path key={id} className={`jr-way ${way.has(id) ? "is-mine" : ""} ${bold.has(id) ? "is-bold" : ""}`} d={route.path} markerEnd={`url(#jr-head-${way.has(id) ? "mine" : "plain"})`} />)}
      </svg>
      {[...ways].map(([id, { route, source, target }]) => {
        const share = shares.get(id);
        if (share === undefined || share.percent === null || (view === "numbers" && share.entered === 0)) return null;
        const told = view === "numbers" ? share.entered.toLocaleString() : percentText(share.percent);
        const [x, y] = route.label;
        return (
          <span key={id} className={`jr-share ${route.beside ? "is-beside" : ""}`} style={{ left: route.beside ? x + 16 : x, top: y }} title={`${share.entered.toLocaleString()} went from ${source} to ${target}`}>
            <span className="sr">From {source} to {target}: </span>
            <b>{told}</b>
          </span>
        );
      })}
    </>
  );
}

function People({ ways }: { ways: ReadonlyMap<string, Way> }) {
  const { drawn, standings, view, chosen } = useJourneys();
  const mine = chosen === null ? null : placeOf(chosen.positions[0]!);
  const side = useMemo(() => freeSides(ways), [ways]);
  if (view === "numbers") return null;
  const spots = (standing: Standing, count: number) => {
    const { kind, name } = standing.place;
    const way = ways.get(name);
    if (kind === "edge") {
      const start = drawn.map.places.get(name.replace(/^->/, ""));
      return way !== undefined ? edgeSpots(way.route, count) : start !== undefined ? entrySpots(start, count) : [];
    }
    if (kind === "section") {
      const section = drawn.map.sections.find((one) => one.id === name);
      return section === undefined ? [] : sectionSpots(section, count);
    }
    const box = drawn.map.places.get(name);
    return box === undefined ? [] : nodeSpots(box, side(name), count);
  };
  return (
    <>
      {standings.map((standing) => {
        const isMine = standing.people === null && mine !== null && keyOf(mine) === keyOf(standing.place);
        const at = spots(standing, standing.people?.length ?? (isMine ? 2 : 1));
        if (at.length === 0) return null;
        if (standing.people === null) return <Fragment key={keyOf(standing.place)}><Cluster standing={standing} at={at[0]!} />{isMine && <Dot entity={chosen as Entity} at={at[1]!} />}</Fragment>;
        return standing.people.map((entity, index) => <Dot key={`${entity.type}/${entity.id}`} entity={entity} at={at[index]!} />);
      })}
    </>
  );
}

function SectionBox({ data }: NodeProps) {
  const section = data["section"] as DrawnSection;
  const { counts, conversion } = useJourneys();
  const flow = conversion?.sections.find((one) => one.section === section.id);
  return (
    <section className="jr-sec" data-place={`section:${section.id}`} aria-label={section.name}>
      <h2 className="clip">{section.name}</h2>
      <span className="jr-here">{(counts.get(section.id) ?? 0).toLocaleString()} here</span>
      <span className="jr-stay">{flow?.spent_p50_ms == null ? "nobody has left yet" : <>stay {stayText(flow.spent_p50_ms)} · p95 {stayText(flow.spent_p95_ms ?? 0)}</>}</span>
    </section>
  );
}

function StepBox({ data }: NodeProps) {
  const node = data["node"] as Drawn["graph"]["nodes"][number];
  const { conversion, view } = useJourneys();
  const flow = view === "numbers" ? conversion?.nodes.find((one) => one.node === node.ref) : undefined;
  const words = flow === undefined ? node.words.replace(/^human /, "") : `${flow.entered.toLocaleString()} → ${flow.left.toLocaleString()}${flow.spent_p50_ms == null ? "" : ` · ${stayText(flow.spent_p50_ms)}`}`;
  return (
    <article className="node jr-node" data-place={`node:${node.ref}`} aria-label={node.ref}>
      <span className="jr-tile"><Icon name={iconOf(node.kind, node.words)} /></span>
      <span className="jr-node-text"><b className="clip">{node.ref}</b><span className="clip" title={words}>{words}</span></span>
    </article>
  );
}

function Zoom() {
  const { zoomIn, zoomOut, fitView } = useReactFlow();
  const zoom = useStore((state) => state.transform[2]);
  return (
    <div className="jr-zoom float" role="group" aria-label="Zoom">
      <Button kind="ghost" size="sm" icon="minus" aria-label="Zoom out" onClick={() => void zoomOut()} />
      <span className="t1">{Math.round(zoom * 100)} %</span>
      <Button kind="ghost" size="sm" icon="plus" aria-label="Zoom in" onClick={() => void zoomIn()} />
      <Button kind="ghost" size="sm" icon="fit" aria-label="Show all" onClick={() => void fitView(FIT)} />
    </div>
  );
}
