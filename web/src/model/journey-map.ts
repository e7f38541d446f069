// The map of a journey: sections, the nodes in them, and where both are drawn. Pure. Places follow from the definition and
// its drawing alone, never from who is where, so that nothing moves while people do.
import { ranksOf, type Place } from "./layout";

export interface Section {
  readonly id: string;
  readonly name: string;
  readonly nodes: readonly string[];
}

export interface DrawnSection extends Section {
  readonly box: Place;
}

export interface JourneyMap {
  readonly sections: readonly DrawnSection[];
  readonly places: ReadonlyMap<string, Place>;
  readonly sectionOf: ReadonlyMap<string, string>;
}

export interface MapEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
}

export const NODE = { width: 160, height: 60 };
const SECTION = { width: 280, head: 76, foot: 40, side: 60 };
const PITCH = 128;
const GUTTER = 60;
const ROW_GAP = 108;
const COLUMNS = 3;
const EMPTY_HEIGHT = 112;

type Row = Record<string, unknown>;
const isRow = (value: unknown): value is Row => value !== null && typeof value === "object" && !Array.isArray(value);
const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

const sectionRows = (canvas: unknown): Row[] => (isRow(canvas) && Array.isArray(canvas["sections"]) ? canvas["sections"].filter((row) => isRow(row) && text(row["id"]) !== null) : []);

/** The nodes of a drawing: a list of rows with ids, or rows by name. */
function nodeRows(canvas: unknown): [ref: string, row: Row][] {
  const nodes = isRow(canvas) ? canvas["nodes"] : null;
  if (Array.isArray(nodes)) return nodes.flatMap((row) => (isRow(row) && text(row["id"]) !== null ? [[row["id"] as string, row]] : []));
  return isRow(nodes) ? Object.entries(nodes).flatMap(([ref, row]) => (isRow(row) ? [[ref, row]] : [])) : [];
}

const labelOf = (row: Row): string => text(row["name"]) ?? text(row["label"]) ?? (isRow(row["data"]) ? (text(row["data"]["label"]) ?? text(row["data"]["title"])) : null) ?? (row["id"] as string);

/** Sections by the names that a definition moves entities to. */
export function sectionsMoved(definition: unknown): string[] {
  const nodes = isRow(definition) ? definition["nodes"] : null;
  const all = Array.isArray(nodes) ? nodes : isRow(nodes) ? Object.values(nodes) : [];
  const moves = all.flatMap((node) => (isRow(node) && isRow(node["entity"]) ? Object.values(node["entity"]) : []));
  return [...new Set(moves.flatMap((move) => (isRow(move) && text(move["section"]) !== null ? [move["section"] as string] : [])))];
}

/** Sections in the order of the drawing, each with its nodes; then those that are only named as places. */
export function sectionsOf(canvas: unknown, refs: readonly string[], named: readonly string[]): Section[] {
  const rows = sectionRows(canvas);
  const known = new Set(rows.map((row) => row["id"] as string));
  const owner = new Map<string, string>();
  for (const [ref, row] of nodeRows(canvas)) {
    const parent = text(row["parentId"]) ?? text(row["parentNode"]);
    if (parent !== null && known.has(parent)) owner.set(ref, parent);
  }
  for (const row of rows) for (const ref of Array.isArray(row["nodes"]) ? row["nodes"] : []) if (typeof ref === "string") owner.set(ref, row["id"] as string);
  const drawn = rows.map((row) => ({ id: row["id"] as string, name: labelOf(row), nodes: refs.filter((ref) => owner.get(ref) === row["id"]) }));
  const more = [...new Set(named)].filter((id) => !known.has(id)).map((id) => ({ id, name: id, nodes: [] }));
  return [...drawn, ...more];
}

/** Where everything is drawn: as the drawing says if it places all nodes and sections, else in columns by section. */
export function mapOf(sections: readonly Section[], refs: readonly string[], edges: readonly MapEdge[], canvas: unknown): JourneyMap {
  const sectionOf = new Map(sections.flatMap(({ id, nodes }) => nodes.map((ref) => [ref, id] as const)));
  const own = ownPlaces(sections, refs, canvas);
  if (own !== null) return { ...own, sectionOf };
  const ranks = ranksOf(refs.map((id) => ({ id, ...NODE })), edges);
  const ordered = (nodes: readonly string[]) => [...nodes].sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0) || refs.indexOf(a) - refs.indexOf(b));
  const loose = refs.filter((ref) => !sectionOf.has(ref));
  const full = sections.filter((one) => one.nodes.length > 0).map((one) => ({ ...one, nodes: ordered(one.nodes) }));
  const empty = sections.filter((one) => one.nodes.length === 0);
  const made: { sections: DrawnSection[]; places: Map<string, Place> } = { sections: [], places: new Map() };
  let top = full.length === 0 ? 0 : inRows(full, made) - (loose.length > 0 ? 0 : ROW_GAP - 32);
  if (loose.length > 0) top = inRanks(loose, ranks, made, top);
  empty.forEach((one, at) => made.sections.push({ ...one, box: { x: (at % COLUMNS) * (SECTION.width + GUTTER), y: top + Math.floor(at / COLUMNS) * (EMPTY_HEIGHT + 40), width: SECTION.width, height: EMPTY_HEIGHT } }));
  return { ...made, sectionOf };
}

type Making = { sections: DrawnSection[]; places: Map<string, Place> };

/** Three columns a row, nodes downwards. A last section that is alone in its row is as wide as the row. Gives the next top. */
function inRows(full: readonly Section[], made: Making): number {
  let top = 0;
  for (let first = 0; first < full.length; first += COLUMNS) {
    const row = full.slice(first, first + COLUMNS);
    const isWide = first > 0 && row.length === 1;
    const most = isWide ? 1 : Math.max(...row.map((one) => one.nodes.length));
    const height = SECTION.head + (most - 1) * PITCH + NODE.height + SECTION.foot;
    row.forEach((one, at) => {
      const x = at * (SECTION.width + GUTTER);
      const skip = isWide && one.nodes.length < COLUMNS ? 1 : 0; // the heading stands in the first column
      one.nodes.forEach((ref, index) => made.places.set(ref, isWide
        ? { x: SECTION.side + (index + skip) * (SECTION.width + GUTTER), y: top + SECTION.head - 16, ...NODE }
        : { x: x + SECTION.side, y: top + SECTION.head + index * PITCH, ...NODE }));
      const columns = isWide ? Math.max(COLUMNS, one.nodes.length + skip) : 1;
      made.sections.push({ ...one, box: { x, y: top, width: columns * SECTION.width + (columns - 1) * GUTTER, height } });
    });
    top += height + ROW_GAP;
  }
  return top;
}

/** Nodes without a section: from left to right, by how far they are from the start. */
function inRanks(loose: readonly string[], ranks: ReadonlyMap<string, number>, made: Making, top: number): number {
  const heights = new Map<number, number>();
  const first = Math.min(...loose.map((ref) => ranks.get(ref) ?? 0));
  for (const ref of loose) {
    const rank = (ranks.get(ref) ?? 0) - first;
    const at = heights.get(rank) ?? 0;
    made.places.set(ref, { x: rank * (NODE.width + 120), y: top + at * PITCH, ...NODE });
    heights.set(rank, at + 1);
  }
  return top + Math.max(...heights.values()) * PITCH + ROW_GAP - 40;
}

function ownPlaces(sections: readonly Section[], refs: readonly string[], canvas: unknown): Making | null {
  const rows = new Map(sectionRows(canvas).map((row) => [row["id"] as string, row]));
  const boxes = new Map([...rows].flatMap(([id, row]) => (boxOf(row) === null ? [] : [[id, boxOf(row) as Place]])));
  if (refs.length === 0 || sections.some((one) => !boxes.has(one.id))) return null;
  const places = new Map<string, Place>();
  for (const [ref, row] of nodeRows(canvas)) {
    const at = isRow(row["position"]) ? row["position"] : {};
    const [x, y, parent] = [number(at["x"]), number(at["y"]), text(row["parentId"]) ?? text(row["parentNode"])];
    if (x === null || y === null || !refs.includes(ref)) continue;
    const from = parent === null ? undefined : boxes.get(parent); // React Flow: relative to the parent
    places.set(ref, { x: x + (from?.x ?? 0), y: y + (from?.y ?? 0), ...NODE });
  }
  if (places.size !== refs.length) return null;
  return { sections: sections.map((one) => ({ ...one, box: boxes.get(one.id) as Place })), places };
}

function boxOf(row: Row): Place | null {
  const at = isRow(row["position"]) ? row["position"] : {};
  const style = isRow(row["style"]) ? row["style"] : {};
  const [x, y, width, height] = [number(at["x"]), number(at["y"]), number(row["width"]) ?? number(style["width"]), number(row["height"]) ?? number(style["height"])];
  return x === null || y === null || width === null || height === null ? null : { x, y, width, height };
}
