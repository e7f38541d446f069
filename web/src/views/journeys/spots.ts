// Where dots are drawn: beside their node on a side that no way uses, along their edge, at the foot of their section.
import type { DrawnSection } from "@/model/journey-map";
import { pointAt, type Point, type Route, type Side } from "@/model/journey-route";
import type { Place } from "@/model/layout";

const APART = 27;
const SIDES: readonly Side[] = ["left", "right", "bottom", "top"];

/** The side of each node on which dots stand. */
export function freeSides(routes: ReadonlyMap<string, { route: Route; source: string; target: string }>): (ref: string) => Side {
  const used = new Map<string, Set<Side>>();
  const note = (ref: string, side: Side) => used.set(ref, (used.get(ref) ?? new Set()).add(side));
  for (const { route, source, target } of routes.values()) {
    note(source, route.out);
    note(target, route.into);
  }
  return (ref) => SIDES.find((side) => !(used.get(ref)?.has(side) ?? false)) ?? "bottom";
}

/** Spots for so many dots beside a node; one spot for a mark with a number. */
export function nodeSpots(box: Place, side: Side, count: number): Point[] {
  const across = side === "left" || side === "right";
  const sign = side === "left" || side === "top" ? -1 : 1;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const line = count > 3 ? Math.ceil(count / 2) : count;
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / line);
    const inRow = Math.min(line, count - row * line);
    const along = ((index % line) - (inRow - 1) / 2) * APART;
    if (side === "top") return [box.x + box.width - 12 - index * APART, box.y - 18]; // the heading stands at the left
    const away = sign * ((across ? box.width / 2 + (count === 1 ? 24 : 18) : box.height / 2 + 18) + row * APART);
    return across ? [x + away, y + along] : [x + along, y + away];
  });
}

/** Spots along a way, before its label. */
export function edgeSpots(route: Route, count: number): Point[] {
  return Array.from({ length: count }, (_, index) => pointAt(route.points, count === 1 ? 0.24 : 0.1 + (0.32 * index) / Math.max(1, count - 1)));
}

/** Spots for those who are in a section and at none of its nodes. */
export function sectionSpots({ box, nodes }: DrawnSection, count: number): Point[] {
  const top = nodes.length === 0 ? box.y + 84 : box.y + box.height - 20;
  return Array.from({ length: count }, (_, index) => [box.x + 32 + index * APART, top]);
}

/** A spot for the edge that leads into the first node. */
export const entrySpots = (box: Place, count: number): Point[] => Array.from({ length: count }, (_, index) => [box.x + 12 + index * APART, box.y - 18]);
