// Hops: a dot that travels along its edge after the commit, 450 ms, drawn on one canvas over the pane. Above 30 hops a
// second an edge shows a pulse and the number. With reduced motion nothing moves: the edge is thicker for a moment.
import { useStoreApi } from "@xyflow/react";
import { useEffect, useRef, type RefObject } from "react";
import { pointAt, type Route } from "@/model/journey-route";
import type { Hop } from "./data";

const HOP_MS = 450;
const BUSY = 30;

export type Feed = RefObject<((hops: readonly Hop[]) => void) | null>;

interface Flying extends Hop {
  readonly began: number;
}

export function Hops({ routes, feed }: { routes: ReadonlyMap<string, { route: Route }>; feed: Feed }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const api = useStoreApi();
  useEffect(() => {
    const element = canvas.current as HTMLCanvasElement;
    let flying: Flying[] = [];
    let recent: Flying[] = [];
    let frame: number | null = null;
    const draw = () => {
      frame = null;
      const now = performance.now();
      flying = flying.filter((hop) => now - hop.began < HOP_MS);
      recent = recent.filter((hop) => now - hop.began < 1_000);
      paint(element, api.getState().transform, flying, recent, (edge) => routes.get(edge)?.route, now);
      if (recent.length > 0) frame = requestAnimationFrame(draw);
    };
    feed.current = (hops) => {
      if (document.hidden) return;
      const fresh = hops.filter((hop) => routes.has(hop.edge)).map((hop) => ({ ...hop, began: performance.now() }));
      flying.push(...fresh);
      recent.push(...fresh);
      frame ??= requestAnimationFrame(draw);
    };
    return () => {
      feed.current = null;
      if (frame !== null) cancelAnimationFrame(frame);
    };
  }, [routes, feed, api]);
  return <canvas ref={canvas} className="jr-hops" aria-hidden="true" />;
}

function paint(element: HTMLCanvasElement, [dx, dy, zoom]: readonly [number, number, number], flying: readonly Flying[], recent: readonly Flying[], routeOf: (edge: string) => Route | undefined, now: number): void {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [element.clientWidth, element.clientHeight];
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext("2d") as CanvasRenderingContext2D;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(element);
  const rates = new Map<string, number>();
  for (const hop of recent) rates.set(hop.edge, (rates.get(hop.edge) ?? 0) + 1);
  const mark = (edge: string, share: number, text: string, radius: number) => {
    const route = routeOf(edge);
    if (route === undefined) return;
    const [x, y] = pointAt(route.points, share);
    context.beginPath();
    context.arc(x * zoom + dx, y * zoom + dy, radius * zoom, 0, Math.PI * 2);
    context.fillStyle = style.getPropertyValue("--active-tint");
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = style.getPropertyValue("--active");
    context.stroke();
    context.fillStyle = style.getPropertyValue("--active");
    context.font = `600 ${10 * zoom}px system-ui`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, x * zoom + dx, y * zoom + dy);
  };
  for (const hop of flying) if ((rates.get(hop.edge) ?? 0) <= BUSY) mark(hop.edge, 1 - (1 - (now - hop.began) / HOP_MS) ** 3, hop.initials, 12);
  for (const [edge, rate] of rates) if (rate > BUSY) mark(edge, 0.5, rate > 999 ? "999+" : String(rate), 14 + Math.sin(now / 120));
}
