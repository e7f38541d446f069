// The ways between nodes on the map of a journey: right angles with round corners, around nodes that stand between. Pure.
import type { Place } from "./layout";

export type Point = readonly [x: number, y: number];
export type Side = "left" | "right" | "top" | "bottom";

export interface Route {
  readonly points: readonly Point[];
  readonly path: string;
  /** The middle of its longest stretch. */
  readonly label: Point;
  /** Short and straight down: the label stands beside it, without a frame. */
  readonly beside: boolean;
  readonly out: Side;
  readonly into: Side;
}

const HEAD = 4; // room for the arrow's point
const LANE = 12;
const middleX = (box: Place): number => box.x + box.width / 2;
const middleY = (box: Place): number => box.y + box.height / 2;
const right = (box: Place): number => box.x + box.width;
const bottom = (box: Place): number => box.y + box.height;

/** Whether a level or upright stretch touches no node but those it joins. */
function isClear([ax, ay]: Point, [bx, by]: Point, boxes: readonly Place[], but: readonly Place[]): boolean {
  const [x0, x1, y0, y1] = [Math.min(ax, bx), Math.max(ax, bx), Math.min(ay, by), Math.max(ay, by)];
  return !boxes.some((box) => !but.includes(box) && box.x < x1 + 4 && right(box) > x0 - 4 && box.y < y1 + 4 && bottom(box) > y0 - 4);
}

/** The way from one node to another. `lane` keeps ways apart that would run beside each other. */
export function routeOf(from: Place, to: Place, boxes: readonly Place[], lane = 0): Route {
  const shift = (lane % 4) * LANE;
  const ends = [from, to];
  const clear = (a: Point, b: Point) => isClear(a, b, boxes, ends);
  const isAligned = Math.abs(middleX(from) - middleX(to)) < 40;
  if (isAligned && to.y > bottom(from) && clear([middleX(to), bottom(from)], [middleX(to), to.y])) {
    return made([[middleX(to), bottom(from)], [middleX(to), to.y - HEAD]], "bottom", "top", to.y - bottom(from) < 90);
  }
  if (!isAligned && to.x >= right(from) + 40) return rightwards(from, to, boxes, shift, clear);
  if (isAligned) return beside(from, to, shift);
  return to.y > bottom(from) + 60 ? downwards(from, to, shift, clear) : leftwards(from, to, boxes, shift, clear);
}

type Clear = (a: Point, b: Point) => boolean;

function rightwards(from: Place, to: Place, boxes: readonly Place[], shift: number, clear: Clear): Route {
  const gap = to.x - right(from);
  const gutter = gap <= 140 ? right(from) + gap / 2 : to.x - 90 + shift - LANE;
  const [start, end]: Point[] = [[right(from), middleY(from)], [to.x - HEAD, middleY(to)]] as const;
  if (clear(start as Point, [gutter, middleY(from)])) {
    if (middleY(from) === middleY(to)) return made([start as Point, end as Point], "right", "left");
    return made([start as Point, [gutter, middleY(from)], [gutter, middleY(to)], end as Point], "right", "left");
  }
  const between = boxes.filter((box) => box.x < to.x && right(box) > right(from) && box !== from);
  const under = Math.max(bottom(from), ...between.filter((box) => Math.abs(middleY(box) - middleY(from)) < 400).map(bottom)) + 64 + shift;
  const near = right(from) + 90 - shift;
  return made([start as Point, [near, middleY(from)], [near, under], [gutter, under], [gutter, middleY(to)], end as Point], "right", "left");
}

/** In one column, past the nodes between: out at the right and in at the right. */
function beside(from: Place, to: Place, shift: number): Route {
  const x = Math.max(right(from), right(to)) + 24 + shift;
  const [start, end] = [middleY(from) + 14, middleY(to) - 14]; // beside the ways that leave and enter at the middle
  return made([[right(from), start], [x, start], [x, end], [right(to) + HEAD, end]], "right", "right");
}

function downwards(from: Place, to: Place, shift: number, clear: Clear): Route {
  const lane = Math.max(bottom(from) + 20, to.y - 116 - shift);
  const into = middleX(to) + (middleX(from) > middleX(to) ? 1 : -1) * (20 + shift / 2); // the middle is for the way straight down
  const end: Point[] = [[into, lane], [into, to.y - HEAD]];
  const x = middleX(from) + shift / 2;
  if (clear([x, bottom(from)], [x, lane])) return made([[x, bottom(from)], [x, lane], ...end], "bottom", "top");
  const aside = right(from) + 24 + shift;
  return made([[right(from), middleY(from)], [aside, middleY(from)], [aside, lane], ...end], "right", "top");
}

/** Back to the left, or up: around below the row, or above it if the target is higher. */
function leftwards(from: Place, to: Place, boxes: readonly Place[], shift: number, clear: Clear): Route {
  const row = boxes.filter((box) => Math.abs(middleY(box) - middleY(from)) < 400 && box.x <= right(from) && right(box) >= to.x);
  const isHigher = bottom(to) < from.y - 150;
  const lane = isHigher ? from.y - 116 + shift : Math.max(...row.map(bottom), bottom(from), bottom(to)) + 60 + shift;
  const [out, back] = [right(from) + 24 + shift, right(to) + 24 + shift];
  const top = isHigher && clear([middleX(from), from.y], [middleX(from), lane]);
  const start: Point[] = top ? [[middleX(from), from.y], [middleX(from), lane]] : [[right(from), middleY(from)], [out, middleY(from)], [out, lane]];
  return made([...start, [back, lane], [back, middleY(to)], [right(to) + HEAD, middleY(to)]], top ? "top" : "right", "right");
}

function made(points: readonly Point[], out: Side, into: Side, isBeside = false): Route {
  const kept = points.filter((point, at) => at === 0 || point[0] !== points[at - 1]![0] || point[1] !== points[at - 1]![1]);
  let longest = 1;
  for (let at = 2; at < kept.length; at += 1) if (lengthOf(kept, at) > lengthOf(kept, longest)) longest = at;
  const [a, b] = [kept[longest - 1] as Point, kept[longest] as Point];
  return { points: kept, path: pathOf(kept), label: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], beside: isBeside, out, into };
}

const lengthOf = (points: readonly Point[], at: number): number => Math.abs(points[at]![0] - points[at - 1]![0]) + Math.abs(points[at]![1] - points[at - 1]![1]);

function pathOf(points: readonly Point[]): string {
  let path = `M${points[0]!.join(" ")}`;
  for (let at = 1; at < points.length - 1; at += 1) {
    const [before, here, after] = [points[at - 1]!, points[at]!, points[at + 1]!];
    const radius = Math.min(12, lengthOf(points, at) / 2, lengthOf(points, at + 1) / 2);
    const toward = (other: Point): Point => [here[0] + Math.sign(other[0] - here[0]) * radius, here[1] + Math.sign(other[1] - here[1]) * radius];
    path += `L${toward(before).join(" ")}Q${here.join(" ")} ${toward(after).join(" ")}`;
  }
  return `${path}L${points.at(-1)!.join(" ")}`;
}

/** The place at a share of a way's length. */
export function pointAt(points: readonly Point[], share: number): Point {
  const total = points.slice(1).reduce((sum, _, at) => sum + lengthOf(points, at + 1), 0);
  let left = Math.max(0, Math.min(1, share)) * total;
  for (let at = 1; at < points.length; at += 1) {
    const length = lengthOf(points, at);
    if (left <= length && length > 0) {
      const [a, b] = [points[at - 1]!, points[at]!];
      return [a[0] + ((b[0] - a[0]) * left) / length, a[1] + ((b[1] - a[1]) * left) / length];
    }
    left -= length;
  }
  return points.at(-1) as Point;
}
