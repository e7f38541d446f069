// How transitions are drawn between nodes that a person has put anywhere: forward as curves, to another row through the
// gutter between rows, back along the top. Labels are put where they cover neither a node nor another label.
import type { Place } from "./layout";

type Point = readonly [number, number];

export interface Wanted {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Width of its label in pixels; 0: it has none. */
  readonly label: number;
}

export interface Route {
  readonly path: string;
  /** Where it leaves to the right; null: it leaves to another side. */
  readonly start: Point | null;
  readonly label: readonly [number, number];
}

interface Line {
  readonly path: string;
  readonly isForward?: boolean;
  /** Points along it, from end to end. */
  readonly points: readonly Point[];
}

const HEAD = 5;
const LABEL_HEIGHT = 24;
const SAMPLES = 24;
const round = (value: number): number => Math.round(value * 10) / 10;

function curve([ax, ay]: Point, [bx, by]: Point, isDown: boolean): Line {
  const middle = isDown ? (ay + by) / 2 : (ax + bx) / 2;
  const [c, d]: [Point, Point] = isDown ? [[ax, middle], [bx, middle]] : [[middle, ay], [middle, by]];
  const points = Array.from({ length: SAMPLES + 1 }, (_, at): Point => {
    const [t, u] = [at / SAMPLES, 1 - at / SAMPLES];
    const on = (axis: 0 | 1) => u ** 3 * (axis === 0 ? ax : ay) + 3 * u * u * t * c[axis] + 3 * u * t * t * d[axis] + t ** 3 * (axis === 0 ? bx : by);
    return [on(0), on(1)];
  });
  return { path: `M${round(ax)} ${round(ay)}C${round(c[0])} ${round(c[1])} ${round(d[0])} ${round(d[1])} ${round(bx)} ${round(by)}`, points };
}

/** Straight pieces with round corners. */
function corners(given: readonly Point[]): Line {
  const [first, ...rest] = given;
  let path = `M${round(first![0])} ${round(first![1])}`;
  rest.forEach(([x, y], at) => {
    const [before, next] = [given[at]!, rest[at + 1]];
    if (next === undefined) path += `L${round(x)} ${round(y)}`;
    else {
      const [inward, outward] = [Math.hypot(x - before[0], y - before[1]), Math.hypot(next[0] - x, next[1] - y)];
      const r = Math.min(10, inward / 2, outward / 2);
      const [ax, ay] = inward === 0 ? [x, y] : [x - ((x - before[0]) / inward) * r, y - ((y - before[1]) / inward) * r];
      const [bx, by] = outward === 0 ? [x, y] : [x + ((next[0] - x) / outward) * r, y + ((next[1] - y) / outward) * r];
      path += `L${round(ax)} ${round(ay)}Q${round(x)} ${round(y)} ${round(bx)} ${round(by)}`;
    }
  });
  // The longest piece is where a label reads best: its samples come first in the middle of the list.
  let longest = 0;
  for (let at = 1; at < given.length - 1; at++) if (length(given, at) > length(given, longest)) longest = at;
  const [a, b] = [given[longest]!, given[longest + 1]!];
  return { path, points: Array.from({ length: SAMPLES + 1 }, (_, at): Point => [a[0] + ((b[0] - a[0]) * at) / SAMPLES, a[1] + ((b[1] - a[1]) * at) / SAMPLES]) };
}

const length = (points: readonly Point[], at: number): number => Math.hypot(points[at + 1]![0] - points[at]![0], points[at + 1]![1] - points[at]![1]);

/** A height for a line from one row to the next that meets no node between `x1` and `x2`; `wanted` where there is none.
 * A neighbour of the target may reach above it. */
function gutterAt(wanted: number, from: Place, [x1, x2]: readonly [number, number], others: readonly Place[]): number {
  const isFree = (y: number) => !others.some((one) => one.x < Math.max(x1, x2) && one.x + one.width > Math.min(x1, x2) && one.y - 10 < y && y < one.y + one.height + 10);
  for (let y = wanted; y > from.y + from.height + 10; y -= 8) if (isFree(y)) return y;
  return wanted;
}

/** The line of one transition. `beside`: how many run between the same nodes already; `leaving`: how many have left the
 * same node downwards or upwards; `others`: the nodes that a line to another row goes around. */
export function lineOf(from: Place, to: Place, beside: number, leaving = 0, others: readonly Place[] = []): Line {
  const [ax, bx] = [from.x + from.width / 2, to.x + to.width / 2];
  const shift = 12 * beside;
  if (to.y >= from.y + from.height + 16 && to.x < from.x + from.width + 24) {
    if (Math.abs(ax - bx) < from.width * 0.75) return curve([ax, from.y + from.height], [bx, to.y - HEAD], true);
    const out = ax - 12 + 24 * (leaving % 3);
    const gutter = gutterAt(to.y - 46 - shift + 20 * (leaving % 2), from, [out, bx], others);
    return corners([[out, from.y + from.height], [out, gutter], [bx, gutter], [bx, to.y - HEAD]]);
  }
  if (to.y + to.height + 16 <= from.y && to.x < from.x + from.width + 24) {
    if (Math.abs(ax - bx) < from.width * 0.75) return curve([ax - 40, from.y], [bx - 40, to.y + to.height + HEAD], true);
    const gutter = from.y - 20 - shift;
    return corners([[ax, from.y], [ax, gutter], [bx + 14, gutter], [bx + 14, to.y + to.height + HEAD]]);
  }
  if (bx <= ax) {
    const top = Math.min(from.y, to.y) - 30 - 1.4 * shift;
    const end = bx + shift;
    if (from.x === to.x && from.y === to.y) return corners([[ax + 30, from.y], [ax + 30, top], [ax - 30, top], [ax - 30, to.y - HEAD]]);
    return corners([[ax, from.y], [ax, top], [end, top], [end, to.y - HEAD]]);
  }
  const spread = beside === 0 ? 0 : (beside % 2 === 1 ? 1 : -1) * Math.min(26, Math.ceil(beside / 2) * 26);
  return { ...curve([from.x + from.width, from.y + from.height / 2 + spread], [to.x - HEAD, to.y + to.height / 2 + spread], false), isForward: true };
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
const hits = (a: Box, b: Box): boolean => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
/** From the middle outwards. */
const ORDER = [12, 10, 14, 8, 16, 6, 18, 4, 20];

/** The lines of all transitions, and the places of their labels. */
export function routes(wanted: readonly Wanted[], places: ReadonlyMap<string, Place>): Map<string, Route> {
  const beside = new Map<string, number>();
  const found = new Map<string, Route>();
  const nodes = [...places.values()];
  const taken: Box[] = [];
  const left = new Map<string, number>();
  for (const { id, source, target, label } of wanted) {
    const [from, to] = [places.get(source), places.get(target)];
    if (from === undefined || to === undefined) continue;
    const between = [source, target].sort().join("\n");
    const count = beside.get(between) ?? 0;
    beside.set(between, count + 1);
    const { path, points, isForward = false } = lineOf(from, to, count, left.get(source), nodes);
    if (!isForward) left.set(source, (left.get(source) ?? 0) + 1);
    const box = ([x, y]: Point): Box => ({ x: x - label / 2, y: y - LABEL_HEIGHT / 2, width: label, height: LABEL_HEIGHT });
    const clear = label === 0 ? [] : ORDER.map((at) => points[at]!).filter((point) => !taken.some((one) => hits(one, box(point))));
    const place = clear.find((point) => !nodes.some((one) => hits(one, box(point)))) ?? clear[0] ?? points[SAMPLES / 2]!;
    if (label > 0) taken.push(box(place));
    found.set(id, { path, start: isForward ? points[0]! : null, label: [round(place[0]), round(place[1])] });
  }
  return found;
}
