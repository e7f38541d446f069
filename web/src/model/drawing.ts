// The drawing of a version: places of nodes, sections and notes. Reads React Flow's form and the service's; writes the
// form it has read, and leaves what it does not know as it is.

export interface Point {
  readonly x: number;
  readonly y: number;
}
export type Places = Readonly<Record<string, Point>>;

/** Something that is only drawn: a note, or a section that stands behind nodes. */
export interface Mark extends Point {
  readonly id: string;
  readonly kind: "note" | "section";
  readonly text: string;
  readonly width: number;
  readonly height: number;
}

type Values = Record<string, unknown>;
const isValues = (value: unknown): value is Values => value !== null && typeof value === "object" && !Array.isArray(value);
const rowsOf = (value: unknown): Values[] => (Array.isArray(value) ? value.filter(isValues) : []);
const numberOf = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const size = (row: Values, name: "width" | "height", preset: number): number => numberOf(row[name]) ?? numberOf((row["style"] as Values | undefined)?.[name]) ?? preset;

function pointOf(row: Values | undefined): Point | null {
  const position = row?.["position"];
  const [x, y] = isValues(position) ? [numberOf(position["x"]), numberOf(position["y"])] : [null, null];
  return x === null || y === null ? null : { x, y };
}

/** Rows of nodes by their ids: a list as React Flow writes it, or by name as the service writes an imported canvas. */
function nodeRows(canvas: unknown): Map<string, Values> {
  const nodes = isValues(canvas) ? canvas["nodes"] : undefined;
  if (Array.isArray(nodes)) return new Map(rowsOf(nodes).flatMap((row) => (typeof row["id"] === "string" ? [[row["id"], row] as const] : [])));
  return new Map(isValues(nodes) ? Object.entries(nodes).flatMap(([ref, row]) => (isValues(row) ? [[ref, row] as const] : [])) : []);
}

const LISTS = { section: "sections", note: "notes" } as const;
const markRows = (canvas: unknown): Values[] => (isValues(canvas) ? [...rowsOf(canvas["sections"]), ...rowsOf(canvas["notes"])] : []);
const kindOf = (row: Values): Mark["kind"] | null => {
  const type = String(row["type"] ?? "").toLowerCase();
  return type === "note" || type === "section" ? type : null;
};

/** Where the parent of a row begins: React Flow counts from there. */
function originOf(row: Values, all: ReadonlyMap<string, Values>, depth = 0): Point {
  const parent = all.get(String(row["parentId"] ?? row["parentNode"] ?? ""));
  const at = pointOf(parent);
  if (parent === undefined || at === null || depth > 8) return { x: 0, y: 0 };
  const origin = originOf(parent, all, depth + 1);
  return { x: origin.x + at.x, y: origin.y + at.y };
}

const everyRow = (canvas: unknown): Map<string, Values> => new Map([...markRows(canvas).map((row) => [String(row["id"]), row] as const), ...nodeRows(canvas)]);

export function placesOf(canvas: unknown): Places {
  const all = everyRow(canvas);
  return Object.fromEntries(
    [...nodeRows(canvas)].flatMap(([ref, row]) => {
      const [at, origin] = [pointOf(row), originOf(row, all)];
      return at === null ? [] : [[ref, { x: at.x + origin.x, y: at.y + origin.y }]];
    }),
  );
}

export function marksOf(canvas: unknown): Mark[] {
  const all = everyRow(canvas);
  return markRows(canvas).flatMap((row) => {
    const [kind, at, origin] = [kindOf(row), pointOf(row), originOf(row, all)];
    if (kind === null || at === null) return [];
    const data = isValues(row["data"]) ? row["data"] : {};
    return [{ id: String(row["id"]), kind, x: at.x + origin.x, y: at.y + origin.y, width: size(row, "width", kind === "note" ? 200 : 320), height: size(row, "height", kind === "note" ? 80 : 200), text: String(data["label"] ?? data["text"] ?? row["label"] ?? "") }];
  });
}

/** Whether a point is in a section. */
export const isInside = (section: Mark, { x, y }: Point): boolean => x >= section.x && y >= section.y && x < section.x + section.width && y < section.y + section.height;

/** The nodes of a section, as journeys count them: those that stand in it, and those that its row named although they stood elsewhere. */
function heldBy(section: Mark, places: Places, before: unknown): string[] {
  const old = marksOf(before).find((one) => one.id === section.id);
  const [stood, named] = [placesOf(before), markRows(before).find((row) => row["id"] === section.id)?.["nodes"]];
  const elsewhere = (Array.isArray(named) ? named : []).filter((ref) => typeof ref === "string" && !(old !== undefined && stood[ref] !== undefined && isInside(old, stood[ref])));
  return [...new Set([...Object.keys(places).filter((ref) => isInside(section, places[ref]!)), ...(elsewhere as string[])])];
}

/** A drawing with these places and marks and the text as it was written. */
export function drawingOf(before: unknown, places: Places, marks: readonly Mark[], text: string): Values {
  const old = isValues(before) ? before : {};
  const [all, known] = [everyRow(before), nodeRows(before)];
  for (const { id, x, y } of marks) all.set(id, { ...all.get(id), position: { x, y }, parentId: undefined, parentNode: undefined });
  const row = (ref: string, at: Point): Values => {
    const own = known.get(ref) ?? {};
    const origin = originOf(own, all);
    return { ...own, position: { x: at.x - origin.x, y: at.y - origin.y } };
  };
  const nodes = isValues(old["nodes"]) ? Object.fromEntries(Object.entries(places).map(([ref, at]) => [ref, row(ref, at)])) : Object.entries(places).map(([id, at]) => ({ ...row(id, at), id }));
  const drawing: Values = { ...old, nodes, text };
  for (const kind of ["section", "note"] as const) {
    const kept = old[LISTS[kind]];
    const rest: unknown[] = Array.isArray(kept) ? kept.filter((one) => !isValues(one) || kindOf(one) !== kind) : [];
    const rows = [...rest, ...marks.filter((mark) => mark.kind === kind).map((mark) => ({ ...markRow(mark, all.get(mark.id)), ...(kind === "section" ? { nodes: heldBy(mark, places, before) } : {}) }))];
    if (rows.length > 0) drawing[LISTS[kind]] = rows;
    else delete drawing[LISTS[kind]];
  }
  return drawing;
}

function markRow({ id, kind, x, y, width, height, text }: Mark, before: Values | undefined): Values {
  const { parentId: _parent, parentNode: _node, style: _style, ...own } = before ?? {};
  return { ...own, id, type: own["type"] ?? kind, position: { x, y }, width, height, data: { ...(isValues(own["data"]) ? own["data"] : {}), label: text } };
}

/** An id that no mark has yet. */
export function freeMark(marks: readonly Mark[], kind: Mark["kind"]): string {
  for (let at = 1; ; at++) if (!marks.some((mark) => mark.id === `${kind}-${at}`)) return `${kind}-${at}`;
}
