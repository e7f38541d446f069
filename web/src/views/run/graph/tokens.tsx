// Tokens as dots that move along edges: one canvas over the pane. A hop takes 450 ms after its commit; above 30 hops a
// second an edge shows a pulse and the number. With reduced motion nothing moves: the edge is thicker for a moment.
import { useStoreApi } from "@xyflow/react";
import { useEffect, useRef, type RefObject } from "react";
import type { Event } from "@/model/fold";

const HOP_MS = 450;
const BUSY = 30;
const SAMPLES = 32;

type Points = readonly (readonly [number, number])[];

export function samplesOf(path: string): Points {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
  element.setAttribute("d", path);
  const length = element.getTotalLength();
  return Array.from({ length: SAMPLES }, (_, index) => {
    const { x, y } = element.getPointAtLength((length * index) / (SAMPLES - 1));
    return [x, y] as const;
  });
}

/** The edges that events go over. */
export function hopsOf(events: readonly Event[]): string[] {
  const found: string[] = [];
  for (const event of events) if ((event.type === "token.created" || event.type === "join.arrived") && typeof event["via"] === "string") found.push(event["via"]);
  return found;
}

interface Hop {
  edge: string;
  began: number;
}

interface Props {
  paths: ReadonlyMap<string, string>;
  /** Called by the graph with the events of each frame. */
  feed: RefObject<((events: readonly Event[]) => void) | null>;
}

export function Tokens({ paths, feed }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const api = useStoreApi();
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    const samples = new Map<string, Points>();
    const pointsOf = (edge: string) => {
      const path = paths.get(edge);
      if (path === undefined) return undefined;
      const known = samples.get(edge) ?? samplesOf(path);
      samples.set(edge, known);
      return known;
    };
    let hops: Hop[] = [];
    let recent: Hop[] = [];
    let frame: number | null = null;
    const draw = () => {
      frame = null;
      const now = performance.now();
      hops = hops.filter((hop) => now - hop.began < HOP_MS);
      recent = recent.filter((hop) => now - hop.began < 1_000);
      paint(element, api.getState().transform, hops, recent, pointsOf, now);
      if (hops.length > 0 || recent.length > 0) frame = requestAnimationFrame(draw);
    };
    feed.current = (events) => {
      if (document.hidden) return;
      const began = performance.now();
      for (const edge of hopsOf(events)) {
        hops.push({ edge, began });
        recent.push({ edge, began });
      }
      frame ??= requestAnimationFrame(draw);
    };
    return () => {
      feed.current = null;
      if (frame !== null) cancelAnimationFrame(frame);
    };
  }, [paths, feed, api]);
  return <canvas ref={canvas} className="run-tokens" aria-hidden="true" />;
}

function paint(element: HTMLCanvasElement, [dx, dy, zoom]: readonly [number, number, number], hops: readonly Hop[], recent: readonly Hop[], pointsOf: (edge: string) => Points | undefined, now: number): void {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [element.clientWidth, element.clientHeight];
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext("2d") as CanvasRenderingContext2D;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (hops.length === 0 && recent.length === 0) return;
  const style = getComputedStyle(element);
  const [fill, ring] = [style.getPropertyValue("--active"), style.getPropertyValue("--canvas")];
  const rates = new Map<string, number>();
  for (const hop of recent) rates.set(hop.edge, (rates.get(hop.edge) ?? 0) + 1);
  const at = (edge: string, share: number) => {
    const points = pointsOf(edge);
    if (points === undefined) return null;
    const place = share * (SAMPLES - 1);
    const [a, b] = [points[Math.floor(place)], points[Math.min(SAMPLES - 1, Math.floor(place) + 1)]];
    if (a === undefined || b === undefined) return null;
    const rest = place - Math.floor(place);
    return [(a[0] + (b[0] - a[0]) * rest) * zoom + dx, (a[1] + (b[1] - a[1]) * rest) * zoom + dy] as const;
  };
  const dot = (x: number, y: number, radius: number) => {
    context.beginPath();
    context.arc(x, y, radius, 0, Math.PI * 2);
    context.fillStyle = fill;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = ring;
    context.stroke();
  };
  for (const hop of hops) {
    if ((rates.get(hop.edge) ?? 0) > BUSY) continue;
    const share = (now - hop.began) / HOP_MS;
    const place = at(hop.edge, 1 - (1 - share) ** 3);
    if (place !== null) dot(place[0], place[1], 5);
  }
  for (const [edge, rate] of rates) {
    if (rate <= BUSY) continue;
    const place = at(edge, 0.5);
    if (place === null) continue;
    dot(place[0], place[1] - 14, 11 + Math.sin(now / 120));
    context.fillStyle = ring;
    context.font = "600 10px system-ui";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(rate > 999 ? "999+" : String(rate), place[0], place[1] - 14);
  }
}
