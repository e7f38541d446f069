// Where the nodes of a draft stand: where they were put; where nobody put them, where dagre or the room beside them says.
import { useEffect, useMemo, useState } from "react";
import type { Flow, FlowEdge } from "@/model/flow";
import { folded } from "@/model/folded";
import { groupsOf } from "@/model/groups";
import { columns, topologyKey, type LayoutNode, type Place } from "@/model/layout";
import type { Wanted } from "@/model/route";
import type { Places } from "../draft";
import type { LabelledEdge } from "./layout.worker";

export const HEIGHT = 60;
const DEADLINE_MS = 2_000;
const STEP = 20;
const LABEL_HEIGHT = 22;
const kept = new Map<string, Promise<Places>>();

/** Room for a transition's label, in pixels. */
export const labelWidth = ({ label, tier, look }: FlowEdge): number => (label === "" && tier === 0 ? 0 : 24 + (label === "" ? 9 : label.length) * 6 + (tier > 0 ? 18 : 0) + (look === "plain" ? 0 : 18));
export const widthOf = (ref: string): number => Math.round(Math.min(240, Math.max(160, 70 + ref.length * 7.4)) / STEP) * STEP;
export const rectsOf = (flow: Flow, places: Places): Map<string, Place> => new Map(flow.nodes.map(({ ref }) => [ref, { ...(places[ref] ?? { x: 0, y: 0 }), width: widthOf(ref), height: HEIGHT }]));
export const wantedOf = (flow: Flow): Wanted[] => flow.edges.map((edge) => ({ id: String(edge.index), source: edge.source, target: edge.target, label: labelWidth(edge) }));
const nodesOf = (flow: Flow): LayoutNode[] => flow.nodes.map(({ ref }) => ({ id: ref, width: widthOf(ref), height: HEIGHT }));

/** `down`: labels of one node's transitions stand one below the other, as they are wider than its targets are apart. */
function edgesOf(flow: Flow, down = false): LabelledEdge[] {
  const known = new Set(flow.nodes.map((node) => node.ref));
  const labels = (source: string) => flow.edges.filter((edge) => edge.source === source && labelWidth(edge) > 0).length;
  const height = (edge: FlowEdge) => (!down ? LABEL_HEIGHT : labelWidth(edge) === 0 ? 0 : LABEL_HEIGHT * labels(edge.source));
  return flow.edges.filter((edge) => known.has(edge.source) && known.has(edge.target)).map((edge) => ({ id: String(edge.index), source: edge.source, target: edge.target, label: Math.max(24, labelWidth(edge) - 16), height: height(edge) }));
}

/** Places from dagre. After two seconds the worker is ended, and plain columns are drawn. */
export function tidy(flow: Flow, down = false): Promise<Places> {
  const [nodes, edges] = [nodesOf(flow), edgesOf(flow, down)];
  const key = `${down}${topologyKey(nodes, edges)}`;
  const asked =
    kept.get(key) ??
    new Promise<Places>((resolve) => {
      const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
      const plain = () => end(Object.fromEntries([...columns(nodes, edges).places].map(([id, { x, y }]) => [id, { x, y }])));
      const timer = setTimeout(plain, DEADLINE_MS);
      const end = (places: Places) => {
        clearTimeout(timer);
        worker.terminate();
        resolve(places);
      };
      const rows = (places: Places) => (down ? places : folded(nodes, edges, places, groupsOf(flow).map(({ members }) => members)));
      worker.onmessage = ({ data }: MessageEvent<[string, { x: number; y: number }][]>) => end(rows(Object.fromEntries(data)));
      worker.onerror = plain;
      worker.postMessage({ nodes, edges, down });
    });
  kept.set(key, asked);
  return asked;
}

/** A free place beside a node, or below everything. */
export function beside(places: Places, after: string | null): { x: number; y: number } {
  const all = Object.values(places);
  const from = after === null ? undefined : places[after];
  let [x, y] = from === undefined ? [Math.min(0, ...all.map((one) => one.x)), all.length === 0 ? 0 : Math.max(...all.map((one) => one.y)) + 120] : [from.x + widthOf(after as string) + 120, from.y];
  while (all.some((one) => Math.abs(one.x - x) < 200 && Math.abs(one.y - y) < HEIGHT + STEP)) y += HEIGHT + 2 * STEP;
  return { x, y };
}

/** Every node's place. Null until the first layout is there. */
export function usePlaces(flow: Flow, own: Places, down = false): Places | null {
  const none = flow.nodes.length > 0 && !flow.nodes.some((node) => own[node.ref] !== undefined);
  const [drawn, setDrawn] = useState<Places | null>(null);
  const key = none ? topologyKey(nodesOf(flow), edgesOf(flow)) : "";
  useEffect(() => {
    if (!none) return undefined;
    let here = true;
    void tidy(flow, down).then((places) => here && setDrawn(places));
    return () => {
      here = false;
    };
  }, [key, down]);
  return useMemo(() => {
    if (none && drawn === null) return null;
    const places: Record<string, { x: number; y: number }> = {};
    const given = none ? (drawn ?? {}) : own;
    for (const { ref } of flow.nodes) if (given[ref] !== undefined) places[ref] = given[ref];
    for (const { ref } of flow.nodes) places[ref] ??= beside(places, flow.edges.find((edge) => edge.target === ref && places[edge.source] !== undefined)?.source ?? null);
    return places;
  }, [flow, own, drawn, none]);
}
